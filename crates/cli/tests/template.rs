//! `mainstay template` as a process: output streams, exit codes and files on disk.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its directory fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn mainstay(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .arg("template")
        .args(args)
        .current_dir(directory)
        .env("KUBECONFIG", "/nonexistent")
        .env_remove("HELM_NAMESPACE")
        .output()
        .unwrap()
}

/// Creates a directory with a chart `c` with one template, `text`.
fn chart(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("c/templates")).unwrap();
    std::fs::write(
        directory.path().join("c/Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    std::fs::write(directory.path().join("c/templates/a.yaml"), text).unwrap();
    directory
}

fn check_failure(text: &str, args: &[&str], expected: &str) {
    let directory = chart(text);
    let output = mainstay(directory.path(), args);
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), &b""[..])
    );
}

#[test]
fn manifests_go_to_stdout() {
    let directory = chart("kind: {{ .Release.Namespace }}-{{ .Release.Name }}\n");
    let output = mainstay(directory.path(), &["r", "c", "-n", "x", "--namespace=n"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "---\n# Source: c/templates/a.yaml\nkind: n-r\n"
    );
    assert!(output.status.success());
}

#[test]
fn errors_start_with_the_message_of_helm_and_end_with_the_location() {
    check_failure(
        "a: b\nc: {{ .Values.x.y }}\n",
        &["c"],
        "Error: c/templates/a.yaml:2:13\n  executing \"c/templates/a.yaml\" at <.Values.x.y>:\n    nil pointer evaluating interface {}.y\n\nUse --debug flag to render out invalid YAML\n --> c/templates/a.yaml:2:14 (template error)\n  |\n2 | c: {{ .Values.x.y }}\n  |              ^\n",
    );
    check_failure(
        "a: b\n",
        &["c", "--set", "x=1,a"],
        "Error: failed parsing --set data: key \"a\" has no value\n --> --set:1:6 (values error)\n  |\n1 | x=1,a\n  |      ^\n",
    );
    check_failure(
        "a: b\n",
        &["c", "--bogus"],
        "Error: unknown flag: --bogus\nhint: remove it; run `mainstay template --help` to list the flags\n",
    );
    check_failure(
        "a: b\n",
        &["./nope"],
        "Error: path \"./nope\" not found\nhint: name a chart's directory or archive, or an embedded one such as `catalog:istiod@1.29.1`\n",
    );
}

#[test]
fn flags_that_need_a_cluster_are_rejected() {
    let directory = chart("a: b\n");
    for flag in [
        "--validate",
        "--dry-run=server",
        "--dependency-update",
        "--verify",
    ] {
        let output = mainstay(directory.path(), &["c", flag]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flag}");
        assert!(
            said.contains("rendering works offline") && said.contains("hint: "),
            "{flag}: {said}"
        );
    }
}

#[test]
fn dns_lookups_are_accepted_and_return_nothing() {
    let directory = chart("a: {{ getHostByName \"example.com\" | quote }}\n");
    let output = mainstay(directory.path(), &["c", "--enable-dns"]);
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.ends_with("a: \"\"\n"), "{stdout}");
}

#[test]
fn a_remote_schema_reference_names_the_flag_that_skips_it() {
    let directory = chart("a: b\n");
    let schema = r#"{"properties": {"x": {"$ref": "https://example.com/schema.json"}}}"#;
    std::fs::write(directory.path().join("c/values.schema.json"), schema).unwrap();
    let output = mainstay(directory.path(), &["c", "--set", "x=1"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("hint: use --skip-schema-validation"), "{stderr}");
    let output = mainstay(
        directory.path(),
        &["c", "--set", "x=1", "--skip-schema-validation"],
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn files_are_written_all_or_none() {
    let directory = chart("kind: A\n---\nkind: B\n");
    let output = mainstay(directory.path(), &["r", "c", "--output-dir", "out"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "wrote out/c/templates/a.yaml\nwrote out/c/templates/a.yaml\n\n"
    );
    let written = std::fs::read_to_string(directory.path().join("out/c/templates/a.yaml")).unwrap();
    assert_eq!(
        written,
        "---\n# Source: c/templates/a.yaml\nkind: A\n\n---\n# Source: c/templates/a.yaml\nkind: B\n\n"
    );
    std::fs::create_dir_all(directory.path().join("half")).unwrap();
    std::fs::write(directory.path().join("half/c"), "in the way").unwrap();
    let output = mainstay(directory.path(), &["r", "c", "--output-dir", "half"]);
    assert_eq!(output.status.code(), Some(1));
    let left: Vec<_> = std::fs::read_dir(directory.path().join("half"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_post_renderer_sees_the_manifests() {
    let directory = chart("kind: A\n");
    let output = mainstay(
        directory.path(),
        &["c", "--post-renderer", "sed", "--post-renderer-args", "s/A/Z/"],
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "---\n# Source: c/templates/a.yaml\nkind: Z\n"
    );
    let output = mainstay(directory.path(), &["c", "--post-renderer", "false"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_pipe_is_not_reported() {
    let directory = chart("a: {{ repeat 200000 \"x\" }}\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["template", "c"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(141));
}
