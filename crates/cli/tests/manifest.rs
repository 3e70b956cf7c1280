//! `mainstay manifest` and `mainstay profile` as processes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

const HEAD: &str = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: empty\n";

/// Runs the command with a text on stdin.
fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("XDG_DATA_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn generate_prints_documents_in_order_of_installation() {
    let file = format!("{HEAD}  components:\n    ztunnel:\n      enabled: true\n");
    let output = run(
        &["manifest", "generate", "-f", "-", "--istio-version", "1.29.1"],
        &file,
    );
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    let kinds: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect();
    assert_eq!(kinds, ["ServiceAccount", "DaemonSet"]);
}

#[test]
fn generate_writes_json_and_directories() {
    let file = format!("{HEAD}  components:\n    ztunnel:\n      enabled: true\n");
    let output = run(&["manifest", "generate", "-f", "-", "-o", "json"], &file);
    assert!(out(&output).starts_with("{\n"), "{}", err(&output));
    assert!(out(&output).contains("\"kind\": \"List\""));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let output = run(
        &[
            "manifest",
            "generate",
            "-f",
            "-",
            "-o",
            "dir",
            "--output-dir",
            path,
        ],
        &file,
    );
    assert!(output.status.success(), "{}", err(&output));
    let written = directory.path().join("Base/Cni/Ztunnel/Ztunnel.yaml");
    assert!(
        std::fs::read_to_string(written)
            .unwrap()
            .contains("kind: DaemonSet")
    );
}

#[test]
fn errors_show_the_line_and_exit_with_one() {
    let file = format!("{HEAD}  hub: a b\n  component: {{}}\n");
    let output = run(&["manifest", "validate", "-f", "-"], &file);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        err(&output),
        "error: spec.component: unknown field
  --> stdin:6:3
  |
6 |   component: {}
  |   ^
hint: did you mean \"components\"?
error: spec.hub: is not a registry with a path (value \"a b\")
  --> stdin:5:3
  |
5 |   hub: a b
  |   ^
hint: write it like registry.example.com/istio
Error: 2 errors in the configuration
hint: fix the configuration, or continue with --force
"
    );
}

#[test]
fn force_prints_errors_as_warnings() {
    let file = format!("{HEAD}  hub: a b\n");
    let output = run(&["manifest", "validate", "-f", "-", "--force"], &file);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).starts_with("warning: spec.hub:"), "{}", err(&output));
    assert_eq!(out(&output), "1 warning, no errors\n");
}

#[test]
fn a_profile_flag_is_overridden_by_files() {
    let output = run(&["manifest", "generate", "--profile", "empty"], "");
    assert!(
        output.status.success() && out(&output).is_empty(),
        "{}",
        err(&output)
    );
    let output = run(&["manifest", "validate", "--profile", "missing", "-f", "-"], HEAD);
    assert_eq!(out(&output), "No problems found\n", "{}", err(&output));
}

#[test]
fn profiles_are_listed_printed_and_compared() {
    let output = run(&["profile", "list", "--istio-version", "1.29.1"], "");
    assert_eq!(
        out(&output),
        "ambient\ndefault\ndemo\nempty\nminimal\nopenshift\nopenshift-ambient\npreview\nremote\nstable\n"
    );
    let output = run(
        &["profile", "dump", "demo", "-p", "components.egressGateways"],
        "",
    );
    assert_eq!(
        out(&output),
        "- enabled: true\n  name: istio-egressgateway\n",
        "{}",
        err(&output)
    );
    let output = run(
        &[
            "profile",
            "dump",
            "ambient",
            "-p",
            "components.cni",
            "-o",
            "flags",
        ],
        "",
    );
    assert_eq!(out(&output), "enabled=true\n", "{}", err(&output));
    let output = run(&["profile", "diff", "default", "minimal"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out(&output).contains("-    - enabled: true\n+    - enabled: false\n"),
        "{}",
        out(&output)
    );
    let output = run(&["profile", "diff", "demo", "demo"], "");
    assert_eq!(
        (output.status.code(), out(&output).as_str()),
        (Some(0), "The profiles are equal\n")
    );
}

#[test]
fn stdin_must_be_the_last_file() {
    let output = run(&["manifest", "generate", "-f", "-", "-f", "x.yaml"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("-f - must be the last file"),
        "{}",
        err(&output)
    );
}

#[test]
fn charts_of_helm_are_converted_with_their_comments() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("istiod.yaml");
    std::fs::write(
        &file,
        "# two zones\nautoscaleMin: 2\nglobal:\n  logAsJson: true # for the collector\n",
    )
    .unwrap();
    let values = format!("istiod={}", file.display());
    let version = ["--istio-version", "1.29.1"];
    let migrate = |more: &[&str]| run(&[&["manifest", "migrate"], more, &version].concat(), "");
    let output = migrate(&["--helm-values", &values]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    let operator = text.split_once("---\n").unwrap().1;
    assert_eq!(
        operator,
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n  values:\n    \
         defaultRevision: default\n    global:\n      logAsJson: true # for the collector\n    pilot:\n      # two zones\n      \
         autoscaleMin: 2\n"
    );
    let from_directory = migrate(&["--helm-release", &directory.path().to_string_lossy()]);
    assert_eq!(out(&from_directory), text.as_str(), "{}", err(&from_directory));
    let sail = migrate(&["--helm-values", &values, "--to", "sail"]);
    assert!(sail.status.success(), "{}", err(&sail));
    assert!(out(&sail).contains("kind: Istio\n"), "{}", out(&sail));
    assert!(
        out(&sail).contains("      # two zones\n      autoscaleMin: 2\n"),
        "{}",
        out(&sail)
    );
    let wrong = migrate(&["--helm-values", "pilot=x.yaml"]);
    assert!(err(&wrong).contains("expected CHART=FILE"), "{}", err(&wrong));
    let none = migrate(&["--to", "istio-operator"]);
    assert!(err(&none).contains("needs charts of Helm"), "{}", err(&none));
}
