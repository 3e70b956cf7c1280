//! The table of hostile inputs with the expected error messages.

use super::Hostile;
use super::archive::{Entry, bomb, file, tgz};

const CHART: &[u8] = b"apiVersion: v2\nname: chart\nversion: 0.1.0\n";

/// Returns all cases.
pub(super) fn all() -> anyhow::Result<Vec<Hostile>> {
    let mut cases = own()?;
    cases.extend(super::functions::all());
    cases.extend(super::documents::all());
    cases.extend(super::inputs::all());
    cases.extend(super::commands::all());
    cases.extend(super::manifests::all());
    cases.extend(super::remote::all());
    Ok(cases)
}

fn own() -> anyhow::Result<Vec<Hostile>> {
    let mut cases = recursion();
    cases.extend(templates());
    cases.extend(nesting());
    cases.extend(yaml());
    cases.extend(values());
    cases.extend(schemas());
    cases.extend(archives()?);
    Ok(cases)
}

pub(super) fn files(own: &[(&str, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let chart = ("chart/Chart.yaml".to_owned(), CHART.to_vec());
    std::iter::once(chart)
        .chain(
            own.iter()
                .map(|(name, text)| (format!("chart/{name}"), text.clone())),
        )
        .collect()
}

/// Returns a case with a chart with one template.
pub(super) fn template(name: impl Into<String>, text: impl Into<Vec<u8>>, expected: &'static str) -> Hostile {
    Hostile::new(
        name,
        files(&[("templates/t.yaml", text.into())]),
        &["@chart"],
        expected,
    )
}

/// Returns a case with a chart and a file of values.
pub(super) fn values_file(
    name: impl Into<String>,
    text: impl Into<Vec<u8>>,
    expected: &'static str,
) -> Hostile {
    Hostile::new(
        name,
        files(&[("values.yaml", text.into())]),
        &["@chart"],
        expected,
    )
}

/// Returns cases with templates that call themselves.
fn recursion() -> Vec<Hostile> {
    let include = "{{define \"a\"}}{{include \"a\" .}}{{end}}{{include \"a\" .}}";
    let template_call = "{{define \"a\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}";
    let tpl = "{{define \"a\"}}{{tpl \"{{include \\\"a\\\" .}}\" .}}{{end}}{{include \"a\" .}}";
    let itself = "{{$d := dict \"x\" \"{{tpl .x .}}\"}}{{tpl $d.x $d}}";
    vec![
        template("include without end", include, "Error"),
        template("template without end", template_call, "Error"),
        template("tpl without end", tpl, "Error"),
        template("tpl of itself", itself, "Error"),
    ]
}

/// Returns cases with templates that require unbounded work.
#[allow(clippy::too_many_lines, reason = "a table")]
fn templates() -> Vec<Hostile> {
    let big = "{{range until 100000}}{{range until 100000}}{{range until 100000}}{{end}}{{end}}{{end}}";
    let doubling =
        "{{$s := \"xxxxxxxxxxxxxxxx\"}}{{range until 60}}{{$s = printf \"%s%s\" $s $s}}{{end}}{{$s}}";
    let fan = "{{define \"a\"}}{{range until 20}}{{include \"b\" $}}{{end}}{{end}}\
               {{define \"b\"}}{{range until 2000}}{{include \"c\" $}}{{end}}{{end}}\
               {{define \"c\"}}{{range until 100000}}x{{end}}{{end}}{{include \"a\" .}}";
    vec![
        template("nested ranges", big, "limit"),
        template(
            "a range of 10^18",
            "{{range 1000000000000000000}}{{end}}",
            "limit",
        ),
        template("until 10^9", "{{until 1000000000}}", "Error"),
        template("untilStep 10^9", "{{untilStep 0 1000000000 1}}", "Error"),
        template("seq 10^9", "{{seq 1000000000}}", "Error"),
        template("repeat 10^9", "{{repeat 1000000000 \"x\"}}", "limit"),
        template("indent 10^9", "{{indent 1000000000 \"x\"}}", "limit"),
        template(
            "printf width 10^9",
            "{{printf \"%1000000000d\" 1}}{{fail \"end\"}}",
            "Error",
        ),
        template("randAlpha 10^9", "{{randAlpha 1000000000}}", "Error"),
        template("randBytes 10^9", "{{randBytes 1000000000}}", "Error"),
        template("doubling strings", doubling, "limit"),
        template("unbounded output", fan, "limit"),
        template(
            "a map in itself, printed",
            "{{$d := dict}}{{$_ := set $d \"a\" $d}}{{$d}}",
            "limit",
        ),
        template(
            "a map in itself, toYaml",
            "{{$d := dict}}{{$_ := set $d \"a\" $d}}{{toYaml $d}}{{fail \"end\"}}",
            "Error",
        ),
        template(
            "a map in itself, deepCopy",
            "{{$d := dict}}{{$_ := set $d \"a\" $d}}{{deepCopy $d}}",
            "limit",
        ),
        template(
            "a map in itself, compared",
            "{{$d := dict}}{{$_ := set $d \"a\" $d}}{{$e := dict}}{{$_ := set $e \"a\" $e}}{{deepEqual $d $e}}{{fail \"end\"}}",
            "Error",
        ),
        template(
            "a map merged into itself",
            "{{$d := dict \"a\" dict}}{{$_ := set $d.a \"a\" $d}}{{$e := merge (dict \"a\" (dict \"a\" (dict))) $d}}{{toYaml $e}}{{fail \"end\"}}",
            "Error",
        ),
        template(
            "a list of lists, 10^6 deep",
            "{{$l := list}}{{range until 1000000}}{{$l = list $l}}{{end}}{{$l}}",
            "limit",
        ),
        template(
            "a map of maps, 10^6 deep",
            "{{$d := dict}}{{range until 1000000}}{{$d = dict \"a\" $d}}{{end}}{{fail \"end\"}}",
            "limit",
        ),
        template(
            "a regular expression of 10^6",
            "{{regexMatch (repeat 100000 \"(a?){9}\") \"aaaa\"}}{{fail \"end\"}}",
            "Error",
        ),
        template(
            "counted repetition",
            "{{regexMatch \"((((a{1000}){1000}){1000}){1000})\" \"a\"}}{{fail \"end\"}}",
            "Error",
        ),
        template(
            "bcrypt without end",
            "{{range until 100000}}{{htpasswd \"a\" \"b\"}}{{end}}",
            "limit",
        ),
        template("bad UTF-8", b"{{ \"\xff\xfe\" | fail }}\xff".to_vec(), "Error"),
        template(
            "bad UTF-8 in an action",
            b"{{ \xff\xfe }}".to_vec(),
            "templates/t.yaml:1",
        ),
        template(
            "a NUL byte in an action",
            b"{{ \x00 }}".to_vec(),
            "templates/t.yaml:1",
        ),
        template(
            "a name of one megabyte",
            format!("{{{{ .{} | fail }}}}", "a".repeat(1 << 20)),
            "Error",
        ),
        template(
            "an unclosed action of 4 MB",
            format!("{{{{ {}", "x ".repeat(2 << 20)),
            "templates/t.yaml",
        ),
        template(
            "an unclosed comment",
            format!("{{{{/* {}", "x".repeat(1 << 20)),
            "unclosed comment",
        ),
    ]
}

/// Returns cases with deep nesting, which could overflow the stack.
fn nesting() -> Vec<Hostile> {
    let deep =
        |open: &str, close: &str, count: usize| format!("{}{}", open.repeat(count), close.repeat(count));
    vec![
        template(
            "parentheses, 100,000 deep",
            format!("{{{{ {} }}}}", deep("(", ")", 100_000)),
            "templates/t.yaml",
        ),
        template(
            "if, 100,000 deep",
            deep("{{if true}}", "{{end}}", 100_000),
            "Error",
        ),
        template(
            "with, 100,000 deep",
            deep("{{with 1}}", "{{end}}", 100_000),
            "Error",
        ),
        template(
            "else if, 100,000 long",
            format!(
                "{{{{if false}}}}{}{{{{end}}}}{{{{fail \"end\"}}}}",
                "{{else if false}}".repeat(100_000)
            ),
            "Error",
        ),
        template(
            "fields, 100,000 long",
            format!("{{{{ .Values{} }}}}", ".a".repeat(100_000)),
            "Error",
        ),
        template(
            "pipes, 100,000 long",
            format!("{{{{ 1 {} }}}}{{{{fail \"end\"}}}}", "| print ".repeat(100_000)),
            "Error",
        ),
        template(
            "fromYaml, 1,000,000 deep",
            "{{fromYaml (repeat 1000000 \"[\") | toYaml | fail}}",
            "Error",
        ),
        template(
            "fromYaml of flow maps",
            "{{fromYaml (repeat 1000000 \"{a: \") | toYaml | fail}}",
            "Error",
        ),
        template(
            "fromYaml of block lists",
            "{{fromYaml (repeat 1000000 \"- \") | toYaml | fail}}",
            "Error",
        ),
        template(
            "fromJson, 1,000,000 deep",
            "{{fromJson (repeat 1000000 \"[\") | toYaml | fail}}",
            "Error",
        ),
        template(
            "fromToml, 1,000,000 deep",
            "{{fromToml (print \"a = \" (repeat 1000000 \"[\")) | toYaml | fail}}",
            "Error",
        ),
        template(
            "a manifest nested 1,000,000 deep",
            format!("a: {}", "[".repeat(1_000_000)),
            "Error",
        ),
        values_file(
            "values nested 1,000,000 deep",
            format!("a: {}", deep("[", "]", 1_000_000)),
            "values.yaml",
        ),
        values_file(
            "values in 100,000 block maps",
            (0..2_000).fold(String::new(), |text, depth| text + &" ".repeat(depth) + "a:\n"),
            "values.yaml",
        ),
    ]
}

/// Returns a text whose aliases expand exponentially: nine references to nine references, and so on.
fn nested_aliases() -> String {
    let line = |level: usize| {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("a{level}: &a{level} [{items}]\n")
    };
    "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned() + &(1..12).map(line).collect::<Vec<_>>().concat()
}

/// Returns cases with YAML that grows when parsed.
fn yaml() -> Vec<Hostile> {
    let nested_aliases = nested_aliases();
    let merge = |level: usize| {
        let below = level - 1;
        format!(
            "m{level}: &m{level} {{<<: [*m{below}, *m{below}], k{level}: *m{below}, j{level}: *m{below}}}\n"
        )
    };
    let merges = "m0: &m0 {k: v}\n".to_owned() + &(1..30).map(merge).collect::<Vec<_>>().concat();
    vec![
        values_file("a billion laughs", nested_aliases.clone(), "values.yaml"),
        values_file("a billion merges", merges, "values.yaml"),
        values_file("an alias of itself", "a: &a [*a]\n", "values.yaml"),
        values_file("an unknown alias", "a: *missing\n", "values.yaml"),
        values_file("bad UTF-8 in values", b"a: \xff\xfe\n".to_vec(), "values.yaml"),
        values_file("values that are a list", "- a\n", "values.yaml"),
        values_file("a tab for indentation", "a:\n\tb: 1\n", "values.yaml"),
        values_file(
            "one key, 100,000 flow opens",
            format!("a: {}\n", "{".repeat(100_000)),
            "values.yaml",
        ),
        values_file("question marks", "? ".repeat(500_000), "values.yaml"),
        values_file(
            "100,000 anchors on one line",
            format!("a: {}x\n", "&a ".repeat(100_000)),
            "values.yaml",
        ),
        template(
            "a billion laughs in fromYaml",
            format!("{{{{ $y := fromYaml {nested_aliases:?} }}}}{{{{ fail (toYaml $y) }}}}"),
            "Error",
        ),
        Hostile::new(
            "a Chart.yaml of nested aliases",
            vec![(
                "chart/Chart.yaml".into(),
                format!("{nested_aliases}name: x\n").into_bytes(),
            )],
            &["@chart"],
            "Chart.yaml",
        ),
        Hostile::new(
            "a Chart.yaml of 6 MB",
            vec![("chart/Chart.yaml".into(), vec![b'#'; 6 << 20])],
            &["@chart"],
            "Error",
        ),
    ]
}

/// Returns cases with hostile `--set` arguments.
fn values() -> Vec<Hostile> {
    let set = |name: &str, arguments: &[&str], expected| Hostile::new(name, files(&[]), arguments, expected);
    vec![
        set(
            "an index of 10^9",
            &["@chart", "--set", "a[999999999]=1"],
            "index",
        ),
        set("a negative index", &["@chart", "--set", "a[-1]=1"], "index"),
        set(
            "a list in a list, without end",
            &["@chart", "--set", "a={{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"],
            "Error",
        ),
        set(
            "names nested too deeply",
            &[
                "@chart",
                "--set",
                "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
            ],
            "nested",
        ),
        set(
            "JSON that is none",
            &["@chart", "--set-json", "a={\"b\":"],
            "Error",
        ),
        set(
            "a file that is not there",
            &["@chart", "--set-file", "a=/nonexistent/file"],
            "/nonexistent/file",
        ),
        set(
            "a value file that is not there",
            &["@chart", "-f", "/nonexistent/values.yaml"],
            "/nonexistent/values.yaml",
        ),
        set(
            "a chart that is not there",
            &["/nonexistent/chart"],
            "/nonexistent/chart",
        ),
        set("a device as chart", &["/dev/null"], "Error"),
    ]
}

/// Returns cases with schemas with external references or unbounded work.
fn schemas() -> Vec<Hostile> {
    let schema = |name: &str, text: &str, expected| {
        let schema = ("values.schema.json", text.as_bytes().to_vec());
        let values = ("values.yaml", b"a: {a: {a: 1}}\n".to_vec());
        Hostile::new(name, files(&[schema, values]), &["@chart"], expected)
    };
    let deep = format!(
        "{}{}",
        "{\"properties\":{\"a\":".repeat(100_000),
        "}}".repeat(100_000)
    );
    vec![
        schema(
            "a schema that reads a file",
            r#"{"$ref": "file:///etc/passwd"}"#,
            "Error",
        ),
        schema(
            "a schema that reads a path",
            r#"{"$ref": "../../../etc/passwd"}"#,
            "Error",
        ),
        schema(
            "a schema that reads the network",
            r#"{"$ref": "http://192.0.2.1/schema.json"}"#,
            "Error",
        ),
        schema("a schema that refers to itself", r##"{"$ref": "#"}"##, "Error"),
        schema(
            "a schema in a circle",
            r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##,
            "Error",
        ),
        schema("a schema, 100,000 deep", &deep, "Error"),
        schema("a schema that is no JSON", "{", "Error"),
        schema(
            "an unbounded pattern",
            r#"{"properties": {"a": {"propertyNames": {"pattern": "((a{1000}){1000}){1000}"}}}}"#,
            "Error",
        ),
    ]
}

fn archives() -> anyhow::Result<Vec<Hostile>> {
    let archive = |name: &str, bytes: Vec<u8>, expected| {
        Hostile::new(name, vec![("chart.tgz".into(), bytes)], &["@chart.tgz"], expected)
    };
    let chart = || file("chart/Chart.yaml", CHART);
    let link = |kind, link| Entry {
        name: "chart/templates/l.yaml",
        kind,
        link,
        data: b"",
    };
    let many: Vec<String> = (0..150_000).map(|number| format!("chart/f/{number}")).collect();
    let many: Vec<Entry<'_>> = std::iter::once(chart())
        .chain(many.iter().map(|name| file(name, b"")))
        .collect();
    let mut truncated = tgz(&[chart(), file("chart/values.yaml", &vec![b'#'; 100_000])])?;
    truncated.truncate(truncated.len() / 2);
    Ok(vec![
        archive(
            "a gzip bomb of 4 GiB",
            bomb("chart/values.yaml", 4 << 30)?,
            "Error",
        ),
        archive(
            "a template bomb of 1 GiB",
            bomb("chart/templates/t.yaml", 1 << 30)?,
            "Error",
        ),
        archive("150,000 entries", tgz(&many)?, "Error"),
        archive(
            "a path that climbs out",
            tgz(&[chart(), file("chart/../../etc/x", b"x")])?,
            "Error",
        ),
        archive(
            "an absolute path",
            tgz(&[chart(), file("chart//etc/x", b"x")])?,
            "Error",
        ),
        archive(
            "a Windows path",
            tgz(&[chart(), file("chart\\..\\..\\x", b"x")])?,
            "Error",
        ),
        archive(
            "a drive letter",
            tgz(&[chart(), file("chart/C:/x", b"x")])?,
            "Error",
        ),
        archive("a truncated archive", truncated, "Error"),
        archive("not an archive", b"hello, world".to_vec(), "Error"),
        archive("a gzip of nothing", tgz(&[])?, "Error"),
        archive(
            "no Chart.yaml",
            tgz(&[file("chart/values.yaml", b"a: 1")])?,
            "Error",
        ),
        archive(
            "only links",
            tgz(&[link(b'2', "/etc/passwd"), link(b'1', "/etc/passwd")])?,
            "Error",
        ),
        archive(
            "a device for Chart.yaml",
            tgz(&[Entry {
                name: "chart/Chart.yaml",
                kind: b'3',
                link: "",
                data: b"",
            }])?,
            "Error",
        ),
        archive(
            "a bomb inside a bomb",
            tgz(&[
                chart(),
                file("chart/charts/x.tgz", &bomb("x/values.yaml", 1 << 30)?),
            ])?,
            "Error",
        ),
    ])
}
