//! Proof of the simulator: the same scenarios on the simulator and on a real API server, and the simulator's
//! speed.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use super::row::{Row, RowKind};
use crate::build::{self, Profile};

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = match Session::run() {
        Ok(session) => session.rows(),
        Err(error) => vec![Row::not_measured(
            "the suite on both",
            "it runs",
            RowKind::Correctness,
            &error,
        )],
    };
    if !quick {
        rows.extend(bench_rows());
    }
    rows
}

/// A claim that one test of the program `clusters` verifies.
struct Claim {
    test: &'static str,
    text: &'static str,
    goal: &'static str,
    /// Prefix of the output line with the figure; if empty, the test's duration is the figure.
    line: &'static str,
}

const CLAIMS: &[Claim] = &[
    Claim {
        test: "conformance::real",
        text: "scenarios on a real API server",
        goal: "all equal",
        line: "differential conformance on the real server: ",
    },
    Claim {
        test: "conformance::sim",
        text: "scenarios on the simulator",
        goal: "all equal",
        line: "differential conformance on the simulator: ",
    },
    Claim {
        test: "kubectl::the_session_on_a_real_cluster",
        text: "a session of kubectl on a real cluster",
        goal: "equal to the stored output",
        line: "real: ",
    },
    Claim {
        test: "kubectl::the_session_on_the_simulator",
        text: "the same session on the simulator",
        goal: "equal to the stored output",
        line: "simulated: ",
    },
    Claim {
        test: "runtime::real",
        text: "kube-runtime on a real API server",
        goal: "all pass",
        line: "runtime on the real server: ",
    },
    Claim {
        test: "runtime::sim",
        text: "kube-runtime on the simulator",
        goal: "all pass",
        line: "runtime on the simulator: ",
    },
    Claim {
        test: "determinism::seeds",
        text: "one seed, one trace (calls, workloads, faults)",
        goal: "100 seeds twice, identical",
        line: "differential seeds: ",
    },
    Claim {
        test: "harness::no_connection_leaves_the_namespace",
        text: "a real API server cannot connect to external addresses",
        goal: "network is unreachable",
        line: "",
    },
    Claim {
        test: "harness::a_cluster_starts_only_in_isolation",
        text: "no real API server outside the namespace",
        goal: "rejected",
        line: "",
    },
    Claim {
        test: "harness::two_clusters_at_once",
        text: "three concurrent clusters, with users and audit",
        goal: "apart",
        line: "",
    },
    Claim {
        test: "harness::an_api_server_keeps_its_data_across_a_restart",
        text: "the API server restarts",
        goal: "objects kept",
        line: "",
    },
    Claim {
        test: "harness::a_killed_run_leaves_no_processes_or_files",
        text: "a killed run leaves no processes or files",
        goal: "none left",
        line: "",
    },
    Claim {
        test: "kubelet::pods_follow_their_scripts",
        text: "a hollow kubelet runs pod scripts",
        goal: "ready, crash, no image",
        line: "",
    },
    Claim {
        test: "kubelet::a_pod_runs_as_a_process",
        text: "a pod is a real process",
        goal: "probed, stopped",
        line: "",
    },
    Claim {
        test: "istiod::injects_sidecars",
        text: "real istiods inject through their webhook",
        goal: "1.28.2 and 1.29.1",
        line: "",
    },
];

/// Minimum number of scenarios in the suite.
const MIN_SCENARIOS: usize = 250;

/// Output of the test program.
struct Session {
    output: String,
}

impl Session {
    fn run() -> anyhow::Result<Self> {
        // With `--workspace` the features are those of `cargo test --workspace`, so nothing is built again.
        let output = build::cargo()
            .args(["test", "--quiet", "--workspace", "--test", "clusters", "--"])
            .args(CLAIMS.iter().map(|claim| claim.test))
            .current_dir(repository_root())
            .env("MAINSTAY_SEEDS", "100")
            .stderr(Stdio::inherit())
            .output()
            .context("starting cargo test")?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{output}");
        if !output.contains("\ntest result: ") {
            bail!("the test program did not finish");
        }
        Ok(Self { output })
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = CLAIMS.iter().map(|claim| self.row(claim)).collect();
        rows.push(self.count_row());
        rows.push(self.ready_row());
        rows
    }

    fn after(&self, prefix: &str) -> Option<&str> {
        self.output.lines().find_map(|line| line.strip_prefix(prefix))
    }

    fn row(&self, claim: &Claim) -> Row {
        let outcome = self.after(&format!("test {} ... ", claim.test));
        let passed = outcome.is_some_and(|outcome| outcome.starts_with("ok"));
        let figure = match (self.after(claim.line), outcome) {
            (Some(figure), _) if !claim.line.is_empty() => figure,
            (_, Some(outcome)) => outcome,
            _ => "did not run",
        };
        Row::correct(claim.text, figure.to_owned(), claim.goal, passed)
    }

    fn count_row(&self) -> Row {
        let line = self.after("differential conformance on the real server: ");
        let count = line
            .and_then(|line| line.split(' ').next()?.parse().ok())
            .unwrap_or(0_usize);
        let goal = format!("at least {MIN_SCENARIOS}");
        Row::correct(
            "scenarios in the suite",
            count.to_string(),
            &goal,
            count >= MIN_SCENARIOS,
        )
    }

    fn ready_row(&self) -> Row {
        let seconds = self.after("figure harness-ready ").and_then(number);
        let figure = seconds.map_or("not measured".to_owned(), |seconds| format!("{seconds:.1} s"));
        let met = seconds.is_some_and(|seconds| seconds < 10.0);
        Row::fast("a real cluster is ready", figure, "< 10 s", met)
    }
}

/// A figure of the simulator's benchmarks and its bound.
struct Bound {
    name: &'static str,
    text: &'static str,
    unit: &'static str,
    at_least: Option<f64>,
    below: Option<f64>,
}

const BOUNDS: &[Bound] = &[
    Bound {
        name: "memory_when_filled",
        text: "memory with 10,000 Deployments and 30,000 Pods",
        unit: "MiB",
        at_least: None,
        below: Some(1024.0),
    },
    Bound {
        name: "reads",
        text: "reads on one core",
        unit: "per second",
        at_least: Some(50_000.0),
        below: None,
    },
    Bound {
        name: "writes",
        text: "writes on one core, mixed",
        unit: "per second",
        at_least: Some(10_000.0),
        below: None,
    },
    Bound {
        name: "watched_write_growth",
        text: "a write in a cluster ten times the size",
        unit: "times",
        at_least: None,
        below: Some(2.0),
    },
    Bound {
        name: "day",
        text: "a virtual day of 1,000 rolling restarts",
        unit: "s",
        at_least: None,
        below: Some(10.0),
    },
];

fn bench_rows() -> Vec<Row> {
    match figures() {
        Ok(figures) => BOUNDS.iter().map(|bound| bound.row(&figures)).collect(),
        Err(error) => vec![Row::not_measured(
            "the simulator's speed and size",
            "measured",
            RowKind::Performance,
            &error,
        )],
    }
}

impl Bound {
    fn row(&self, figures: &BTreeMap<String, f64>) -> Row {
        let goal = match (self.at_least, self.below) {
            (Some(least), _) => format!("≥ {least} {}", self.unit),
            (_, Some(most)) => format!("< {most} {}", self.unit),
            _ => "reported".to_owned(),
        };
        let Some(value) = figures.get(self.name) else {
            return Row::fast(self.text, "not measured".into(), &goal, false);
        };
        let met =
            self.at_least.is_none_or(|least| *value >= least) && self.below.is_none_or(|most| *value < most);
        Row::fast(self.text, format!("{value:.1} {}", self.unit), &goal, met)
    }
}

/// Parses the lines `name value unit` of the simulator's examples.
fn figures() -> anyhow::Result<BTreeMap<String, f64>> {
    let mut figures = BTreeMap::new();
    for example in ["large", "day"] {
        let output = build::cargo()
            .args([
                "run",
                "--quiet",
                "--profile",
                Profile::Dist.name(),
                "--package",
                "mainstay-sim",
                "--example",
                example,
                "--",
            ])
            .arg("1")
            .current_dir(repository_root())
            .stderr(Stdio::inherit())
            .output()
            .context("starting cargo run")?;
        if !output.status.success() {
            bail!("the example {example} failed");
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        figures.extend(text.lines().filter_map(figure));
    }
    Ok(figures)
}

fn figure(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.split_once(' ')?;
    Some((name.to_owned(), number(rest)?))
}

/// Parses the number at the start of `text`.
fn number(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}
