//! `mainstay rollout`, `mainstay cluster` and `mainstay rehearse rollout` as processes: without a cluster,
//! and against a served simulator. The expected output is stored byte for byte; `BLESS=1` writes it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod clusters;
mod demo;
mod host;
mod live;
#[path = "../support/request.rs"]
mod request;
mod state;

use host::{check, command, finish, offline};

#[test]
fn plans_are_shown_over_time() {
    for (name, arguments) in [
        ("plan-proposal", &["rollout", "plan", "-f", "proposal.yaml"][..]),
        (
            "plan-canary",
            &["rollout", "plan", "-f", "new.yaml", "--from", "deployed.yaml"],
        ),
        (
            "plan-wide",
            &["rollout", "plan", "-f", "proposal.yaml", "-o", "wide"],
        ),
        (
            "plan-json",
            &["rollout", "plan", "-f", "proposal.yaml", "-o", "json"],
        ),
        (
            "plan-yaml",
            &["rollout", "plan", "-f", "appdeployment.yaml", "-o", "yaml"],
        ),
        ("plan-weights", &["rollout", "plan", "-f", "weights.yaml"]),
        (
            "plan-waits",
            &[
                "rollout",
                "plan",
                "-f",
                "new.yaml",
                "--from",
                "deployed.yaml",
                "--no-promote",
            ],
        ),
        (
            "plan-broken",
            &[
                "rollout",
                "plan",
                "-f",
                "new.yaml",
                "--from",
                "deployed.yaml",
                "--never-ready",
                "shop-v2",
            ],
        ),
        (
            "plan-unreachable",
            &[
                "rollout",
                "plan",
                "-f",
                "new.yaml",
                "--from",
                "deployed.yaml",
                "--unreachable",
                "prod-1",
            ],
        ),
        (
            "plan-nothing",
            &[
                "rollout",
                "plan",
                "-f",
                "deployed.yaml",
                "--from",
                "deployed.yaml",
            ],
        ),
        (
            "rehearse",
            &["rehearse", "rollout", "-f", "new.yaml", "--from", "deployed.yaml"],
        ),
        (
            "rehearse-broken",
            &[
                "rehearse",
                "rollout",
                "-f",
                "new.yaml",
                "--from",
                "deployed.yaml",
                "--never-ready",
                "shop-v2",
                "--rate",
                "60",
            ],
        ),
    ] {
        check(name, &offline(arguments));
    }
}

/// The report contains every second, and the requests of each second add up to the rate.
#[test]
fn a_rehearsal_contains_every_second() {
    let text = offline(&[
        "rehearse",
        "rollout",
        "-f",
        "new.yaml",
        "--from",
        "deployed.yaml",
        "-o",
        "json",
    ]);
    let json = text.split_once('\n').unwrap().1.split("--- exit").next().unwrap();
    let report: serde_json::Value = serde_json::from_str(json).unwrap();
    let rows = report["load"].as_array().unwrap();
    assert_eq!(rows.len() as u64, report["seconds"].as_u64().unwrap() + 1);
    for row in rows {
        let requests = row["requestsPerSecond"].as_object().unwrap();
        let total: f64 = requests.values().map(|rate| rate.as_f64().unwrap()).sum();
        assert!((total - 100.0).abs() < 1e-6, "{row}");
    }
}

#[test]
fn a_client_dry_run_needs_no_cluster() {
    for (name, arguments) in [
        (
            "apply-client",
            &["rollout", "apply", "-f", "proposal.yaml", "--dry-run"][..],
        ),
        (
            "apply-oam",
            &["rollout", "apply", "-f", "appdeployment.yaml", "--dry-run=client"],
        ),
        (
            "apply-weights",
            &["rollout", "apply", "-f", "weights.yaml", "--dry-run"],
        ),
        (
            "apply-directory",
            &["rollout", "apply", "-f", "several", "--dry-run=client"],
        ),
        (
            "apply-yaml",
            &[
                "rollout",
                "apply",
                "-f",
                "several",
                "--dry-run=client",
                "-o",
                "yaml",
                "-n",
                "shop",
            ],
        ),
    ] {
        check(name, &offline(arguments));
    }
    let arguments = ["rollout", "apply", "-f", "-", "--dry-run=client"];
    let input = std::fs::read_to_string(host::directory().join("proposal.yaml")).unwrap();
    check(
        "apply-stdin",
        &finish(command(&arguments), &arguments.join(" "), &input),
    );
}

/// Every file of `invalid` is rejected with a stored message, by `apply` or by `plan`.
#[test]
fn invalid_documents_are_rejected() {
    let mut names: Vec<String> = std::fs::read_dir(host::directory().join("invalid"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 15, "{}", names.len());
    let mut printed = String::new();
    for name in names {
        let file = format!("invalid/{name}");
        let is_plan = ["component", "no-deployment", "two-deployments"]
            .iter()
            .any(|word| name.starts_with(word));
        let text = if is_plan {
            offline(&["rollout", "plan", "-f", &file])
        } else if name.starts_with("other-namespace") {
            offline(&["rollout", "apply", "--dry-run", "-n", "shop", "-f", &file])
        } else {
            offline(&["rollout", "apply", "--dry-run", "-f", &file])
        };
        assert!(
            text.ends_with("--- exit 1\n") && text.contains("Error: "),
            "{text}"
        );
        printed.push_str(&text);
        printed.push('\n');
    }
    check("invalid", &printed);
}

#[test]
fn usage_errors_have_hints() {
    let mut printed = String::new();
    for arguments in [
        &["rollout", "plan"][..],
        &["rollout", "plan", "-f", "missing.yaml"],
        &["rollout", "plan", "other", "-f", "new.yaml"],
        &["rollout", "plan", "-f", "new.yaml", "--ready-after", "soon"],
        &["rollout", "apply", "--dry-run"],
        &["rollout", "apply", "-f", "expected", "--dry-run"],
        &["rollout", "promote", "shop", "--full", "--step", "2"],
        &["rollout", "status", "shop", "-A"],
        &["cluster", "list", "-l", "usage"],
        &["cluster", "add"],
        &[
            "cluster",
            "add",
            "prod-1",
            "--cluster-kubeconfig",
            "missing.yaml",
            "--print-commands",
            "--create-account",
        ],
        &[
            "cluster",
            "check",
            "prod-1",
            "--cluster-kubeconfig",
            "missing.yaml",
        ],
        &["cluster", "check", "--cluster-kubeconfig", "missing.yaml"],
        &["demo", "rollout", "--speed", "0"],
    ] {
        let text = offline(arguments);
        assert!(!text.contains("--- exit 0"), "{text}");
        printed.push_str(&text);
        printed.push('\n');
    }
    check("usage", &printed);
}

#[test]
fn every_command_has_help_with_examples() {
    for arguments in [
        &["rollout"][..],
        &["rollout", "plan"],
        &["rollout", "apply"],
        &["rollout", "status"],
        &["rollout", "watch"],
        &["rollout", "promote"],
        &["rollout", "pause"],
        &["rollout", "resume"],
        &["rollout", "abort"],
        &["rollout", "retry"],
        &["rollout", "undo"],
        &["cluster"],
        &["cluster", "add"],
        &["cluster", "check"],
        &["demo", "rollout"],
        &["cluster", "list"],
        &["rehearse", "rollout"],
    ] {
        let help = offline(&[arguments, &["--help"]].concat());
        assert!(
            help.contains("Examples:\n  mainstay ") && help.contains("--- exit 0"),
            "{help}"
        );
    }
}
