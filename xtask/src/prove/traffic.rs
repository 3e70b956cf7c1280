//! Proof of upgrades under live traffic: each row is parsed from the output of the test program.

mod predicted;
mod termination;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use super::row::{Outcome, Row, RowKind};
use crate::build;

/// Number of upgrades in the full proof.
const RUNS: usize = 5;

/// Returns all rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let runs = if quick { 1 } else { RUNS };
    // Compile first, so that the measured time does not include it.
    let ran = compile().and_then(|()| {
        let begin = Instant::now();
        let output = run_programs(quick, runs)?;
        Ok((output, begin.elapsed()))
    });
    let claims = CLAIMS.iter().filter(|claim| !quick || claim.quick);
    let (output, took) = match ran {
        Ok(ran) => ran,
        Err(error) => {
            let broken =
                |claim: &Claim| Row::not_measured(claim.text, claim.goal, RowKind::Correctness, &error);
            return claims.map(broken).collect();
        }
    };
    let mut rows: Vec<Row> = claims.map(|claim| claim.row(&output, runs)).collect();
    if !output.contains(NEEDS_ROOT) {
        if !quick {
            rows.extend(predicted::rows());
            rows.push(termination::row());
        }
        rows.extend(timing(&output, took, quick));
    }
    rows
}

/// A claim that one test verifies, and the prefix of the line with its figure.
struct Claim {
    text: &'static str,
    goal: &'static str,
    test: &'static str,
    line: &'static str,
    /// The line is printed once per upgrade.
    every_run: bool,
    quick: bool,
}

const CLAIMS: &[Claim] = &[
    Claim {
        text: "mesh mode: pods with networks, Services, names, ordered termination, no external access",
        goal: "all hold",
        test: "mesh",
        line: "mesh: ",
        every_run: false,
        quick: true,
    },
    Claim {
        text: "basic: labels, pod labels, injection label and tag move to the new istiod under STRICT mTLS",
        goal: "0 failed requests",
        test: "upgrade",
        line: "basic: ",
        every_run: true,
        quick: true,
    },
    Claim {
        text: "zero downtime: gateway and four applications behind each other, the whole upgrade",
        goal: "0 failed at ≥ 150/s",
        test: "upgrade",
        line: "zero downtime: ",
        every_run: true,
        quick: true,
    },
    Claim {
        text: "ingress: the gateway migrates too",
        goal: "0 failed requests",
        test: "upgrade",
        line: "ingress: ",
        every_run: true,
        quick: true,
    },
    Claim {
        text: "control: a server killed behind a ready endpoint",
        goal: "must fail",
        test: "controls",
        line: "control, killed server: ",
        every_run: false,
        quick: true,
    },
    Claim {
        text: "control: restarts without drain and without retries",
        goal: "must fail",
        test: "controls",
        line: "control, careless restarts: ",
        every_run: false,
        quick: true,
    },
    Claim {
        text: "failure recovery: one workload fails, is reported, and migrates once it can",
        goal: "0 failed requests",
        test: "failure",
        line: "failure recovery: ",
        every_run: false,
        quick: false,
    },
    Claim {
        text: "pruning race: a pod created at any time is injected by a live revision",
        goal: "0 missed, 0 failed requests",
        test: "pruning",
        line: "pruning: ",
        every_run: false,
        quick: false,
    },
    Claim {
        text: "disruptions: operator killed twice, API server down, istiod killed, spec changed",
        goal: "completes; failures and latency are reported",
        test: "api_outage",
        line: "api outage: ",
        every_run: false,
        quick: false,
    },
];

impl Claim {
    fn row(&self, output: &str, runs: usize) -> Row {
        if output.contains(NEEDS_ROOT) {
            let mut row = Row::correct(self.text, "needs root".into(), self.goal, false);
            row.outcome = Outcome::NotMeasured;
            return row;
        }
        let lines: Vec<&str> = output
            .lines()
            .filter_map(|line| line.strip_prefix(self.line))
            .collect();
        let wanted = if self.every_run { runs } else { 1 };
        let passed = output
            .lines()
            .any(|line| line.starts_with(&format!("test {} ... ok", self.test)));
        let figure = match lines.as_slice() {
            [] => "did not run".to_owned(),
            [only] => (*only).to_owned(),
            several => format!("{} runs: {}", several.len(), summary(several)),
        };
        Row::correct(self.text, figure, self.goal, passed && lines.len() == wanted)
    }
}

/// Printed by the test program for every test without root.
const NEEDS_ROOT: &str = "not measured: needs root";

/// Sums failed and sent requests over several runs, with the longest latency.
fn summary(lines: &[&str]) -> String {
    let number = |line: &str, after: &str, before: &str| -> Option<u64> {
        let (head, _) = line.split_once(before)?;
        head.rsplit(after).next()?.trim().parse().ok()
    };
    let total = |after: &str, before: &str| -> u64 {
        lines.iter().filter_map(|line| number(line, after, before)).sum()
    };
    let longest = lines
        .iter()
        .filter_map(|line| number(line.rsplit_once("longest ")?.1, " ", " ms"))
        .max();
    format!(
        "{} failed of {} sent, longest {} ms",
        total(" ", " failed of"),
        total("of ", " sent"),
        longest.unwrap_or_default()
    )
}

/// Returns the rows of the durations.
fn timing(output: &str, took: Duration, quick: bool) -> Vec<Row> {
    let ups = output
        .lines()
        .filter_map(|line| line.strip_prefix("mesh up: ")?.strip_suffix(" s"));
    let mut ups: Vec<f64> = ups.filter_map(|seconds| seconds.parse().ok()).collect();
    ups.sort_by(f64::total_cmp);
    let median = ups.get(ups.len() / 2).copied();
    let (goal, limit) = if quick {
        ("≤ 2 min", 120)
    } else {
        ("≤ 8 min", 480)
    };
    vec![
        Row::fast(
            "bringing the mesh up: control plane, operator, istiod, gateway, four applications, first response",
            median.map_or("did not run".into(), |median| {
                format!("{median:.1} s, median of {}", ups.len())
            }),
            "≤ 10 s",
            median.is_some_and(|median| median <= 10.0),
        ),
        Row::fast(
            "total duration, without compiling",
            format!("{:.0} s", took.as_secs_f64()),
            goal,
            took <= Duration::from_secs(limit),
        ),
    ]
}

/// The program with the scenarios, and the one that tests the mesh harness.
const TEST: [&str; 4] = ["test", "--workspace", "--test", "traffic"];
const HARNESS: [&str; 4] = ["test", "--workspace", "--test", "mesh"];

fn compile() -> anyhow::Result<()> {
    let status = build::cargo()
        .args(TEST)
        .args(["--test", "mesh", "--no-run"])
        .current_dir(repository_root())
        .status()
        .context("starting cargo test")?;
    if !status.success() {
        bail!("the test program does not compile");
    }
    Ok(())
}

/// Runs both programs and returns their output.
fn run_programs(quick: bool, runs: usize) -> anyhow::Result<String> {
    // Rollouts have their own proof.
    let tests: &[&str] = if quick {
        &["upgrade", "controls"]
    } else {
        &["--skip", "rollout"]
    };
    Ok(run(&HARNESS, &[], 1)? + &run(&TEST, tests, runs)?)
}

fn run(program: &[&str], tests: &[&str], runs: usize) -> anyhow::Result<String> {
    println!("$ cargo {} -- {}", program.join(" "), tests.join(" "));
    let mut child = build::cargo()
        .args(program)
        .arg("--")
        .args(tests)
        .env("MAINSTAY_TRAFFIC_RUNS", runs.to_string())
        .current_dir(repository_root())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let mut output = String::new();
    // A run takes minutes, so lines are printed as they arrive.
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line.context("reading the output of the test program")?;
        println!("{line}");
        output.push_str(&line);
        output.push('\n');
    }
    child.wait().context("waiting for cargo test")?;
    if !output.contains("\ntest result: ") && !output.contains(NEEDS_ROOT) {
        bail!("the test program did not finish");
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "0 failed of 3910 sent, 160/s, p50 6 ms, p99 142 ms, longest 240 ms, 18.0 s";

    #[test]
    fn several_runs_are_summed_up() {
        let other =
            "gateway on default-v1-29-1, 2 failed of 90 sent, 160/s, p50 6 ms, p99 9 ms, longest 999 ms";
        assert_eq!(summary(&[LINE, other]), "2 failed of 4000 sent, longest 999 ms");
    }

    #[test]
    fn a_claim_needs_its_test_and_every_run() {
        let claim = &CLAIMS[2];
        let output = format!("zero downtime: {LINE}\ntest upgrade ... ok (40.0 s)\n");
        assert_eq!(claim.row(&output, 1).outcome, Outcome::Met);
        assert_eq!(claim.row(&output, 2).outcome, Outcome::NotMet);
        let failed = output.replace("ok", "FAILED");
        assert_eq!(claim.row(&failed, 1).outcome, Outcome::NotMet);
    }

    #[test]
    fn without_root_nothing_passes() {
        let output = "test upgrade ... not measured: needs root\n";
        for claim in CLAIMS {
            assert_eq!(claim.row(output, 1).outcome, Outcome::NotMeasured);
        }
    }
}
