//! `cargo xtask test`: everything CI asks, in the order that fails fastest. Takes nothing, sets up what is missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build::{cargo, run_cargo};

/// The peers the tests below ask for. Each test would build its own; here the wait shows.
const PEERS: [&str; 16] = [
    "helm4",
    "helm3",
    "oracle",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "pilot-discovery-1.28.2",
    "pilot-discovery-1.29.1",
    "pilot-agent-1.28.2",
    "pilot-agent-1.29.1",
    "envoy-bootstrap-1.28.2",
    "envoy-bootstrap-1.29.1",
    "envoy",
    "istioctl",
    "chromium",
];

/// The proofs whose short share belongs to every change.
const PROOFS: &[&str] = &["render", "clusters", "inject"];

/// Runs it all.
pub(crate) fn run() -> anyhow::Result<()> {
    run_cargo(&["fmt", "--all", "--check"])?;
    crate::tidy::run()?;
    crate::charts::run(&crate::charts::Arguments::default())?;
    crate::peers::run(&PEERS.map(str::to_owned))?;
    run_cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    deny()?;
    run_cargo(&["test", "--workspace"])?;
    for proof in PROOFS {
        run_cargo(&["xtask", "prove", proof, "--quick"])?;
    }
    if nix::unistd::geteuid().is_root() {
        run_cargo(&["xtask", "prove", "traffic", "--quick"])?;
    } else {
        println!("prove traffic: not measured: needs root");
    }
    Ok(())
}

/// Licences, sources and bans. Advisories need the network and are a job of their own.
fn deny() -> anyhow::Result<()> {
    let tool = cargo_deny()?;
    println!("$ cargo deny check bans licenses sources");
    let status = Command::new(tool)
        .args([
            "--offline",
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ])
        .current_dir(repository_root())
        .status()
        .context("starting cargo-deny")?;
    if !status.success() {
        bail!("cargo deny found something");
    }
    Ok(())
}

/// The installed cargo-deny, or one installed into the user's cache folder.
fn cargo_deny() -> anyhow::Result<PathBuf> {
    let works = |path: &PathBuf| {
        let mut command = Command::new(path);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    };
    let root = mainstay_testkit::cache_home()?.join("tools");
    let candidates = [PathBuf::from("cargo-deny"), root.join("bin/cargo-deny")];
    if let Some(found) = candidates.iter().find(|path| works(path)) {
        return Ok(found.clone());
    }
    println!("$ cargo install cargo-deny");
    let status = cargo()
        .args(["install", "cargo-deny", "--locked", "--quiet", "--root"])
        .arg(&root)
        .status()
        .context("starting cargo install")?;
    if !status.success() {
        bail!("cargo-deny could not be installed");
    }
    Ok(root.join("bin/cargo-deny"))
}
