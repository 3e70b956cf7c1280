//! `mainstay generate -` as a KRM function: a `ResourceList` in, a `ResourceList` out, whatever happens.
#![allow(clippy::unwrap_used, reason = "a test that cannot run its binary fails")]

use std::io::Write;
use std::process::{Command, Stdio};

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
fn items_are_treated_and_results_added() {
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
fn nothing_to_do_keeps_the_bytes() {
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
    let message = r#"invalid entry \"nonsense\": want NAME#PORT#BYPASS, found 1 part (entries stand between `##`, their three parts between `#`)"#;
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
fn a_validator_changes_nothing() {
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
fn a_coordinator_among_the_items_names_its_namespace() {
    let config = "functionConfig:\n  kind: ConfigMap\n  data: {profile: later}\n";
    let coordinator = "- apiVersion: apps/v1\n  kind: StatefulSet\n  metadata: {name: c, namespace: trust}\n  spec:\n    template:\n      metadata: {labels: {contrast.edgeless.systems/pod-role: coordinator}}\n      spec: {runtimeClassName: contrast-cc}\n";
    let (code, stdout, stderr) = function(&["--report", "json"], &(list(config, "") + coordinator));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("value: coordinator-ready.trust\n"), "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(report.pointer("/profile"), Some(&serde_json::json!("later")));
}
