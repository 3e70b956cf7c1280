//! `mainstay rehearse` as a process: what it prints, how it ends, that it changes nothing, and that hostile
//! snapshots end in a sentence.

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

/// Runs the binary in a directory that holds `shop.yaml` and whatever `files` names; returns exit code,
/// stdout and stderr.
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
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let first = out.lines().next().unwrap();
    assert_eq!(
        first,
        "The upgrade completes with errors: Istio default from v1.28.2 to v1.29.1, 2 of 2 workloads migrated in 1m04s, 0 failed, 0 skipped"
    );
    assert!(out.contains("Service shop/web: no ready endpoint for"), "{out}");
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn what_fails_has_its_own_exit_code_and_json_is_whole_and_the_same() {
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
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        report["upgrade"]["suppositions"].as_array().unwrap().len(),
        2,
        "{out}"
    );
}

#[test]
fn what_is_wrong_ends_in_a_sentence() {
    let check = |files: &[(&str, &str)], arguments: &[&str], expected: &str| {
        let (code, out, err) = run(files, arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.starts_with(expected), "{arguments:?}: {err}");
    };
    let to = |snapshot: &'static str| ["--to", "v1.29.1", "--snapshot", snapshot];
    check(
        &[],
        &to("none.yaml"),
        "Error: cannot read snapshot none.yaml: none.yaml: ",
    );
    check(
        &[("bad.yaml", "{{{")],
        &to("bad.yaml"),
        "Error: cannot read snapshot bad.yaml: cannot parse document 1: ",
    );
    check(
        &[("list.yaml", "- a\n")],
        &to("list.yaml"),
        "Error: cannot read snapshot list.yaml: document 1 is not a Kubernetes object",
    );
    let deep = format!("a: {}", "[".repeat(100_000));
    check(
        &[("deep.yaml", &deep)],
        &to("deep.yaml"),
        "Error: cannot read snapshot deep.yaml",
    );
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
async fn a_cluster_is_only_read_and_never_its_secrets() {
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
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
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
