//! `cargo xtask test`: runs everything that CI runs, cheap checks first, and prints the duration of each step
//! beside its budget.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::build::run_cargo;
use crate::programs;

/// Peers that the tests require; peers that only full proofs require are built by the proofs. Tests build
/// missing peers themselves; building them first shows the progress.
const PEERS: [&str; 19] = [
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
    "gateway-api-gatewayclasses",
    "gateway-api-gateways",
    "gateway-api-httproutes",
    "istioctl",
    "chromium",
];

/// Proofs whose quick share runs in CI, two at a time, with their budgets in minutes. Those that mostly
/// wait for real servers alternate with those that compute. The tests of other proofs run in the test step.
const PROOFS: &[(&str, u64)] = &[
    ("clusters", 4),
    ("render", 3),
    ("manifest", 3),
    ("inject", 1),
    ("rollout", 3),
    ("first-hour", 2),
];

/// Number of proofs that run at the same time.
const CONCURRENT_PROOFS: usize = 2;

/// Longest expected total on a quiet machine with two cores, in minutes: with warm caches, and with empty
/// ones.
const TOTAL_BUDGETS: [u64; 2] = [25, 45];

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
    let mut steps = Steps {
        begin: Instant::now(),
        steps: Vec::new(),
    };
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
    // With empty caches: 10 minutes.
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
    steps.run("test", 6, || {
        let programs = programs.context("the programs are built")?;
        programs.run_all(&crate::prove::quick_programs())
    })?;
    steps.run("doctest", 1, || {
        run_cargo(&["test", "--workspace", "--doc", "--quiet"])
    })?;
    steps.run_proofs()?;
    if nix::unistd::geteuid().is_root() {
        // Alone: it measures live traffic.
        steps.run("prove traffic", 2, || {
            let proof = Proof::run("traffic")?;
            proof.print()
        })?;
    } else {
        println!("prove traffic: not measured: needs root");
    }
    Ok(())
}

/// Output of the quick share of a proof.
struct Proof {
    name: &'static str,
    output: String,
    passed: bool,
    duration: Duration,
}

impl Proof {
    /// Runs the quick share of a proof with its output captured, so that concurrent proofs do not mix theirs.
    fn run(name: &'static str) -> anyhow::Result<Self> {
        let begin = Instant::now();
        let output = Command::new(std::env::current_exe()?)
            .args(["prove", name, "--quick"])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting the proof {name}"))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Self {
            name,
            output: text,
            passed: output.status.success(),
            duration: begin.elapsed(),
        })
    }

    /// Prints the output.
    fn print(&self) -> anyhow::Result<()> {
        println!("$ cargo xtask prove {} --quick\n{}", self.name, self.output);
        if !self.passed {
            bail!("the proof {} failed", self.name);
        }
        Ok(())
    }
}

/// Runs the proofs in order, some at the same time, and passes each result to `report`.
fn run_proofs(report: impl Fn(&Proof) + Sync) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || -> anyhow::Result<()> {
        while let Some((name, _)) = PROOFS.get(next.fetch_add(1, Ordering::Relaxed)) {
            report(&Proof::run(name)?);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT_PROOFS).map(|_| scope.spawn(worker)).collect();
        let mut results = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        results.try_for_each(|result| result.unwrap_or_else(|_| bail!("a proof panicked")))
    })
}

/// The steps that have run.
#[derive(Debug)]
struct Steps {
    begin: Instant,
    steps: Vec<Step>,
}

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
        self.steps.push(Step {
            name: name.to_owned(),
            duration: start.elapsed(),
            budget: Duration::from_mins(budget_minutes),
            passed: outcome.is_ok(),
        });
        outcome
    }

    /// Runs all proofs. A failed proof does not end the others.
    fn run_proofs(&mut self) -> anyhow::Result<()> {
        let finished = Mutex::new(Vec::new());
        run_proofs(|proof| {
            // The failure is reported below.
            let _ = proof.print();
            let minutes = PROOFS.iter().find(|(name, _)| *name == proof.name);
            let step = Step {
                name: format!("prove {}", proof.name),
                duration: proof.duration,
                budget: Duration::from_mins(minutes.map_or(0, |(_, minutes)| *minutes)),
                passed: proof.passed,
            };
            if let Ok(mut finished) = finished.lock() {
                finished.push(step);
            }
        })?;
        let finished = finished.into_inner().unwrap_or_default();
        let failed: Vec<String> = finished
            .iter()
            .filter(|step| !step.passed)
            .map(|step| step.name.clone())
            .collect();
        let is_complete = finished.len() == PROOFS.len();
        self.steps.extend(finished);
        if !failed.is_empty() || !is_complete {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    fn table(&self) -> String {
        let [warm, cold] = TOTAL_BUDGETS;
        let total = Step {
            name: format!("total (with empty caches: {cold}:00)"),
            duration: self.begin.elapsed(),
            budget: Duration::from_mins(warm),
            passed: self.steps.iter().all(|step| step.passed),
        };
        let rows: Vec<_> = self.steps.iter().chain([&total]).map(Step::cells).collect();
        crate::table::layout(&["step", "min:s", "budget", "result"], &rows)
    }
}

fn minutes(duration: Duration) -> String {
    format!("{}:{:02}", duration.as_secs() / 60, duration.as_secs() % 60)
}
