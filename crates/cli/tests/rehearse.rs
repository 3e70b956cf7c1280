//! `mainstay rehearse` as a process: output, exit codes, read-only access to clusters, and errors for invalid
//! snapshots.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::path::Path;
use std::process::Command;

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_sim::Cluster;
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_sim::snapshot::{load, parse};
use serde_json::Value;

const SHOP: &str = include_str!("rehearse/shop.yaml");

/// Runs the binary in a directory with `shop.yaml` and `files`; returns exit code, stdout and stderr.
fn run(files: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.yaml"), SHOP).unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    run_in(directory.path(), arguments)
}

fn run_in(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command.arg("rehearse").args(arguments).current_dir(directory);
    command.env_remove("KUBECONFIG").env("XDG_DATA_HOME", directory);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    // Progress is printed on slow machines.
    let progress = |line: &&str| !line.starts_with("rehearsing (") && !line.starts_with("reading (");
    let stderr: Vec<String> = text(output.stderr)
        .lines()
        .filter(progress)
        .map(str::to_owned)
        .collect();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        stderr.join("\n"),
    )
}

#[test]
fn a_snapshot_is_rehearsed_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shop.yaml"), SHOP).unwrap();
    let arguments = [
        "--to",
        "v1.29.1",
        "--snapshot",
        "shop.yaml",
        "--report",
        "page.html",
    ];
    let (code, out, err) = run_in(directory.path(), &arguments);
    assert_eq!(
        (code, err.as_str()),
        (2, ""),
        "an interruption is an error: {out}"
    );
    let first = out.lines().next().unwrap();
    assert_eq!(
        first,
        "The upgrade completes with errors: Istio default from v1.28.2 to v1.29.1, 2 of 2 workloads migrated in 1m04s, 0 failed, 0 skipped"
    );
    assert!(
        out.contains("  Interrupted Services (1)\n    Service shop/web: no ready endpoint for"),
        "{out}"
    );
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    let (_, foot) = page.split_once("<footer>").unwrap();
    let command = "mainstay rehearse --to v1.29.1 --snapshot shop.yaml --report page.html";
    assert!(
        foot.contains(command) && foot.contains("v1.28.2 to v1.29.1"),
        "{foot}"
    );
}

/// Checks that the picture in the README shows the report of this version. `cargo xtask picture` writes it.
#[test]
fn the_picture_in_the_readme_is_current() {
    let directory = tempfile::tempdir().unwrap();
    let examples = directory.path().join("docs/examples");
    std::fs::create_dir_all(&examples).unwrap();
    std::fs::create_dir(directory.path().join("target")).unwrap();
    let root = mainstay_testkit::repository_root();
    for name in ["cluster.yaml", "readiness.yaml"] {
        std::fs::copy(root.join("docs/examples").join(name), examples.join(name)).unwrap();
    }
    let stored = include_str!("../../../docs/images/rehearsal.txt");
    let command = stored
        .lines()
        .find_map(|line| line.strip_prefix("mainstay rehearse "));
    let arguments: Vec<&str> = command.unwrap().split(' ').collect();
    let (code, out, err) = run_in(directory.path(), &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let page = std::fs::read_to_string(directory.path().join("target/upgrade.html")).unwrap();
    let shown = mainstay_testkit::report_text::shown(&page);
    assert_eq!(shown, stored, "run `cargo xtask picture`");
    assert!(!shown.contains("Missing input"), "{shown}");
}

#[test]
fn the_severity_of_findings_decides_the_exit_code() {
    let run = |arguments: &[&str]| {
        run(
            &[],
            &[&["--to", "v1.29.1", "--snapshot", "shop.yaml"], arguments].concat(),
        )
    };
    for (level, code) in [("error", 2), ("warning", 2), ("never", 0)] {
        assert_eq!(run(&["--fail-on", level]).0, code, "{level}");
    }
    let (_, everything, _) = run(&[]);
    let (code, elsewhere, _) = run(&["-n", "elsewhere"]);
    assert_eq!(code, 2, "a namespace restricts the report, not the exit code");
    assert!(
        everything.contains("shop/web") && !elsewhere.contains("shop/web"),
        "{elsewhere}"
    );
}

#[test]
fn a_snapshot_may_come_from_stdin() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(["rehearse", "--to", "v1.29.1", "--snapshot", "-", "-o", "json"])
        .current_dir(directory.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), SHOP.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["input"]["source"], "snapshot stdin");
}

/// Validates the report with the real Helm, as the values of an empty chart with this schema.
#[test]
fn reports_are_valid_according_to_the_schema() {
    let (_, report, _) = run(&[], &["--to", "v1.29.1", "--snapshot", "shop.yaml", "-o", "json"]);
    let check = |report: &str| {
        let chart = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(chart.path().join(name), text).unwrap();
        write("Chart.yaml", "apiVersion: v2\nname: report\nversion: 1.0.0\n");
        write("values.yaml", report);
        write(
            "values.schema.json",
            include_str!("../../../docs/schemas/rehearsal.schema.json"),
        );
        let helm = mainstay_testkit::peer("helm4").unwrap();
        let output = Command::new(helm)
            .args(["template", "r"])
            .arg(chart.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), text)
    };
    assert_eq!(check(&report), (true, String::new()));
    let wrong = report.replacen("\"seed\": 0", "\"seed\": -1", 1);
    let (is_valid, text) = check(&wrong);
    assert!(!is_valid && text.contains("seed"), "{text}");
    // Unknown fields are rejected.
    let (is_valid, text) = check(&report.replacen("\"format\": 1,", "\"format\": 1, \"surplus\": 1,", 1));
    assert!(!is_valid && text.contains("surplus"), "{text}");
}

#[test]
fn a_failed_upgrade_exits_with_2_and_its_json_is_reproducible() {
    let files = [("slow.yaml", "shop/cart: never\n")];
    let arguments = [
        "--to",
        "v1.29.1",
        "--snapshot",
        "shop.yaml",
        "--readiness",
        "slow.yaml",
        "-o",
        "json",
        "--seed",
        "5",
    ];
    let (code, out, err) = run(&files, &arguments);
    assert_eq!((code, err.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["outcome"], "failed");
    assert_eq!(report["seed"], 5);
    assert_eq!(report["findings"][0]["subject"], "Deployment shop/cart");
    assert_eq!(
        run(&files, &arguments).1,
        out,
        "the same seed produces the same bytes"
    );
}

#[test]
fn an_istio_may_come_from_a_file() {
    let istio = "apiVersion: sailoperator.io/v1\nkind: Istio\nmetadata: {name: default}\nspec:\n  version: v1.29.1\n  namespace: istio-system\n";
    let (code, out, _) = run(
        &[("istio.yaml", istio)],
        &["-f", "istio.yaml", "--snapshot", "shop.yaml", "-o", "json"],
    );
    assert_eq!(code, 2, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        report["upgrade"]["suppositions"].as_array().unwrap().len(),
        2,
        "{out}"
    );
}

#[test]
fn invalid_input_is_reported() {
    let check = |files: &[(&str, &str)], arguments: &[&str], expected: &str| {
        let (code, out, err) = run(files, arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.starts_with(expected), "{arguments:?}: {err}");
    };
    let to = |snapshot: &'static str| ["--to", "v1.29.1", "--snapshot", snapshot];
    check(
        &[],
        &to("none.yaml"),
        "Error: none.yaml: No such file or directory",
    );
    check(
        &[("bad.yaml", "{{{")],
        &to("bad.yaml"),
        "Error: bad.yaml: cannot parse document 1: ",
    );
    check(
        &[("list.yaml", "- a\n")],
        &to("list.yaml"),
        "Error: list.yaml: document 1 is not a Kubernetes object\n --> list.yaml:1:1 (manifest error)\n  |\n1 | - a\n  | ^\nhint: ",
    );
    let deep = format!("a: {}", "[".repeat(100_000));
    check(&[("deep.yaml", &deep)], &to("deep.yaml"), "Error: deep.yaml: ");
    let climbing = "apiVersion: v1\nkind: Pod\nmetadata: {name: ../x, namespace: a}\n";
    check(
        &[("climb.yaml", climbing)],
        &to("climb.yaml"),
        "Error: invalid object 1 in the input: invalid name of Pod: \"../x\"",
    );
    check(
        &[],
        &["--to", "v9.9.9", "--snapshot", "shop.yaml"],
        "Error: Istio version \"v9.9.9\" is not in the catalog\nhint: ",
    );
    check(
        &[("r.yaml", "shop/cart: soon\n")],
        &[
            "--to",
            "v1.29.1",
            "--snapshot",
            "shop.yaml",
            "--readiness",
            "r.yaml",
        ],
        "Error: r.yaml: shop/cart: ",
    );
    check(
        &[("e.yaml", "")],
        &to("e.yaml"),
        "Error: no Istio in the input\nhint: ",
    );
}

#[tokio::test]
async fn a_cluster_is_only_read_without_its_secrets() {
    let cluster = Cluster::default();
    let names = VersionNames {
        all: &["v1.28.2", "v1.29.1"],
        concrete: &["v1.28.2", "v1.29.1"],
        ambient: &["v1.29.1"],
        default: "v1.29.1",
    };
    cluster.with(|state| load(state, definitions(&names)));
    cluster.with(|state| load(state, parse(SHOP).unwrap()));
    let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    server
        .write_kubeconfig(User::admin(), &directory.path().join("admin"))
        .unwrap();
    server
        .write_kubeconfig(User::named("guest", &[]), &directory.path().join("guest"))
        .unwrap();
    let play = async |user: &'static str| {
        let directory = directory.path().to_owned();
        let run = move || run_in(&directory, &["--to", "v1.29.1", "--kubeconfig", user]);
        tokio::task::spawn_blocking(run).await.unwrap()
    };
    let (code, out, err) = play("admin").await;
    assert_eq!((code, err.as_str()), (2, ""), "{out}");
    assert!(out.contains("2 of 2 workloads migrated"), "{out}");
    let trace = cluster.trace();
    assert!(trace.contains(" GET /api/v1/pods "), "{trace}");
    for never in [" POST ", " PUT ", " PATCH ", " DELETE ", "/secrets"] {
        assert!(!trace.contains(never), "{never}: {trace}");
    }
    let (code, _, err) = play("guest").await;
    assert_eq!(code, 1);
    assert!(
        err.starts_with("Error: cannot list istios: istios.sailoperator.io is forbidden"),
        "{err}"
    );
}
