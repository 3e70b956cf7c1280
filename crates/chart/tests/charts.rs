//! Prepares whole charts with the real Helm 3 and 4 and with this crate. Values, enabled subcharts,
//! warnings and errors must be equal. A fixture contains the files of a chart and the arguments, in
//! sections named `-- path --`.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons
)]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use mainstay_chart::{
    CallbackError, Dialect, KubeVersion, Layers, PrepareOptions, Warning, load_path, prepare,
};
use mainstay_template::{Limits, Meter, Value};
use mainstay_testkit::{CaseCounts, peer};
use mainstay_yaml::JsonWriter;

/// Template that prints values and subcharts on one line each, independently of YAML formatting.
const PROBE: &str = "v: {{ .Values | toJson }}\ns: {{ keys .Subcharts | sortAlpha | toJson }}\n";

/// Result of one implementation.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Values and subcharts as JSON, or the error message.
    result: Result<(serde_json::Value, Vec<String>), String>,
    /// Warnings, unordered because Go iterates maps in random order.
    warnings: BTreeSet<String>,
}

struct Fixture {
    sections: BTreeMap<String, String>,
    args: Vec<String>,
}

impl Fixture {
    fn parse(text: &str) -> Self {
        let mut sections = BTreeMap::new();
        let mut current = String::new();
        for line in text.split_inclusive('\n') {
            if let Some(name) = line
                .trim_end()
                .strip_prefix("-- ")
                .and_then(|rest| rest.strip_suffix(" --"))
            {
                name.clone_into(&mut current);
                sections.insert(current.clone(), String::new());
            } else {
                sections.entry(current.clone()).or_default().push_str(line);
            }
        }
        let args = sections
            .remove("args")
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect();
        Self { sections, args }
    }

    fn write(&self, directory: &Path) {
        let probe = ("chart/templates/probe.yaml".to_owned(), PROBE.to_owned());
        for (name, text) in self
            .sections
            .iter()
            .map(|(name, text)| (name.clone(), text.clone()))
            .chain([probe])
        {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
    }
}

fn theirs(helm: &Path, directory: &Path, fixture: &Fixture) -> Outcome {
    let output = Command::new(helm)
        .args(["template", "r", "./chart"])
        .args(&fixture.args)
        .current_dir(directory)
        .output()
        .expect("helm runs");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let (warnings, message) = split_stderr(&stderr);
    let line = |key: &str| stdout.lines().find_map(|line| line.strip_prefix(key));
    let result = match (output.status.success(), line("v: "), line("s: ")) {
        (false, _, _) => Err(message),
        (true, Some(values), Some(subcharts)) => Ok((
            serde_json::from_str(values).expect("JSON"),
            serde_json::from_str(subcharts).expect("JSON"),
        )),
        // An ignore rule matches the probe, so Helm does not print it.
        (true, _, _) => Ok((serde_json::Value::Null, Vec::new())),
    };
    Outcome { result, warnings }
}

/// Splits stderr into warnings, which are separate lines, and the error message.
fn split_stderr(stderr: &str) -> (BTreeSet<String>, String) {
    let mut warnings = BTreeSet::new();
    let mut message = String::new();
    for line in stderr.split_inclusive('\n') {
        let bare = line.trim_end();
        let source = bare.split(':').next().unwrap_or_default();
        let is_warning = bare.starts_with("level=WARN")
            || bare.starts_with("level=INFO")
            || bare.starts_with("WARNING: ")
            || source.ends_with(".go");
        if is_warning {
            warnings.insert(bare.to_owned());
        } else if !bare.starts_with("level=ERROR") {
            message.push_str(line);
        }
    }
    // The command line adds this text after rendering has started.
    let message = message.replace("\n\nUse --debug flag to render out invalid YAML", "");
    (warnings, message)
}

fn ours(directory: &Path, fixture: &Fixture, dialect: Dialect) -> Outcome {
    let mut warnings = Vec::new();
    let result = our_result(directory, fixture, dialect, &mut warnings);
    let warnings = warnings.iter().map(|warning| warning.line(dialect)).collect();
    let result = result.map_err(|error| {
        let mut text = format!("Error: {error}");
        let mut source = error.source();
        while let Some(error) = source {
            write!(text, ": {error}").expect("memory");
            source = error.source();
        }
        text + "\n"
    });
    Outcome { result, warnings }
}

type Ours = Result<(serde_json::Value, Vec<String>), Box<dyn Error>>;

fn our_result(directory: &Path, fixture: &Fixture, dialect: Dialect, warnings: &mut Vec<Warning>) -> Ours {
    let (layers, kube_version, skip_schema) = read_args(&fixture.args);
    let mut read = |name: &str| {
        fs::read(directory.join(name))
            .map_err(|_| CallbackError(format!("open {name}: no such file or directory")))
    };
    let values = layers.merge(&mut read, dialect)?;
    let loaded = load_path(&directory.join("chart"), dialect)?;
    let kube_version = KubeVersion::parse(&kube_version, dialect)?;
    let options = PrepareOptions {
        dialect,
        kube_version,
        skip_schema,
    };
    let prepared = prepare(&loaded, &values, &options, warnings)?;
    if prepared.chart.templates.is_empty() {
        return Ok((serde_json::Value::Null, Vec::new()));
    }
    let mut writer = JsonWriter::compact();
    Value::Map(prepared.values.clone())
        .emit(&mut writer, &mut Meter::new(Limits::default()))
        .expect("values are plain");
    let mut subcharts: Vec<_> = prepared
        .chart
        .dependencies
        .iter()
        .map(|sub| sub.name().to_owned())
        .collect();
    subcharts.sort();
    Ok((serde_json::from_str(&writer.finish()?)?, subcharts))
}

fn read_args(args: &[String]) -> (Layers, String, bool) {
    let mut layers = Layers::default();
    let (mut kube_version, mut skip_schema) = ("v1.36.0".to_owned(), false);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--skip-schema-validation" {
            skip_schema = true;
            continue;
        }
        let value = args.next().expect("a value").clone();
        match flag.as_str() {
            "-f" => layers.files.push(value),
            "--set" => layers.set.push(value),
            "--set-string" => layers.strings.push(value),
            "--set-json" => layers.json.push(value),
            "--set-file" => layers.set_files.push(value),
            "--set-literal" => layers.literals.push(value),
            "--kube-version" => kube_version = value,
            other => panic!("unknown flag {other}"),
        }
    }
    (layers, kube_version, skip_schema)
}

fn compare(name: &str, dialect: Dialect) {
    let helm = peer(name).expect("helm");
    let mut counts = CaseCounts::default();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts");
    let mut paths: Vec<_> = fs::read_dir(fixtures)
        .expect("fixtures")
        .map(|entry| entry.expect("a fixture").path())
        .collect();
    paths.sort();
    for path in paths {
        let fixture = Fixture::parse(&fs::read_to_string(&path).expect("a fixture"));
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().canonicalize().expect("a directory");
        fixture.write(&directory);
        let (ours, theirs) = (
            ours(&directory, &fixture, dialect),
            theirs(&helm, &directory, &fixture),
        );
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        counts.count(ours == theirs, || {
            format!("{stem}\n  ours   {ours:?}\n  theirs {theirs:?}")
        });
    }
    counts.assert_all_equal(&format!("charts against {name}"));
}

#[test]
fn charts_are_prepared_as_in_helm_4() {
    compare("helm4", Dialect::Helm4);
}

#[test]
fn charts_are_prepared_as_in_helm_3() {
    compare("helm3", Dialect::Helm3);
}
