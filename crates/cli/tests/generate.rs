//! `mainstay generate` as a process: what it prints where, how it exits, and what it leaves on the disk.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its folder fails")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A pod that asks for the initializer.
const POD: &str = "# mine
apiVersion: v1
kind: Pod
metadata:
  name: p  # the name
spec:
  runtimeClassName: contrast-cc
  containers:
  - name: c
    image: 'nginx'
";

/// The same after injection.
const INJECTED: &str = "# mine
apiVersion: v1
kind: Pod
metadata:
  name: p  # the name
spec:
  runtimeClassName: contrast-cc
  initContainers:
  - name: contrast-initializer  # mainstay:injected
    image: ghcr.io/edgelesssys/contrast/initializer:v0.7.0
    env:
    - name: COORDINATOR_HOST
      value: coordinator
    resources:
      requests:
        memory: 50Mi
    volumeMounts:
    - name: contrast-tls-certs
      mountPath: /tls-config
  containers:
  - name: c
    image: 'nginx'
    volumeMounts:
    - name: contrast-tls-certs  # mainstay:injected
      mountPath: /tls-config
  volumes:
  - name: contrast-tls-certs  # mainstay:injected
    emptyDir: {}
";

/// A pod whose mesh is configured in vain.
const BAD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: bad
  annotations:
    contrast.edgeless.systems/servicemesh-ingress: web#70000#false
spec:
  runtimeClassName: contrast-cc
  containers: [{name: c}]
";

const BAD_SAID: &str = "Error: port 70000 is not between 1 and 65535
 --> bad.yaml:6:56 (mesh-port-range)
  |
6 |     contrast.edgeless.systems/servicemesh-ingress: web#70000#false
  |                                                        ^^^^^
";

const UNREADABLE: &str = "kind: Pod\nspec:\n  runtimeClassName: contrast-cc\n   containers: []\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn generate(folder: &Path, args: &[&str]) -> Output {
    piped(folder, args, "")
}

fn piped(folder: &Path, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .arg("generate")
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = stdin.to_owned();
    let feeder = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

/// Exit code, standard output and standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[track_caller]
fn check(output: &Output, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(said(output), (code, stdout.to_owned(), stderr.to_owned()));
}

/// Every file below `folder` with its text, and every folder, sorted.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn files_are_edited_in_place_and_given_back() {
    let here = folder(&[("p.yaml", POD)]);
    check(
        &generate(here.path(), &["p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
    check(
        &generate(here.path(), &["p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: unchanged (initializer)\n1 input, 1 workload: 1 unchanged\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
    check(
        &generate(here.path(), &["--uninject", "p.yaml"]),
        0,
        "",
        "p.yaml:2: Pod p: removed (uninject)\n1 input, 1 workload: 1 removed\n",
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", POD)]));
}

#[test]
fn a_file_that_does_not_change_is_not_written() {
    let here = folder(&[("p.yaml", INJECTED), ("c.yaml", "kind: ConfigMap\n")]);
    let times =
        || ["p.yaml", "c.yaml"].map(|name| fs::metadata(here.path().join(name)).unwrap().modified().unwrap());
    let before = times();
    assert!(generate(here.path(), &["."]).status.success());
    assert_eq!(times(), before);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let here = folder(&[]);
    let log = "-:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&piped(here.path(), &["-"], POD), 0, INJECTED, log);
    check(
        &piped(here.path(), &["-", "--output", "-"], POD),
        0,
        INJECTED,
        log,
    );
    check(&piped(here.path(), &["-", "-", "-q"], POD), 0, INJECTED, "");
    check(&piped(here.path(), &["-"], ""), 0, "", "1 input, 0 workloads\n");
    check(
        &piped(here.path(), &["-q", "-", "-o", "out.yaml"], POD),
        0,
        "",
        "",
    );
    assert_eq!(tree(here.path()), owned(&[("out.yaml", INJECTED)]));
}

#[test]
fn several_inputs_become_one_stream() {
    let config = "kind: ConfigMap\n";
    let here = folder(&[
        ("a.yaml", POD),
        ("b.yaml", config),
        ("c.yaml", "---\nkind: Secret"),
    ]);
    let both = format!("{INJECTED}---\n{config}---\nkind: Secret");
    check(
        &generate(here.path(), &["-q", "-o", "-", "a.yaml", "b.yaml", "c.yaml"]),
        0,
        &both,
        "",
    );
    check(&generate(here.path(), &["-q", "-o", "all.yaml", "."]), 0, "", "");
    assert_eq!(fs::read_to_string(here.path().join("all.yaml")).unwrap(), both);
    assert_eq!(fs::read_to_string(here.path().join("a.yaml")).unwrap(), POD);
}

#[test]
fn a_folder_mirrors_its_input() {
    let config = "kind: ConfigMap\n";
    let here = folder(&[
        ("k8s/a.yaml", POD),
        ("k8s/x/b.yml", config),
        ("k8s/x/notes.txt", "?"),
        ("k8s/.git/c.yaml", POD),
    ]);
    check(&generate(here.path(), &["-q", "-o", "out/", "k8s"]), 0, "", "");
    assert_eq!(
        tree(&here.path().join("out")),
        owned(&[("a.yaml", INJECTED), ("x/b.yml", config)])
    );
    let output = generate(
        here.path(),
        &["-o", "other/", "k8s/a.yaml", "k8s/x", "out/a.yaml"],
    );
    check(
        &output,
        2,
        "",
        "Error: k8s/a.yaml and out/a.yaml would both be written to other/a.yaml\nhint: give the folder that holds both\n",
    );
    assert!(!here.path().join("other").exists());
    check(
        &piped(here.path(), &["-", "-o", "out"], POD),
        2,
        "",
        "Error: --output out: standard input has no name to write to\nhint: give a file, or - for standard output\n",
    );
}

#[test]
fn patterns_are_matched_when_the_shell_has_not() {
    let here = folder(&[("k8s/a.yaml", POD), ("k8s/x/b.yaml", POD), ("k8s/x/c.json", "{}")]);
    let output = generate(here.path(), &["k8s/**/*.yaml"]);
    check(
        &output,
        0,
        "",
        "k8s/a.yaml:2: Pod p: injected (initializer)\nk8s/x/b.yaml:2: Pod p: injected (initializer)\n2 inputs, 2 workloads: 2 injected\n",
    );
    check(
        &generate(here.path(), &["k8s/*.yml"]),
        2,
        "",
        "Error: k8s/*.yml: no file matches\n",
    );
}

#[test]
fn one_file_given_twice_is_treated_once() {
    let here = folder(&[("p.yaml", POD)]);
    let log = "p.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(
        &generate(here.path(), &["p.yaml", "./p.yaml", ".", "*.yaml"]),
        0,
        "",
        log,
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", INJECTED)]));
}

#[cfg(unix)]
#[test]
fn links_stay_links() {
    let here = folder(&[("real/p.yaml", POD)]);
    std::os::unix::fs::symlink("real/p.yaml", here.path().join("link.yaml")).unwrap();
    std::os::unix::fs::symlink("..", here.path().join("real/up")).unwrap();
    let log = "link.yaml:2: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&generate(here.path(), &["link.yaml", "real"]), 0, "", log);
    assert!(here.path().join("link.yaml").is_symlink());
    let output = generate(
        here.path(),
        &["-q", "--uninject", "-o", "link.yaml", "real/p.yaml"],
    );
    check(&output, 0, "", "");
    assert!(here.path().join("link.yaml").is_symlink());
    assert_eq!(fs::read_to_string(here.path().join("real/p.yaml")).unwrap(), POD);
    assert!(generate(here.path(), &["-q", "link.yaml"]).status.success());
    assert_eq!(
        fs::read_to_string(here.path().join("real/p.yaml")).unwrap(),
        INJECTED
    );
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_file_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let here = folder(&[("p.yaml", POD)]);
    let path = here.path().join("p.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    assert!(generate(here.path(), &["p.yaml"]).status.success());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
}

#[test]
fn a_failure_leaves_every_file_as_it_was() {
    let files = [("a.yaml", POD), ("bad.yaml", BAD), ("z.yaml", POD)];
    let here = folder(&files);
    let log = format!(
        "a.yaml:2: Pod p: injected (initializer)\nbad.yaml:1: Pod bad: failed (refused)\n{BAD_SAID}z.yaml:2: Pod p: injected (initializer)\n3 inputs, 3 workloads: 2 injected, 1 failed\nError: 1 object was not treated; nothing was written\nhint: --keep-going leaves what cannot be treated as it is and goes on\n"
    );
    check(&generate(here.path(), &["."].map(|_| "*.yaml")), 2, "", &log);
    assert_eq!(tree(here.path()), owned(&files));
}

#[test]
fn a_bad_document_in_the_last_file_leaves_every_file_as_it_was() {
    let files = [("a.yaml", POD), ("z.yaml", UNREADABLE)];
    let here = folder(&files);
    let output = generate(here.path(), &["-q", "a.yaml", "z.yaml"]);
    check(
        &output,
        2,
        "",
        "Error: yaml: mapping values are not allowed in this context\n --> z.yaml:4:14 (syntax)\n  |\n4 |    containers: []\n  |              ^\nError: 1 object was not treated; nothing was written\nhint: --keep-going leaves what cannot be treated as it is and goes on\n",
    );
    assert_eq!(tree(here.path()), owned(&files));
    let output = generate(here.path(), &["-q", "-o", "out/", "a.yaml", "z.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(tree(here.path()), owned(&files));
    let output = generate(here.path(), &["-q", "-o", "-", "a.yaml", "z.yaml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_file_that_cannot_be_written_leaves_every_file_as_it_was() {
    let here = folder(&[("a.yaml", POD), ("b.yaml", POD)]);
    let path = here.path().join("b.yaml");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let output = generate(here.path(), &["-q", "a.yaml", "b.yaml"]);
    check(
        &output,
        2,
        "",
        "Error: b.yaml: the file is read-only\nError: 1 input could not be treated; nothing was written\nhint: --keep-going leaves what cannot be treated as it is and goes on\n",
    );
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD), ("b.yaml", POD)]));
    let output = generate(here.path(), &["-q", "--keep-going", "a.yaml", "b.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD), ("b.yaml", POD)]));
}

#[test]
fn keep_going_treats_the_rest() {
    let here = folder(&[("a.yaml", POD), ("bad.yaml", BAD)]);
    let output = generate(here.path(), &["-q", "--keep-going", "a.yaml", "bad.yaml"]);
    check(&output, 0, "", BAD_SAID);
    assert_eq!(
        tree(here.path()),
        owned(&[("a.yaml", INJECTED), ("bad.yaml", BAD)])
    );
}

#[test]
fn check_tells_by_its_exit_code() {
    let here = folder(&[("a.yaml", POD), ("b.yaml", INJECTED), ("bad.yaml", BAD)]);
    check(
        &generate(here.path(), &["--check", "a.yaml", "b.yaml"]),
        1,
        "a.yaml\n",
        "a.yaml:2: Pod p: injected (initializer)\nb.yaml:2: Pod p: unchanged (initializer)\n2 inputs, 2 workloads: 1 injected, 1 unchanged\n",
    );
    check(&generate(here.path(), &["--check", "-q", "b.yaml"]), 0, "", "");
    check(
        &generate(here.path(), &["--check", "--uninject", "-q", "b.yaml"]),
        1,
        "b.yaml\n",
        "",
    );
    let output = generate(here.path(), &["--check", "-q", "a.yaml", "bad.yaml"]);
    check(
        &output,
        2,
        "",
        &format!(
            "{BAD_SAID}Error: 1 object was not treated\nhint: --keep-going leaves what cannot be treated as it is and goes on\n"
        ),
    );
    assert_eq!(
        generate(here.path(), &["--check", "nope.yaml"]).status.code(),
        Some(2)
    );
    assert_eq!(
        generate(here.path(), &["--check", "--no-such-flag", "a.yaml"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        tree(here.path()),
        owned(&[("a.yaml", POD), ("b.yaml", INJECTED), ("bad.yaml", BAD)])
    );
}

#[test]
fn a_diff_is_one_that_patch_takes() {
    let here = folder(&[("p.yaml", POD)]);
    let output = generate(here.path(), &["-q", "--diff", "p.yaml"]);
    let (code, stdout, stderr) = said(&output);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(
        stdout.starts_with("--- a/p.yaml\n+++ b/p.yaml\n@@ -5,6 +5,24 @@\n   name: p  # the name\n"),
        "{stdout}"
    );
    let changed = stdout
        .lines()
        .skip(2)
        .filter(|line| line.starts_with('+'))
        .count();
    assert_eq!(
        (
            changed,
            stdout.lines().filter(|line| line.starts_with('-')).count()
        ),
        (18, 1)
    );
    assert_eq!(tree(here.path()), owned(&[("p.yaml", POD)]));
    assert_eq!(
        generate(here.path(), &["-q", "--diff", "--check", "p.yaml"])
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn a_report_for_programs_has_its_shape() {
    let here = folder(&[("bad.yaml", BAD)]);
    let output = generate(here.path(), &["--report", "json", "--keep-going", "bad.yaml"]);
    let expected = r#"{
  "version": 1,
  "mode": "inject",
  "profile": "rfc",
  "summary": {
    "files": 1,
    "changed": 0,
    "unreadable": 0,
    "workloads": 1,
    "injected": 0,
    "removed": 0,
    "unchanged": 0,
    "skipped": 0,
    "failed": 1,
    "warnings": 0,
    "errors": 1
  },
  "files": [
    {
      "path": "bad.yaml",
      "changed": false,
      "error": null,
      "objects": [
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "namespace": null,
          "name": "bad",
          "podTemplatePath": "",
          "line": 1,
          "action": "failed",
          "reason": "refused",
          "findings": [
            {
              "severity": "error",
              "code": "mesh-port-range",
              "message": "port 70000 is not between 1 and 65535",
              "line": 6,
              "column": 56,
              "length": 5,
              "help": null
            }
          ]
        }
      ]
    }
  ]
}
"#;
    check(&output, 0, expected, "");
}

#[test]
fn a_report_for_programs_keeps_out_of_the_manifests() {
    let here = folder(&[]);
    let (code, stdout, stderr) = said(&piped(here.path(), &["--report", "json", "-"], POD));
    assert_eq!((code, stdout.as_str()), (0, INJECTED));
    let report: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(report.pointer("/summary/injected"), Some(&serde_json::json!(1)));
}

#[test]
fn warnings_show_the_line() {
    let here = folder(&[]);
    let text = POD.replace(
        "  name: p  # the name\n",
        "  name: p\n  annotations: {contrast.edgeless.systems/skip-initialiser: 'true'}\n",
    );
    let (code, _, stderr) = said(&piped(here.path(), &["-q", "-"], &text));
    assert_eq!(code, 0);
    assert_eq!(
        stderr,
        "Warning: contrast.edgeless.systems/skip-initialiser looks misspelt\n --> -:6:17 (annotation-name)\n  |\n6 |   annotations: {contrast.edgeless.systems/skip-initialiser: 'true'}\n  |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nhint: did you mean contrast.edgeless.systems/skip-initializer?\n"
    );
}

#[test]
fn flags_win_over_annotations() {
    let here = folder(&[]);
    let mesh = POD.replace(
        "  name: p  # the name\n",
        "  name: p\n  annotations: {contrast.edgeless.systems/servicemesh-ingress: ''}\n",
    );
    let names = |args: &[&str], text: &str| -> Vec<String> {
        let (code, stdout, stderr) = said(&piped(here.path(), args, text));
        assert_eq!(code, 0, "{stderr}");
        let names = stdout
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- name: contrast-"));
        names
            .filter_map(|line| line.split("  #").next())
            .filter(|it| *it != "tls-certs")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&["-"], &mesh), ["initializer", "service-mesh"]);
    assert_eq!(names(&["-", "--skip-service-mesh"], &mesh), ["initializer"]);
    assert_eq!(names(&["-", "--skip-initializer"], &mesh), ["service-mesh"]);
    assert_eq!(
        names(&["-", "--skip-initializer", "--skip-service-mesh"], &mesh),
        Vec::<String>::new()
    );
    // What a skip leaves out is taken away if it was there.
    assert_eq!(
        names(&["-", "--skip-initializer"], INJECTED),
        Vec::<String>::new()
    );
}

#[test]
fn other_kinds_are_reached_by_their_path() {
    let here = folder(&[]);
    let rollout = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: r}}\nspec:\n  template:\n{}",
        POD.lines()
            .skip(5)
            .flat_map(|line| ["    ", line, "\n"])
            .collect::<String>()
    );
    let (code, _, stderr) = said(&piped(here.path(), &["-"], &rollout));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("Rollout r: failed (unknown-kind)"), "{stderr}");
    let (code, stdout, stderr) = said(&piped(
        here.path(),
        &["--pod-template-path", "Rollout=spec.template", "-"],
        &rollout,
    ));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("contrast-initializer"), "{stdout}");
    let (code, _, stderr) = said(&piped(
        here.path(),
        &["--pod-template-path", "Rollout", "-"],
        &rollout,
    ));
    assert_eq!(code, 2);
    assert_eq!(
        stderr,
        "Error: pod template path \"Rollout\": no `=`; write KIND=path.to.template, such as Rollout=spec.template\n"
    );
}

#[test]
fn profiles_spell_things_their_way() {
    let here = folder(&[]);
    let (code, stdout, _) = said(&piped(here.path(), &["-q", "--profile", "later", "-"], POD));
    assert_eq!(code, 0);
    assert!(stdout.contains("value: coordinator-ready.default\n"), "{stdout}");
    assert!(
        stdout.contains("initializer:v1.23.1\n") && stdout.contains("contrast-secrets"),
        "{stdout}"
    );
    let coordinator = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: c, namespace: trust}\nspec:\n  template:\n    metadata: {labels: {contrast.edgeless.systems/pod-role: coordinator}}\n    spec: {runtimeClassName: contrast-cc}\n";
    let (_, stdout, stderr) = said(&piped(
        here.path(),
        &["--profile", "later", "-"],
        &format!("{POD}---\n{coordinator}"),
    ));
    assert!(
        stdout.contains("value: coordinator-ready.trust\n"),
        "{stdout}{stderr}"
    );
    let args = ["--profile", "later", "--coordinator-namespace", "x", "-"];
    let (_, stdout, _) = said(&piped(here.path(), &args, POD));
    assert!(stdout.contains("value: coordinator-ready.x\n"), "{stdout}");
    check(
        &piped(here.path(), &["--profile", "nope", "-"], POD),
        2,
        "",
        "Error: no profile is called \"nope\"\nhint: there are rfc and later\n",
    );
}

#[test]
fn images_can_be_replaced() {
    let here = folder(&[
        (
            "images",
            "# mine\nghcr.io/edgelesssys/contrast/initializer:latest = my/init@sha256:00\n",
        ),
        ("bad", "a = b\n  # c\nd\n"),
    ]);
    let (code, stdout, _) = said(&piped(
        here.path(),
        &["-q", "--image-replacements", "images", "-"],
        POD,
    ));
    assert_eq!(code, 0);
    assert_eq!(
        stdout,
        INJECTED.replace(
            "ghcr.io/edgelesssys/contrast/initializer:v0.7.0",
            "my/init@sha256:00"
        )
    );
    check(
        &piped(here.path(), &["--image-replacements", "bad", "-"], POD),
        2,
        "",
        "Error: invalid image line: a comment must begin in the first column (and 1 more)\n --> bad:2:3 (usage error)\n  |\n2 |   # c\n  |   ^\n",
    );
    check(
        &piped(here.path(), &["--image-replacements", "nope", "-"], POD),
        2,
        "",
        "Error: nope: no such file or directory\n",
    );
}

#[test]
fn usage_errors_end_with_two() {
    let here = folder(&[("notes.txt", "")]);
    check(
        &generate(here.path(), &["nope"]),
        2,
        "",
        "Error: nope: no such file or directory\n",
    );
    check(
        &generate(here.path(), &["."]),
        2,
        "",
        "Error: no .yaml, .yml or .json files found\n",
    );
    check(
        &generate(here.path(), &["--bogus", "."]),
        2,
        "",
        "Error: unknown flag: --bogus\nhint: --help lists the flags\n",
    );
    assert_eq!(
        generate(here.path(), &["--check", "-o", "-", "."]).status.code(),
        Some(2)
    );
    assert_eq!(generate(here.path(), &[]).status.code(), Some(2));
}

#[test]
fn a_long_stream_is_treated_piece_by_piece() {
    let here = folder(&[]);
    let filler = format!("---\nkind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(100_000));
    let text = format!("{}---\n{POD}", filler.repeat(60));
    let expected = format!("{}---\n{INJECTED}", filler.repeat(60));
    fs::write(here.path().join("long.yaml"), &text).unwrap();
    let log = "long.yaml:183: Pod p: injected (initializer)\n1 input, 1 workload: 1 injected\n";
    check(&generate(here.path(), &["long.yaml"]), 0, "", log);
    assert!(fs::read_to_string(here.path().join("long.yaml")).unwrap() == expected);
    let output = piped(here.path(), &["-q", "-"], &text);
    assert!(output.status.success() && output.stdout == expected.as_bytes());
    let output = generate(here.path(), &["-q", "--uninject", "-o", "-", "long.yaml"]);
    assert!(output.status.success() && output.stdout == text.as_bytes());
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let here = folder(&[]);
    // A file that is long enough to be staged, then standard input that never ends.
    let filler = format!("---\nkind: ConfigMap\ndata: {{a: {}}}\n", "x".repeat(100_000));
    let text = format!("{}---\n{POD}", filler.repeat(60));
    fs::write(here.path().join("a.yaml"), POD).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "a.yaml", "-", "-o", "out/x.yaml"])
        .current_dir(here.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(tree(here.path()), owned(&[("a.yaml", POD)]));
}

#[test]
fn a_closed_pipe_is_no_drama() {
    let here = folder(&[("p.yaml", &format!("{POD}# {}\n", "x".repeat(200_000)))]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["generate", "-q", "-o", "-", "p.yaml"])
        .current_dir(here.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
}
