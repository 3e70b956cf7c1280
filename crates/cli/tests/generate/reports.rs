//! Reports: diffs, JSON, warnings, and the exit code of `--check`.

use crate::directory::{
    BAD, BAD_MESSAGE, INJECTED, POD, check, directory, generate, outcome, owned, piped, tree,
};

#[test]
fn check_exits_with_1_if_files_would_change() {
    let here = directory(&[("a.yaml", POD), ("b.yaml", INJECTED), ("bad.yaml", BAD)]);
    check(
        &generate(here.path(), &["--check", "a.yaml", "b.yaml"]),
        1,
        "a.yaml\n",
        "a.yaml:2: Pod p: would be injected (initializer)\nb.yaml:2: Pod p: unchanged (initializer)\n2 inputs, 2 workloads: 1 would be injected, 1 unchanged\n",
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
            "{BAD_MESSAGE}Error: 1 object failed\nhint: use --keep-going to leave such inputs unchanged and continue\n"
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
fn diff_prints_a_unified_diff() {
    let here = directory(&[("p.yaml", POD)]);
    let output = generate(here.path(), &["-q", "--diff", "p.yaml"]);
    let (code, stdout, stderr) = outcome(&output);
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
fn the_json_report_has_the_documented_fields() {
    let here = directory(&[("bad.yaml", BAD)]);
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
fn the_json_report_goes_to_stderr_if_manifests_go_to_stdout() {
    let here = directory(&[]);
    let (code, stdout, stderr) = outcome(&piped(here.path(), &["--report", "json", "-"], POD));
    assert_eq!((code, stdout.as_str()), (0, INJECTED));
    let report: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(report.pointer("/summary/injected"), Some(&serde_json::json!(1)));
}

#[test]
fn warnings_quote_the_source_line() {
    let here = directory(&[]);
    let text = POD.replace(
        "  name: p  # the name\n",
        "  name: p\n  annotations: {contrast.edgeless.systems/skip-initialiser: 'true'}\n",
    );
    let (code, _, stderr) = outcome(&piped(here.path(), &["-q", "-"], &text));
    assert_eq!(code, 0);
    assert_eq!(
        stderr,
        "Warning: contrast.edgeless.systems/skip-initialiser looks misspelled\n --> -:6:17 (annotation-name)\n  |\n6 |   annotations: {contrast.edgeless.systems/skip-initialiser: 'true'}\n  |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nhint: did you mean contrast.edgeless.systems/skip-initializer?\n"
    );
}
