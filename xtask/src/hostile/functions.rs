//! Template functions with unbounded results or cost. Every function of a family gets the same input.

use super::Hostile;
use super::cases::{files, template};

/// Returns all cases.
pub(super) fn all() -> Vec<Hostile> {
    let mut cases = shared_trees();
    cases.extend(kept_values());
    cases.extend(expressions());
    cases.extend(parsers());
    cases.extend(cryptography());
    cases.extend(chart_files());
    cases.push(
        template(
            "4,000 appends",
            "{{ $l := list }}{{ range until 4000 }}{{ $l = append $l . }}{{ end }}n: {{ len $l }}",
            "",
        )
        .accepted(),
    );
    cases
}

/// Returns cases with a tree of shared parts, which is small in memory and large as text.
fn shared_trees() -> Vec<Hostile> {
    let lists = "{{ $t := list 1 2 3 }}{{ range until 40 }}{{ $t = list $t $t }}{{ end }}";
    let maps = "{{ $t := dict \"a\" 1 }}{{ range until 40 }}{{ $t = dict \"a\" $t \"b\" $t }}{{ end }}";
    let tables =
        "{{ $t := dict \"a\" 1 }}{{ range until 40 }}{{ $t = dict \"a\" (list $t $t) \"b\" $t }}{{ end }}";
    let functions = [
        "toToml",
        "toYaml",
        "toYamlPretty",
        "toJson",
        "toPrettyJson",
        "toRawJson",
        "toString",
        "quote",
        "printf \"%v\"",
        "printf \"%#v\"",
        "deepCopy",
        "deepEqual $t",
        "print",
        "html",
        "mustToToml",
        "mustToYaml",
    ];
    let shapes = [("lists", lists), ("maps", maps), ("tables", tables)];
    let mut cases = Vec::new();
    for function in functions {
        for (shape, text) in shapes {
            let text = format!("{text}{{{{ $d := dict \"t\" $t }}}}{{{{ $x := $d | {function} }}}}");
            cases.push(template(format!("{function} of shared {shape}"), text, "").or_accepted());
        }
    }
    cases
}

/// Returns cases with functions that copy their argument, where all copies stay live.
fn kept_values() -> Vec<Hostile> {
    let lists = [
        "append $v 1",
        "prepend $v 1",
        "concat $v $v",
        "reverse $v",
        "rest $v",
        "initial $v",
        "uniq $v",
        "compact $v",
        "without $v 7",
        "chunk 3 $v",
        "toStrings $v",
        "sortAlpha $v",
        "until 5000",
    ];
    let maps = [
        "merge (dict) $m",
        "mergeOverwrite (dict) $m",
        "deepCopy $m",
        "omit $m \"a\"",
        "keys $m",
        "values $m",
        "pluck \"k1\" $m $m",
    ];
    let begin = "{{ $v := until 5000 }}{{ $m := dict }}{{ range until 2000 }}{{ $_ := set $m (print \"k\" .) . }}{{ end }}{{ $all := list }}";
    let kept = |call: &str| {
        let text = format!(
            "{begin}{{{{ range until 100000 }}}}{{{{ $all = append $all ({call}) }}}}{{{{ end }}}}{{{{ fail \"end\" }}}}"
        );
        template(format!("kept: {call}"), text, "limit")
    };
    lists.iter().chain(&maps).map(|call| kept(call)).collect()
}

/// Returns cases with expensive regular expressions.
fn expressions() -> Vec<Hostile> {
    let many = |call: &str| {
        let text = format!(
            "{{{{ range until 200000 }}}}{{{{ $x := {} }}}}{{{{ end }}}}{{{{ fail \"end\" }}}}",
            call.replace("PATTERN", "(print \"a(b|c)*\" .)")
        );
        template(
            format!("200,000 patterns: {}", call.split(' ').next().unwrap_or_default()),
            text,
            "limit",
        )
    };
    let too_large = |call: &str| {
        let text = format!(
            "{{{{ range until 20000 }}}}{{{{ $x := {} }}}}{{{{ end }}}}{{{{ fail \"end\" }}}}",
            call.replace("PATTERN", "(print \"(\\\\pL{900}|b)\" .)")
        );
        template(format!("20,000 large patterns: {call}"), text, "limit")
    };
    let long = |call: &str| {
        let text = format!(
            "{{{{ $t := repeat 30000000 \"a\" }}}}{{{{ $x := {call} }}}}{{{{ $y := $x }}}}{{{{ fail \"end\" }}}}"
        );
        template(format!("30 MB: {call}"), text, "Error")
    };
    let mut cases: Vec<Hostile> = [
        "regexMatch PATTERN \"x\"",
        "regexFind PATTERN \"x\"",
        "regexFindAll PATTERN \"x\" -1",
        "regexReplaceAll PATTERN \"x\" \"y\"",
        "regexReplaceAllLiteral PATTERN \"x\" \"y\"",
        "regexSplit PATTERN \"x\" -1",
        "mustRegexMatch PATTERN \"x\"",
    ]
    .map(many)
    .into();
    cases.push(too_large("regexMatch PATTERN \"x\""));
    cases.extend(
        [
            "regexFindAll \"a\" $t -1",
            "regexSplit \"a\" $t -1",
            "regexSplit \"\" $t -1",
            "regexReplaceAll \"a\" $t \"bbbbbbbb\"",
            "regexMatch \"(a|a)*(a|a)*(a|a)*b\" $t",
            "splitList \"a\" $t",
            "split \"a\" $t",
            "splitn \"a\" 9999999 $t",
            "replace \"a\" \"bbbbbbbb\" $t",
            "wrapWith 1 \"xxxx\" $t",
            "wrap 1 $t",
            "nindent 8 (replace \"a\" \"\\n\" $t)",
            "list $t $t $t $t $t $t | join $t",
            "substr 0 20000000 $t | snakecase",
            "b64enc $t | b32enc",
            "toStrings (list $t $t) | join $t | len",
        ]
        .map(long),
    );
    cases
}

/// Returns cases with functions that parse text.
fn parsers() -> Vec<Hostile> {
    let dense = [
        ("fromYaml", "(print \"a: [\" (repeat 5000000 \"1,\") \"1]\")"),
        ("fromYamlArray", "(print \"[\" (repeat 5000000 \"1,\") \"1]\")"),
        (
            "fromJson",
            "(print \"{\\\"a\\\": [\" (repeat 5000000 \"1,\") \"1]}\")",
        ),
        ("fromJsonArray", "(print \"[\" (repeat 5000000 \"1,\") \"1]\")"),
        ("fromToml", "(print \"a = [\" (repeat 5000000 \"1,\") \"1]\")"),
    ];
    let small = [
        ("fromYaml", "(print \"a: [\" (repeat 1000 \"1,\") \"1]\")"),
        ("fromYamlArray", "(print \"[\" (repeat 1000 \"1,\") \"1]\")"),
        (
            "fromJson",
            "(print \"{\\\"a\\\": [\" (repeat 1000 \"1,\") \"1]}\")",
        ),
        ("fromJsonArray", "(print \"[\" (repeat 1000 \"1,\") \"1]\")"),
        ("fromToml", "(print \"a = [\" (repeat 1000 \"1,\") \"1]\")"),
    ];
    let mut cases = Vec::new();
    for (function, text) in dense {
        let text = format!("{{{{ $x := {function} {text} }}}}");
        cases.push(template(format!("{function} of 5,000,000 numbers"), text, "").or_accepted());
    }
    for (function, text) in small {
        let text = format!(
            "{{{{ $t := {text} }}}}{{{{ $all := list }}}}{{{{ range until 100000 }}}}{{{{ $all = append $all ({function} $t) }}}}{{{{ end }}}}"
        );
        cases.push(template(format!("repeated {function}, kept"), text, "limit"));
    }
    for (function, text) in small {
        let text = format!(
            "{{{{ $t := {text} }}}}{{{{ range until 1000000 }}}}{{{{ $x := {function} $t }}}}{{{{ end }}}}"
        );
        cases.push(template(format!("repeated {function}"), text, "limit"));
    }
    let aliases = "(print \"a: &a \" (repeat 1000000 \"x\") \"\\nb: [\" (repeat 5000 \"*a,\") \"1]\")";
    let nested = "(print \"a: &a [\" (repeat 100000 \"x,\") \"x]\\nb: [\" (repeat 1000 \"*a,\") \"1]\")";
    cases.push(template(
        "fromYaml, aliases of a long string",
        format!("{{{{ $x := fromYaml {aliases} }}}}{{{{ fail (default \"\" $x.Error) }}}}"),
        "bytes from aliases",
    ));
    cases.push(template(
        "fromYaml, aliases of a long list",
        format!("{{{{ $x := fromYaml {nested} }}}}{{{{ fail (default \"\" $x.Error) }}}}"),
        "alias",
    ));
    cases
}

/// A private key of 16384 bits.
const LARGE_KEY: &[u8] = include_bytes!("large-key.pem");

fn cryptography() -> Vec<Hostile> {
    let with_key = |call: &str| {
        let text =
            format!("{{{{ $k := .Files.Get \"key.pem\" }}}}{{{{ $x := {call} }}}}{{{{ fail \"end\" }}}}");
        let files = files(&[
            ("templates/t.yaml", text.into_bytes()),
            ("key.pem", LARGE_KEY.to_vec()),
        ]);
        Hostile::new(format!("16384 bits: {call}"), files, &["@chart"], "limit")
    };
    let repeated = |call: &str| {
        let text = format!("{{{{ range until 100000 }}}}{{{{ $x := {call} }}}}{{{{ end }}}}");
        template(format!("repeated {call}"), text, "limit")
    };
    let mut cases: Vec<Hostile> = [
        "genCAWithKey \"ca\" 1 $k",
        "genSelfSignedCertWithKey \"a\" nil nil 1 $k",
        "genSignedCertWithKey \"a\" nil nil 1 (genCA \"ca\" 1) $k",
        "buildCustomCert (b64enc $k) (b64enc $k)",
    ]
    .map(with_key)
    .into();
    let keys = [
        "genPrivateKey \"rsa\"",
        "genPrivateKey \"dsa\"",
        "genCA \"a\" 1",
        "genSelfSignedCert \"a\" nil nil 1",
        "derivePassword 1 \"long\" \"p\" \"u\" \"s\"",
        "bcrypt \"a\"",
    ];
    cases.extend(keys.map(|call| repeated(call).with_keys()));
    let others = [
        "genPrivateKey \"ecdsa\"",
        "genPrivateKey \"ed25519\"",
        "sha256sum (repeat 100000 \"a\")",
        "randAlphaNum 10000",
        "shuffle (repeat 10000 \"a\")",
    ];
    cases.extend(others.map(repeated));
    // Cheap enough for 100,000 calls.
    cases.push(repeated("encryptAES \"k\" \"text\"").or_accepted());
    cases
}

/// Returns cases with `.Files` of a chart that contains 40 MB of files.
fn chart_files() -> Vec<Hostile> {
    let calls = [
        ".Files.AsSecrets",
        ".Files.AsConfig",
        ".Files.Glob \"**\"",
        ".Files.Lines \"f/1\"",
        ".Files.GetBytes \"f/1\"",
        ".Files.Get \"f/1\"",
        "toYaml .Files",
        "print .Files",
    ];
    let case = |call: &&str| {
        let text = format!(
            "{{{{ $all := list }}}}{{{{ range until 10000 }}}}{{{{ with $ }}}}{{{{ $all = append $all ({call}) }}}}{{{{ end }}}}{{{{ end }}}}"
        );
        let mut files = files(&[("templates/t.yaml", text.into_bytes())]);
        let content = b"0123456\n".repeat(500_000);
        files.extend((0..10).map(|number| (format!("chart/f/{number}"), content.clone())));
        Hostile::new(format!("40 MB of files: {call}"), files, &["@chart"], "").or_accepted()
    };
    calls.iter().map(case).collect()
}
