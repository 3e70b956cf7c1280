//! `cargo xtask test`: runs everything that CI runs, cheap checks first, and prints the duration of each step
//! beside its budget.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build::{cargo, run_cargo};

/// Peers that the tests need. Tests build missing peers themselves; building them first shows the progress.
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

/// Proofs whose quick share runs in CI, with their budgets in minutes.
const PROOFS: &[(&str, u64)] = &[("render", 4), ("clusters", 3), ("inject", 1)];

/// Runs all steps and prints their durations.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    let outcome = run_steps(&mut steps);
    println!("\n{}", steps.table());
    outcome
}

fn run_steps(steps: &mut Steps) -> anyhow::Result<()> {
    steps.run("fmt", 1, || run_cargo(&["fmt", "--all", "--check"]))?;
    steps.run("tidy", 1, crate::tidy::run)?;
    steps.run("charts", 1, || {
        crate::charts::run(&crate::charts::Arguments::default())
    })?;
    // Cold: 22 minutes.
    steps.run("peers", 1, || crate::peers::run(&PEERS.map(str::to_owned)))?;
    steps.run("clippy", 2, || {
        run_cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    steps.run("deny", 1, deny)?;
    steps.run("build", 5, || run_cargo(&["test", "--workspace", "--no-run"]))?;
    // All failures are reported, not only the first.
    steps.run("test", 9, || {
        run_cargo(&["test", "--workspace", "--no-fail-fast"])
    })?;
    for (proof, minutes) in PROOFS {
        steps.run(&format!("prove {proof}"), *minutes, || {
            run_cargo(&["xtask", "prove", proof, "--quick"])
        })?;
    }
    if nix::unistd::geteuid().is_root() {
        steps.run("prove traffic", 2, || {
            run_cargo(&["xtask", "prove", "traffic", "--quick"])
        })?;
    } else {
        println!("prove traffic: not measured: needs root");
    }
    Ok(())
}

/// The steps that have run.
#[derive(Debug, Default)]
struct Steps(Vec<Step>);

#[derive(Debug)]
struct Step {
    name: String,
    duration: Duration,
    /// Expected maximum on a quiet machine with two cores and warm caches; exceeding it is reported, not an
    /// error.
    budget: Duration,
    passed: bool,
}

impl Step {
    fn cells(&self) -> Vec<String> {
        let result = match (self.passed, self.duration > self.budget) {
            (false, _) => "FAILED",
            (true, true) => "ok, over budget",
            (true, false) => "ok",
        };
        vec![
            self.name.clone(),
            minutes(self.duration),
            minutes(self.budget),
            result.to_owned(),
        ]
    }
}

impl Steps {
    fn run(
        &mut self,
        name: &str,
        budget_minutes: u64,
        task: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let outcome = task();
        self.0.push(Step {
            name: name.to_owned(),
            duration: start.elapsed(),
            budget: Duration::from_mins(budget_minutes),
            passed: outcome.is_ok(),
        });
        outcome
    }

    fn table(&self) -> String {
        let total = Step {
            name: "total".into(),
            duration: self.0.iter().map(|step| step.duration).sum(),
            budget: self.0.iter().map(|step| step.budget).sum(),
            passed: self.0.iter().all(|step| step.passed),
        };
        let rows: Vec<_> = self.0.iter().chain([&total]).map(Step::cells).collect();
        crate::table::layout(&["step", "min:s", "budget", "result"], &rows)
    }
}

fn minutes(duration: Duration) -> String {
    format!("{}:{:02}", duration.as_secs() / 60, duration.as_secs() % 60)
}

/// Checks licenses, sources and bans. Advisories need the network and are part of the full check.
fn deny() -> anyhow::Result<()> {
    let tool = cargo_deny()?;
    // cargo-deny also reads the dependencies of other platforms, which no build has downloaded.
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
        bail!("cargo deny reported problems");
    }
    Ok(())
}

/// Pinned, so that every machine checks with the same rules.
const CARGO_DENY: &str = "0.20.2";

/// Returns the pinned cargo-deny, installed once into the user's cache directory.
fn cargo_deny() -> anyhow::Result<PathBuf> {
    let root = mainstay_testkit::cache_home()?.join(format!("tools/cargo-deny-{CARGO_DENY}"));
    let binary = root.join("bin/cargo-deny");
    if works(&binary) {
        return Ok(binary);
    }
    println!("$ cargo install cargo-deny --version {CARGO_DENY}");
    // A debug build checks this workspace in seconds and compiles in a third of the time.
    let status = cargo()
        .args([
            "install",
            "cargo-deny",
            "--version",
            CARGO_DENY,
            "--locked",
            "--quiet",
            "--debug",
            "--root",
        ])
        .arg(&root)
        .status()
        .context("starting cargo install")?;
    if !status.success() {
        bail!("cargo-deny could not be installed");
    }
    Ok(binary)
}

fn works(program: &PathBuf) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
