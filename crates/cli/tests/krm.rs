//! `mainstay generate -` as a KRM function: it reads a `ResourceList` and always prints one, even on errors.
#![allow(clippy::unwrap_used, reason = "a test that cannot run its binary fails")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use mainstay_testkit::{peer, repository_root};
use mainstay_yaml::{Budget, Value};

fn function(args: &[&str], stdin: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A list with this configuration and a pod with these annotations.
fn list(config: &str, annotation: &str) -> String {
    format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n{config}items:\n# the first\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n    namespace: n\n    annotations:\n      internal.config.kubernetes.io/path: 'a/pod.yaml'\n      internal.config.kubernetes.io/index: '2'\n{annotation}  spec:\n    runtimeClassName: contrast-cc\n    containers:\n    - name: c\n      image: busybox\n"
    )
}

const WHERE: &str = r#""resourceRef":{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"n"},"file":{"path":"a/pod.yaml","index":2}"#;

#[test]
fn items_are_injected_and_results_added() {
    let (code, stdout, stderr) = function(&[], &list("", ""));
    assert_eq!(code, 0, "{stderr}");
    let result = format!(
        "results:\n- {{\"message\":\"injected (initializer)\",\"severity\":\"info\",{WHERE},\"tags\":{{\"code\":\"initializer\"}}}}\n"
    );
    assert!(stdout.ends_with(&result), "{stdout}");
    assert!(
        stdout.contains("# the first\n") && stdout.contains("    - name: contrast-initializer"),
        "{stdout}"
    );
}

#[test]
fn a_list_without_workloads_is_unchanged() {
    let given = "apiVersion: config.kubernetes.io/v1alpha1\nkind: ResourceList\nitems: []  # none\n";
    assert_eq!(
        function(&[], given),
        (0, given.to_owned(), "1 input, 0 workloads\n".to_owned())
    );
}

#[test]
fn a_failure_still_prints_the_list() {
    let given = list(
        "",
        "      contrast.edgeless.systems/servicemesh-ingress: nonsense\n",
    );
    let (code, stdout, stderr) = function(&["-q"], &given);
    assert_eq!(code, 2);
    let message = r#"invalid entry \"nonsense\": want NAME#PORT#BYPASS, found 1 part (separate entries with `##` and their three parts with `#`)"#;
    assert_eq!(
        stdout,
        format!(
            "{given}results:\n- {{\"message\":\"failed (refused)\",\"severity\":\"error\",{WHERE},\"tags\":{{\"code\":\"refused\"}}}}\n- {{\"message\":\"{message}\",\"severity\":\"error\",{WHERE},\"tags\":{{\"code\":\"mesh-entry\"}}}}\n"
        )
    );
    assert!(
        stderr.ends_with("Error: 1 object failed; items are unchanged\n"),
        "{stderr}"
    );
}

#[test]
fn configuration_comes_from_a_config_map_or_a_spec() {
    let mesh = "      contrast.edgeless.systems/servicemesh-ingress: ''\n";
    let config_map =
        "functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data:\n    skip-service-mesh: 'true'\n";
    let (code, stdout, stderr) = function(&[], &list(config_map, mesh));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("contrast-initializer") && !stdout.contains("contrast-service-mesh"),
        "{stdout}"
    );
    let own = "functionConfig:\n  apiVersion: mainstay.dev/v1alpha1\n  kind: Generate\n  spec:\n    profile: later\n    skipInitializer: false\n    imageReplacements: |\n      ghcr.io/edgelesssys/contrast/initializer:latest = mine:1\n";
    let (code, stdout, stderr) = function(&[], &list(own, mesh));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("image: mine:1\n") && stdout.contains("service-mesh-proxy:v1.23.1\n"),
        "{stdout}"
    );
}

#[test]
fn a_setting_that_does_not_exist_is_an_error() {
    let given = list(
        "functionConfig:\n  kind: ConfigMap\n  data: {skip-initialiser: 'true'}\n",
        "",
    );
    let (code, stdout, stderr) = function(&[], &given);
    assert_eq!(
        (code, stderr.as_str()),
        (2, "Error: functionConfig: skip-initialiser: unknown setting\n")
    );
    assert_eq!(
        stdout,
        format!(
            "{given}results:\n- {{\"message\":\"functionConfig: skip-initialiser: unknown setting\",\"severity\":\"error\"}}\n"
        )
    );
}

#[test]
fn a_function_with_check_changes_no_items() {
    let given = list("", "");
    let (code, stdout, _) = function(&["--check"], &given);
    assert_eq!(code, 1);
    assert!(
        stdout.starts_with(&given)
            && stdout.contains("\"would be injected (initializer)\",\"severity\":\"error\""),
        "{stdout}"
    );
}

#[test]
fn json_stays_json() {
    let given = r#"{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"runtimeClassName":"contrast-cc","containers":[{"name":"c"}]}}]}"#;
    let (code, stdout, stderr) = function(&[], given);
    assert_eq!(code, 0, "{stderr}");
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        value.pointer("/items/0/spec/initContainers/0/name"),
        Some(&serde_json::json!("contrast-initializer"))
    );
    assert_eq!(
        value.pointer("/results/0/severity"),
        Some(&serde_json::json!("info"))
    );
}

#[test]
fn the_namespace_of_a_coordinator_among_the_items_is_used() {
    let config = "functionConfig:\n  kind: ConfigMap\n  data: {profile: later}\n";
    let coordinator = "- apiVersion: apps/v1\n  kind: StatefulSet\n  metadata: {name: c, namespace: trust}\n  spec:\n    template:\n      metadata: {labels: {contrast.edgeless.systems/pod-role: coordinator}}\n      spec: {runtimeClassName: contrast-cc}\n";
    let (code, stdout, stderr) = function(&["--report", "json"], &(list(config, "") + coordinator));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("value: coordinator-ready.trust\n"), "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(report.pointer("/profile"), Some(&serde_json::json!("later")));
}

/// The files of a directory by name.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    fs::read_dir(directory).unwrap().map(read).collect()
}

/// Runs kyaml's package reader or writer, as `kpt fn source` and `kpt fn sink` do.
fn kyaml(command: &str, directory: &Path, stdin: &str) -> String {
    fs::create_dir_all(directory).unwrap();
    let mut child = Command::new(peer("formats").unwrap())
        .arg(command)
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    // `source` does not read its input.
    let writer = std::thread::spawn(move || drop(pipe.write_all(stdin.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).unwrap()
}

/// Manifests that kyaml cannot read: a directive, and documents without content.
const NOT_READ_BY_KYAML: [&str; 2] = ["209-hand-directive.yaml", "222-hand-empty-documents.yaml"];

/// Writes a package with the manifests of the corpus that kyaml can read; returns their number.
fn package(directory: &Path) -> usize {
    let corpus = repository_root().join("crates/inject/tests/corpus");
    let mut manifests = files(&corpus);
    manifests.retain(|name, _| {
        name.strip_suffix(".yaml").is_some() && !NOT_READ_BY_KYAML.contains(&name.as_str())
    });
    fs::create_dir_all(directory).unwrap();
    for (name, text) in &manifests {
        fs::write(directory.join(name), text).unwrap();
    }
    manifests.len()
}

#[test]
fn a_package_is_restored_by_source_inject_uninject_and_sink() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let count = package(&at("package"));
    assert!(count >= 200, "{count} manifests");
    let source = kyaml("source", &at("package"), "");
    kyaml("sink", &at("plain"), &source);
    let generate = |args: &[&str], list: &str| {
        let (code, stdout, stderr) = function(args, list);
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    let injected = generate(&["-q"], &source);
    assert!(injected.matches("name: contrast-initializer").count() > 100);
    let restored = generate(&["-q", "--uninject"], &injected);
    assert!(restored.starts_with(&source), "the list is not restored");
    kyaml("sink", &at("restored"), &restored);
    assert_eq!(files(&at("restored")), files(&at("plain")));
    // The results of both runs are kept.
    let results = restored.get(source.len()..).unwrap();
    let count = |word: &str| results.matches(&format!("\"message\":\"{word} (")).count();
    assert!(
        count("injected") > 100 && count("injected") == count("removed"),
        "{results}"
    );
    println!(
        "krm: {} files restored through source and sink",
        files(&at("plain")).len()
    );
}

#[test]
fn a_package_written_by_the_sink_is_unchanged_and_can_be_restored() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    package(&at("package"));
    let source = kyaml("source", &at("package"), "");
    kyaml("sink", &at("plain"), &source);
    kyaml("sink", &at("injected"), &function(&["-q"], &source).1);
    let again = kyaml("source", &at("injected"), "");
    let (code, checked, stderr) = function(&["-q", "--check"], &again);
    assert_eq!(code, 0, "{stderr}");
    assert!(!checked.contains("would be"), "{checked}");
    kyaml(
        "sink",
        &at("restored"),
        &function(&["-q", "--uninject"], &again).1,
    );
    // kyaml is not idempotent: each write adds line breaks to the end of a folded scalar.
    kyaml("sink", &at("twice"), &kyaml("source", &at("plain"), ""));
    assert_eq!(files(&at("restored")), files(&at("twice")));
}

#[test]
fn earlier_results_in_block_style_are_kept() {
    let given = list("results:\n  - message: |\n      old\n    severity: info\n", "");
    let (code, stdout, stderr) = function(&["-q"], &given);
    assert_eq!(code, 0, "{stderr}");
    let value = mainstay_yaml::parse(&stdout, &Budget::default()).unwrap();
    let results = value.get("results").and_then(Value::as_list).unwrap();
    let messages: Vec<_> = results
        .iter()
        .filter_map(|it| it.get("message")?.as_str())
        .collect();
    assert_eq!(messages, ["old\n", "injected (initializer)"]);
}

#[test]
fn results_that_cannot_be_extended_are_an_error_and_nothing_is_lost() {
    let given = list("results: {message: old}\n", "");
    let (code, stdout, stderr) = function(&["-q"], &given);
    assert_eq!((code, stdout), (2, given));
    assert_eq!(
        stderr,
        "Error: results: not a list that can be extended; items are unchanged\nhint: write `results` as a list, or remove it\n"
    );
}
