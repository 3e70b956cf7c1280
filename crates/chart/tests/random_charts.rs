//! Compares the real Helm with this crate on random values and random schemas. Lines are compared as a set,
//! since Go iterates maps in random order.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::format_collect,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use mainstay_chart::{
    CallbackError, Dialect, KubeVersion, Layers, PrepareOptions, Warning, load_path, prepare,
};
use mainstay_template::{Limits, Meter, Value};
use mainstay_testkit::{CaseCounts, Random, case_count, peer};
use mainstay_yaml::JsonWriter;

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

fn metadata(name: &str, more: &str) -> String {
    format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n{more}")
}

/// Generates a flow map with few distinct keys. Values are null, tables or scalars.
fn tree(random: &mut Random, depth: usize) -> String {
    let count = random.below(4);
    let mut entries = Vec::new();
    let mut used = BTreeSet::new();
    for _ in 0..count {
        let key = *random.pick(&["a", "b", "global", "db", "deep", "exports", "on"]);
        if used.insert(key) {
            entries.push(format!("{key}: {}", node(random, depth)));
        }
    }
    format!("{{{}}}", entries.join(", "))
}

fn node(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 6 } else { 12 }) {
        0 | 1 => "null".into(),
        2 => "true".into(),
        3 => "1".into(),
        4 => "x".into(),
        5 => "[1, null, {a: null}]".into(),
        _ => tree(random, depth - 1),
    }
}

/// Generates the dependencies of a chart.
fn random_dependencies(random: &mut Random, name: &str) -> String {
    let condition = *random.pick(&["", ", condition: on", ", condition: \"a.on,b\"", ", tags: [a]"]);
    let imports = *random.pick(&[
        "",
        ", import-values: [a, b]",
        ", import-values: [{child: a, parent: b}, {child: a.b, parent: .}]",
    ]);
    match random.below(3) {
        0 => String::new(),
        _ => format!("dependencies:\n- {{name: {name}, version: '*'{condition}{imports}}}\n"),
    }
}

fn write_chart(directory: &Path, random: &mut Random) {
    let outer = random_dependencies(random, "db");
    write(directory, "chart/Chart.yaml", &metadata("app", &outer));
    write(directory, "chart/values.yaml", &tree(random, 4));
    let inner = random_dependencies(random, "deep");
    write(directory, "chart/charts/db/Chart.yaml", &metadata("db", &inner));
    write(directory, "chart/charts/db/values.yaml", &tree(random, 4));
    write(
        directory,
        "chart/charts/db/charts/deep/Chart.yaml",
        &metadata("deep", ""),
    );
    write(
        directory,
        "chart/charts/db/charts/deep/values.yaml",
        &tree(random, 3),
    );
    write(directory, "user.yaml", &tree(random, 4));
    write(
        directory,
        "chart/templates/probe.yaml",
        "v: {{ .Values | toJson }}\n",
    );
}

/// Values as JSON or the error message, and the warnings.
type Outcome = (Result<serde_json::Value, String>, BTreeSet<String>);

fn theirs(helm: &Path, directory: &Path) -> Outcome {
    let output = Command::new(helm)
        .args(["template", "r", "./chart", "-f", "user.yaml"])
        .current_dir(directory)
        .output()
        .expect("helm runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let (said, message): (Vec<&str>, Vec<&str>) = stderr
        .lines()
        .filter(|line| !line.starts_with("level=ERROR"))
        .partition(|line| {
            line.starts_with("level=") || line.split(':').next().unwrap_or_default().ends_with(".go")
        });
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = match stdout.lines().find_map(|line| line.strip_prefix("v: ")) {
        Some(json) => Ok(serde_json::from_str(json).expect("JSON")),
        None => Err(message.join("\n")),
    };
    (result, said.into_iter().map(str::to_owned).collect())
}

fn ours(directory: &Path, dialect: Dialect) -> Outcome {
    let mut warnings = Vec::new();
    let result = our_values(directory, dialect, &mut warnings);
    let said = warnings.iter().map(|warning| warning.line(dialect)).collect();
    (result.map_err(|error| error_chain(&*error)), said)
}

fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("Error: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, ": {error}").expect("memory");
        source = error.source();
    }
    text
}

fn our_values(
    directory: &Path,
    dialect: Dialect,
    warnings: &mut Vec<Warning>,
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let layers = Layers {
        files: vec!["user.yaml".into()],
        ..Layers::default()
    };
    let values = layers.merge(
        &mut |name| fs::read(directory.join(name)).map_err(|error| CallbackError(error.to_string())),
        dialect,
    )?;
    let loaded = load_path(&directory.join("chart"), dialect)?;
    let kube_version = KubeVersion::parse("v1.36.0", dialect)?;
    let options = PrepareOptions {
        dialect,
        kube_version,
        skip_schema: false,
    };
    let prepared = prepare(&loaded, &values, &options, warnings)?;
    let mut writer = JsonWriter::compact();
    let meter = &mut Meter::new(Limits::default());
    Value::Map(prepared.values)
        .emit(&mut writer, meter)
        .expect("values are plain");
    Ok(serde_json::from_str(&writer.finish()?)?)
}

fn compare_values(name: &str, dialect: Dialect, seed: u64) {
    let helm = peer(name).expect("helm");
    let mut random = Random::new(seed);
    let mut counts = CaseCounts::default();
    for _ in 0..case_count(2000).div_ceil(50) {
        let directory = tempfile::tempdir().expect("a directory");
        write_chart(directory.path(), &mut random);
        let (ours, theirs) = (ours(directory.path(), dialect), theirs(&helm, directory.path()));
        counts.count(ours == theirs, || {
            let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap_or_default();
            let files = [
                "chart/Chart.yaml",
                "chart/values.yaml",
                "chart/charts/db/Chart.yaml",
                "chart/charts/db/values.yaml",
                "chart/charts/db/charts/deep/values.yaml",
                "user.yaml",
            ];
            let files: String = files
                .iter()
                .map(|name| format!("-- {name} --\n{}\n", read(name)))
                .collect();
            format!("{files}  ours   {ours:?}\n  theirs {theirs:?}")
        });
    }
    counts.assert_all_equal(&format!("random values against {name}"));
}

#[test]
fn random_values_coalesce_as_in_helm_4() {
    compare_values("helm4", Dialect::Helm4, 4);
}

#[test]
fn random_values_coalesce_as_in_helm_3() {
    compare_values("helm3", Dialect::Helm3, 3);
}

/// Generates a random schema, which is sometimes invalid.
fn schema(random: &mut Random, depth: usize) -> String {
    let mut keywords = Vec::new();
    for _ in 0..=random.below(3) {
        keywords.push(keyword(random, depth));
    }
    let names: BTreeSet<String> = keywords
        .iter()
        .map(|keyword| keyword.split(':').next().unwrap_or_default().to_owned())
        .collect();
    let kept = names
        .iter()
        .filter_map(|name| keywords.iter().find(|keyword| keyword.starts_with(name.as_str())));
    format!("{{{}}}", kept.cloned().collect::<Vec<_>>().join(","))
}

fn keyword(random: &mut Random, depth: usize) -> String {
    let simple = [
        r#""type":"string""#,
        r#""type":["integer","null","object"]"#,
        r#""type":"array""#,
        r#""enum":["x",1,null]"#,
        r#""enum":[{"a":1}]"#,
        r#""const":true"#,
        r#""minimum":1.5"#,
        r#""exclusiveMaximum":1"#,
        r#""multipleOf":2"#,
        r#""minLength":2"#,
        r#""pattern":"^y""#,
        r#""required":["a","b"]"#,
        r#""minProperties":2"#,
        r#""maxItems":1"#,
        r#""uniqueItems":true"#,
        r#""dependentRequired":{"a":["b"]}"#,
        r##""$ref":"#/$defs/d""##,
        r#""additionalProperties":false"#,
        r#""unevaluatedProperties":false"#,
        r#""minLength":-1"#,
        r#""type":"nonsense""#,
        r#""propertyNames":{"maxLength":1}"#,
    ];
    if depth == 0 || random.chance(1, 2) {
        return (*random.pick(&simple)).to_owned();
    }
    let one = schema(random, depth - 1);
    let two = schema(random, depth - 1);
    match random.below(10) {
        0 | 1 => format!(r#""properties":{{"a":{one},"b":{two}}}"#),
        2 => format!(r#""additionalProperties":{one}"#),
        3 => format!(r#""items":{one}"#),
        4 => format!(r#""anyOf":[{one},{two}]"#),
        5 => format!(r#""oneOf":[{one},{two}]"#),
        6 => format!(r#""allOf":[{one},{two}]"#),
        7 => format!(r#""not":{one}"#),
        8 => format!(r#""if":{one},"then":{two}"#),
        _ => format!(r#""contains":{one}"#),
    }
}

const DRAFTS: [&str; 5] = [
    "",
    r#""$schema":"https://json-schema.org/draft/2019-09/schema","#,
    r#""$schema":"http://json-schema.org/draft-07/schema#","#,
    r#""$schema":"http://json-schema.org/draft-06/schema#","#,
    r#""$schema":"http://json-schema.org/draft-04/schema#","#,
];

/// Writes a chart with many subcharts, each with a schema. Helm validates all of them in one run.
fn write_schemas(directory: &Path, random: &mut Random, count: usize) {
    let names: Vec<String> = (0..count).map(|at| format!("s{at:03}")).collect();
    let wanted: String = names
        .iter()
        .map(|name| format!("- {{name: {name}, version: '*'}}\n"))
        .collect();
    write(
        directory,
        "chart/Chart.yaml",
        &metadata("app", &format!("dependencies:\n{wanted}")),
    );
    write(directory, "user.yaml", "{}\n");
    write(directory, "chart/templates/probe.yaml", "v: {}\n");
    for name in names {
        let draft = *random.pick(&DRAFTS);
        let body = format!(
            r#"{{{draft}"$defs":{{"d":{}}},"properties":{{"v":{}}}}}"#,
            schema(random, 1),
            schema(random, 3)
        );
        write(
            directory,
            &format!("chart/charts/{name}/Chart.yaml"),
            &metadata(&name, ""),
        );
        write(
            directory,
            &format!("chart/charts/{name}/values.schema.json"),
            &body,
        );
        write(
            directory,
            &format!("chart/charts/{name}/values.yaml"),
            &format!("v: {}\n", node(random, 2)),
        );
    }
}

/// Returns the violations of each chart, sorted.
fn violations(text: &str) -> Vec<(String, Vec<String>)> {
    let mut charts: Vec<(String, Vec<String>)> = Vec::new();
    for line in text
        .lines()
        .flat_map(insert_omitted_line_break)
        .filter(|line| !line.is_empty())
    {
        if line.len() == 5 && line.starts_with('s') && line.ends_with(':') {
            charts.push((line, Vec::new()));
        } else if let Some((_, lines)) = charts.last_mut() {
            lines.push(sorted_names(&line));
        }
    }
    for (_, lines) in &mut charts {
        lines.sort();
    }
    charts
}

/// Sorts the names of additional properties, because their order is random in Go.
fn sorted_names(line: &str) -> String {
    let Some((head, rest)) = line.split_once("additional properties ") else {
        return line.to_owned();
    };
    let (names, tail) = rest.split_once(" not allowed").unwrap_or((rest, ""));
    let mut names: Vec<_> = names.split(", ").collect();
    names.sort_unstable();
    format!(
        "{head}additional properties {} not allowed{tail}",
        names.join(", ")
    )
}

/// Adds the line break that Helm omits after an invalid schema.
fn insert_omitted_line_break(line: &str) -> Vec<String> {
    let at = line.len().saturating_sub(5);
    match line.split_at_checked(at) {
        Some((head, tail))
            if !head.is_empty()
                && tail.starts_with('s')
                && tail.ends_with(':')
                && tail[1..4].chars().all(|c| c.is_ascii_digit()) =>
        {
            vec![head.to_owned(), tail.to_owned()]
        }
        _ => vec![line.to_owned()],
    }
}

#[test]
fn random_schemas_are_checked_as_in_helm_4() {
    const BATCH: usize = 100;
    let helm = peer("helm4").expect("helm");
    let mut random = Random::new(2020);
    let mut counts = CaseCounts::default();
    for _ in 0..case_count(2000).div_ceil(1000) {
        let directory = tempfile::tempdir().expect("a directory");
        write_schemas(directory.path(), &mut random, BATCH);
        let text = |seen: Outcome| seen.0.expect_err("at least one chart violates its schema");
        let ours = violations(&text(ours(directory.path(), Dialect::Helm4)));
        let theirs = violations(&text(theirs(&helm, directory.path())));
        for at in 0..BATCH {
            let name = format!("s{at:03}:");
            let find =
                |side: &[(String, Vec<String>)]| side.iter().find(|(chart, _)| *chart == name).cloned();
            let (ours, theirs) = (find(&ours), find(&theirs));
            counts.count(ours == theirs, || {
                let read = |file: &str| {
                    let path = format!("chart/charts/{}/{file}", name.trim_end_matches(':'));
                    fs::read_to_string(directory.path().join(path)).unwrap_or_default()
                };
                let (schema, values) = (read("values.schema.json"), read("values.yaml"));
                format!("{schema}\n{values}  ours   {ours:#?}\n  theirs {theirs:#?}")
            });
        }
    }
    counts.assert_all_equal("random schemas");
}
