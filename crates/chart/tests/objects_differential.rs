//! Compares every field and method of the objects that are visible in templates with the real Helm 3 and 4.
//! Each line of `tests/objects/*.txt` is an expression, for which output or error message must be equal.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests read fixtures and fail by panicking"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mainstay_chart::{Dialect, RenderEnvironment, Request, load_path, template};
use mainstay_template::NoHost;
use mainstay_testkit::{CaseCounts, peer};

const BOTH: [(Dialect, &str); 2] = [(Dialect::Helm4, "helm4"), (Dialect::Helm3, "helm3")];

/// Rendered text or error message of one expression.
type Outcome = Result<String, String>;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects")
}

fn expressions(name: &str) -> Vec<String> {
    let text = fs::read_to_string(fixtures().join(name)).expect("a fixture");
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file");
        }
    }
}

/// Creates a chart with one template per expression. A template prints its text as JSON.
fn write_chart(expressions: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let chart = directory.path().join("chart");
    copy(&fixtures().join("chart"), &chart);
    for (index, expression) in expressions.iter().enumerate() {
        let text = format!(
            "{{{{ define \"e{index}\" }}}}{{{{ {expression} }}}}{{{{ end }}}}v: {{{{ include \"e{index}\" . | toJson }}}}\n"
        );
        fs::write(chart.join(format!("templates/t{index:04}.yaml")), text).expect("a file");
    }
    directory
}

/// Splits the output into the text of each template.
fn by_template(output: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for document in output.split("---\n# Source: ").skip(1) {
        let (name, text) = document.split_once('\n').expect("a source line");
        found.insert(name.to_owned(), text.trim_end().to_owned());
    }
    found
}

fn theirs(helm: &Path, directory: &Path) -> Outcome {
    let output = Command::new(helm)
        .args(["template", "release-name", "./chart"])
        .current_dir(directory)
        .output()
        .expect("helm runs");
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_message = |line: &&str| !line.starts_with("level=") && !line.starts_with("Use --debug flag");
    let message: Vec<&str> = stderr.lines().filter(is_message).collect();
    Err(message.join("\n").trim_end().to_owned())
}

/// Returns Helm's result for a single expression.
fn run_single(helm: &Path, expression: &str) -> Outcome {
    let text = theirs(helm, write_chart(&[expression]).path())?;
    Ok(by_template(&text).into_values().next().unwrap_or_default())
}

fn ours(directory: &Path, dialect: Dialect) -> Outcome {
    let loaded = load_path(&directory.join("chart"), dialect).expect("a chart");
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    match template(&loaded, &Request::new(dialect), environment) {
        Ok(output) => Ok(String::from_utf8_lossy(&output.text).into_owned()),
        Err(error) => Err(error_chain(&error)),
    }
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

/// Compares all expressions of a fixture. Expressions that succeed in this crate share one run of Helm.
fn check(name: &str, counts: &mut CaseCounts) {
    let all = expressions(name);
    for (dialect, helm_name) in BOTH {
        let helm = peer(helm_name).expect("helm");
        let (mut succeeding, mut failing) = (Vec::new(), Vec::new());
        for expression in &all {
            let directory = write_chart(&[expression]);
            match ours(directory.path(), dialect) {
                Ok(_) => succeeding.push(expression.as_str()),
                Err(message) => failing.push((expression, directory, message)),
            }
        }
        let together = write_chart(&succeeding);
        let (ours, theirs_together) = (ours(together.path(), dialect), theirs(&helm, together.path()));
        let pages = |seen: &Outcome| seen.as_ref().map(|text| by_template(text)).unwrap_or_default();
        let (our_pages, their_pages) = (pages(&ours), pages(&theirs_together));
        for (index, expression) in succeeding.iter().enumerate() {
            let template = format!("objects/templates/t{index:04}.yaml");
            let ours = our_pages.get(&template).cloned();
            let theirs = match their_pages.get(&template) {
                Some(text) => Ok(text.clone()),
                // The shared run failed: an expression that fails only in Helm must not hide the results of
                // the others.
                None => run_single(&helm, expression),
            };
            counts.count(ours.is_some() && ours == theirs.clone().ok(), || {
                format!("{helm_name} {expression}\n  ours   {ours:?}\n  theirs {theirs:?}")
            });
        }
        for (expression, directory, ours) in failing {
            let theirs = theirs(&helm, directory.path());
            counts.count(theirs.as_ref() == Err(&ours), || {
                format!("{helm_name} {expression}\n  ours   {ours:?}\n  theirs {theirs:?}")
            });
        }
    }
}

#[test]
fn capabilities_are_those_of_a_release_build() {
    let mut counts = CaseCounts::default();
    check("capabilities.txt", &mut counts);
    println!("harden release-build: {counts}");
    counts.assert_all_equal(".Capabilities against helm 3 and 4");
}

#[test]
fn objects_have_helms_fields_and_methods() {
    let mut counts = CaseCounts::default();
    for name in ["values.txt", "chart.txt", "files.txt"] {
        check(name, &mut counts);
    }
    println!("harden methods: {counts}");
    counts.assert_all_equal("objects of templates against helm 3 and 4");
}
