//! `cargo xtask test`: runs everything that CI runs, cheap checks first, and prints the duration of each step
//! beside its budget.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::build::run_cargo;
use crate::programs;

/// Peers that the tests require; peers that only full proofs require are built by the proofs. Tests build
/// missing peers themselves; building them first shows the progress.
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

/// Proofs whose quick share runs in CI, with their budgets in minutes. The tests of other proofs run in the
/// test step.
const PROOFS: &[(&str, u64)] = &[
    ("render", 4),
    ("clusters", 3),
    ("inject", 1),
    ("manifest", 2),
    ("first-hour", 2),
];

/// Test programs that only proofs run; `--all-targets` omits them.
const PROOF_TESTS: [&str; 10] = [
    "--test",
    "clusters",
    "--test",
    "mesh",
    "--test",
    "packaged",
    "--test",
    "prometheus",
    "--test",
    "traffic",
];

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
    steps.run("clippy", 3, || {
        let all = ["clippy", "--workspace", "--all-targets"];
        run_cargo(&[&all[..], &PROOF_TESTS, &["--", "-D", "warnings"]].concat())?;
        // The build of the operator's image.
        let operator = ["clippy", "--package", "mainstay", "--no-default-features"];
        run_cargo(&[&operator[..], &["--", "-D", "warnings"]].concat())
    })?;
    steps.run("deny", 1, crate::deny::check_offline)?;
    let mut programs = None;
    steps.run("build", 7, || {
        programs = Some(programs::build()?);
        Ok(())
    })?;
    // All failures are reported, not only the first. The proofs below run the skipped programs.
    steps.run("test", 7, || {
        let programs = programs.context("the programs are built")?;
        programs.run_all(&crate::prove::quick_programs())
    })?;
    steps.run("doctest", 1, || {
        run_cargo(&["test", "--workspace", "--doc", "--quiet"])
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
