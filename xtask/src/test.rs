//! `cargo xtask test`: everything CI asks, in the order that fails fastest. Takes nothing, sets up what is
//! missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// Runs it all, and says what took how long.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    let outcome = run_steps(&mut steps);
    println!("\n{}", steps.table());
    outcome
}

fn run_steps(steps: &mut Steps) -> anyhow::Result<()> {
    steps.run("fmt", || run_cargo(&["fmt", "--all", "--check"]))?;
    steps.run("tidy", crate::tidy::run)?;
    steps.run("charts", || {
        crate::charts::run(&crate::charts::Arguments::default())
    })?;
    steps.run("peers", || crate::peers::run(&PEERS.map(str::to_owned)))?;
    steps.run("clippy", || {
        run_cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    steps.run("deny", deny)?;
    steps.run("build", || run_cargo(&["test", "--workspace", "--no-run"]))?;
    // One failure shall not hide the others.
    steps.run("test", || run_cargo(&["test", "--workspace", "--no-fail-fast"]))?;
    for proof in PROOFS {
        steps.run(&format!("prove {proof}"), || {
            run_cargo(&["xtask", "prove", proof, "--quick"])
        })?;
    }
    if nix::unistd::geteuid().is_root() {
        steps.run("prove traffic", || {
            run_cargo(&["xtask", "prove", "traffic", "--quick"])
        })?;
    } else {
        println!("prove traffic: not measured: needs root");
    }
    Ok(())
}

/// How long each step took.
#[derive(Debug, Default)]
struct Steps(Vec<(String, Duration, bool)>);

impl Steps {
    fn run(&mut self, name: &str, act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let begin = Instant::now();
        let outcome = act();
        self.0.push((name.to_owned(), begin.elapsed(), outcome.is_ok()));
        outcome
    }

    fn table(&self) -> String {
        let minutes = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
        let row = |(name, time, passed): &(String, Duration, bool)| {
            vec![
                name.clone(),
                minutes(*time),
                if *passed { "ok" } else { "FAILED" }.to_owned(),
            ]
        };
        let all = self.0.iter().map(|(_, time, _)| *time).sum();
        let rows: Vec<_> = self
            .0
            .iter()
            .map(row)
            .chain([vec!["all".into(), minutes(all)]])
            .collect();
        crate::table::layout(&["step", "min:s", ""], &rows)
    }
}

/// Licences, sources and bans. Advisories need the network and are a job of their own.
fn deny() -> anyhow::Result<()> {
    let tool = cargo_deny()?;
    // It looks at what other platforms would need, too, which no build has downloaded.
    run_cargo(&["fetch", "--locked"])?;
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

/// The installed cargo-deny, or one installed into the user's cache directory.
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
