//! Proof of the `IstioOperator` engine: equality with istioctl, golden cases, validation, limits, speed.

mod controller;

use std::collections::BTreeSet;

use anyhow::{Context, anyhow, ensure};
use mainstay_testkit::{SAMPLE, peer};

use super::row::{Row, RowKind};
use crate::build::{self, Profile};
use crate::measure::{Cost, measured};
use crate::programs::{self, Environment, ProgramName, TestRun};

/// A test that prints `MARK: N run, M WORD`.
struct Counted {
    claim: &'static str,
    package: &'static str,
    test: &'static str,
    /// Part of the names of the test cases to run; empty for all.
    filter: &'static str,
    mark: &'static str,
    goal: &'static str,
    least: usize,
}

const COUNTED: &[Counted] = &[
    Counted {
        claim: "validation fixtures print the stored text",
        package: "mainstay-manifest",
        test: "validation",
        filter: "",
        mark: "validation fixtures: ",
        goal: "at least 50, all equal",
        least: 50,
    },
    Counted {
        claim: "hostile input stays within the limits",
        package: "mainstay-manifest",
        test: "hostile",
        filter: "",
        mark: "hostile manifests: ",
        goal: "at least 40, all bounded",
        least: 40,
    },
    Counted {
        claim: "every profile with 8 configurations",
        package: "mainstay-manifest",
        test: "golden",
        filter: "",
        mark: "golden manifests: ",
        goal: "at least 80, all equal",
        least: 80,
    },
    Counted {
        claim: "objects equal those of istioctl 1.29.1",
        package: "mainstay-manifest",
        test: "istioctl",
        filter: "",
        mark: "differential manifest generate and istioctl: ",
        goal: "at least 60, all equal",
        least: 60,
    },
    Counted {
        claim: "install, verify, upgrade, tag, uninstall on a real API server: objects deleted",
        package: "mainstay",
        test: "install",
        filter: "life_cycle_real",
        mark: "life cycle: ",
        goal: "at least 40, all deleted",
        least: 40,
    },
    Counted {
        claim: "SIGKILL during an installation: the next run converges",
        package: "mainstay",
        test: "install",
        filter: KILLED,
        mark: "killed installations: ",
        goal: "20 points (quick: 3), all converge",
        least: 3,
    },
    Counted {
        claim: "SIGKILL during an installation on a real API server",
        package: "mainstay",
        test: "install",
        filter: KILLED_REAL,
        mark: "killed installations on a real server: ",
        goal: "20 points, all converge",
        least: 1,
    },
    Counted {
        claim: "tags equal those of istioctl 1.29.1",
        package: "mainstay",
        test: "install",
        filter: "tags_equal",
        mark: "differential tag generate and istioctl: ",
        goal: "at least 7, all equal",
        least: 7,
    },
    Counted {
        claim: "round trip: custom resources render the objects of their IstioOperator file",
        package: "mainstay-adopt",
        test: "conversion",
        filter: "files_render_the_same_objects",
        mark: "round trip of IstioOperator files: ",
        goal: "at least 70 files, all equal up to the reported differences",
        least: 70,
    },
    Counted {
        claim: "profiles and settings as custom resources without a difference",
        package: "mainstay-adopt",
        test: "conversion",
        filter: "configurations_render",
        mark: "migrated manifests: ",
        goal: "at least 16, all equal",
        least: 16,
    },
    Counted {
        claim: "IstioOperators render the objects of the charts they were converted from",
        package: "mainstay-adopt",
        test: "conversion",
        filter: "as_an_operator",
        mark: "charts as IstioOperator: ",
        goal: "at least 20, all equal",
        least: 20,
    },
    Counted {
        claim: "custom resources render the objects of the charts they were converted from",
        package: "mainstay-adopt",
        test: "conversion",
        filter: "charts_render_the_same_objects_as_resources",
        mark: "charts as resources: ",
        goal: "at least 20, all equal",
        least: 20,
    },
    Counted {
        claim: "Helm 3 and 4: adopted without a new generation, and back",
        package: "mainstay-adopt",
        test: "adoption",
        filter: "helm_installations_are_adopted",
        mark: "adopted from Helm: ",
        goal: "at least 600, all equal",
        least: 600,
    },
    Counted {
        claim: "istioctl: adopted without a new generation, and back",
        package: "mainstay-adopt",
        test: "adoption",
        filter: "istioctl_installations_are_adopted",
        mark: "adopted from istioctl: ",
        goal: "at least 250, all equal",
        least: 250,
    },
    Counted {
        claim: "the old in-cluster operator: adopted without a new generation, removed, and back",
        package: "mainstay-adopt",
        test: "adoption",
        filter: "in_cluster_operator_installations_are_adopted",
        mark: "adopted from the in-cluster operator: ",
        goal: "at least 60, all equal",
        least: 60,
    },
    Counted {
        claim: "controllers run: adopt, operator, undo, hand-over and helm upgrade keep every pod, also in ambient mode",
        package: "mainstay-adopt",
        test: "adoption",
        filter: "no_pod_restarts",
        mark: "observed without a restart: ",
        goal: "at least 45, all equal",
        least: 45,
    },
    Counted {
        claim: "handed to Helm 3 and 4 with gateways, node agents or a revision: upgrade without a change, uninstall",
        package: "mainstay-adopt",
        test: "adoption",
        filter: "istioctl_installations_are_transferred",
        mark: "handed to Helm: ",
        goal: "at least 350, all equal",
        least: 350,
    },
];

/// The test case that kills installations on the simulator.
const KILLED: &str = "killed_installations_converge_simulated";
/// The test case that kills installations on a real API server.
const KILLED_REAL: &str = "killed_installations_converge_real";
/// Kill points of an installation.
const KILLS: usize = 20;
/// Kill points in the quick share, on the simulator.
const QUICK_KILLS: usize = 3;

/// Tests that take minutes.
const SLOW: [&str; 3] = ["golden", "conversion", "adoption"];

/// Returns all rows. The quick share omits slow tests and measurements, and runs each program once.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    if quick {
        return quick_rows();
    }
    let all = COUNTED.iter().chain(controller::ROWS);
    let mut rows: Vec<Row> = all
        .map(|counted| counted.row(run_alone(counted), false))
        .collect();
    rows.push(controller::matrix_row());
    rows.extend(speed_rows());
    rows
}

fn quick_rows() -> Vec<Row> {
    let runs = programs::build().and_then(|programs| {
        let names: Vec<ProgramName> = quick_programs().collect();
        let with_share = |name: &ProgramName| (*name, quick_environment(*name));
        programs.run_with(&names.iter().map(with_share).collect::<Vec<_>>())
    });
    let row = |counted: &Counted| match &runs {
        Ok(runs) => {
            let run = runs.iter().find(|run| run.is(counted.program()));
            let numbers = run.context("the test did not run");
            counted.row(numbers.and_then(|run| numbers_of(counted, run)), true)
        }
        Err(error) => counted.row(Err(anyhow!("{error:#}")), true),
    };
    quick_counted().map(row).collect()
}

fn quick_counted() -> impl Iterator<Item = &'static Counted> {
    let all = COUNTED.iter().chain(controller::ROWS);
    all.filter(|counted| !counted.is_slow())
        .chain([&controller::FAULTS])
}

/// Returns the variables that set the quick share of a program.
fn quick_environment(name: ProgramName) -> Environment {
    let shares = quick_counted().filter(|counted| counted.program() == name);
    let mut variables: Environment = shares.filter_map(|counted| share(counted, true)).collect();
    variables.push((SAMPLE, programs::SAMPLING_INTERVAL.to_owned()));
    variables
}

/// Returns the names of all tests that the rows refer to.
#[cfg(test)]
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    let all = COUNTED.iter().chain(controller::ROWS);
    all.chain([&controller::FAULTS])
        .map(|counted| counted.filter)
        .filter(|filter| !filter.is_empty())
}

/// Returns the number of kill points of a test that kills installations.
fn kill_points(counted: &Counted, quick: bool) -> Option<usize> {
    match (counted.filter, quick) {
        (KILLED | KILLED_REAL, false) => Some(KILLS),
        (KILLED, true) => Some(QUICK_KILLS),
        _ => None,
    }
}

/// Returns the environment variable that sets the share of a test; `None` if it always runs all cases.
fn share(counted: &Counted, quick: bool) -> Option<(&'static str, String)> {
    match counted.test {
        "conversion" => Some(("MAINSTAY_CASES", counted.least.to_string())),
        controller::SIMULATED if quick => Some(("MAINSTAY_MATRIX", controller::QUICK_FAULTS.to_owned())),
        _ => kill_points(counted, quick).map(|kills| ("MAINSTAY_CASES", kills.to_string())),
    }
}

/// Returns the test programs that the quick proof runs as a whole.
pub(super) fn quick_programs() -> impl Iterator<Item = ProgramName> {
    let programs: BTreeSet<ProgramName> = quick_counted().map(Counted::program).collect();
    programs.into_iter()
}

impl Counted {
    /// Whether only the full proof runs the test.
    fn is_slow(&self) -> bool {
        SLOW.contains(&self.test) || self.filter == KILLED_REAL
    }

    /// Returns the row for the numbers that the test printed.
    fn row(&self, numbers: anyhow::Result<(usize, usize)>, quick: bool) -> Row {
        match numbers {
            Ok((run, good)) => {
                let figure = format!("{run} run, {good} as stored");
                let least = kill_points(self, quick).unwrap_or(self.least);
                Row::correct(self.claim, figure, self.goal, run >= least && run == good)
            }
            Err(error) => Row::not_measured(self.claim, self.goal, RowKind::Correctness, &error),
        }
    }

    fn program(&self) -> ProgramName {
        ProgramName {
            package: self.package,
            target: self.test,
        }
    }
}

/// Runs the test of a row alone and returns the numbers that it prints.
fn run_alone(counted: &Counted) -> anyhow::Result<(usize, usize)> {
    let runs = programs::build()?.run(&[counted.program()], |command| {
        command
            .arg("--nocapture")
            .args((!counted.filter.is_empty()).then_some(counted.filter))
            .envs(share(counted, false));
    })?;
    numbers_of(counted, runs.first().context("the test did not run")?)
}

/// Returns the numbers that the test of a row printed.
fn numbers_of(counted: &Counted, run: &TestRun) -> anyhow::Result<(usize, usize)> {
    let (mut total, mut good) = (0, 0);
    for (_, counts) in run
        .output
        .lines()
        .filter_map(|line| line.split_once(counted.mark))
    {
        let mut numbers = counts
            .split_whitespace()
            .filter_map(|word| word.parse::<usize>().ok());
        total += numbers.next().context("no number of runs")?;
        good += numbers.next().context("no number of equal runs")?;
    }
    ensure!(total > 0, "the test {} prints no count", counted.test);
    ensure!(run.passed || good < total, "the test {} failed", counted.test);
    Ok((total, good))
}

/// Profiles whose generation is measured.
const MEASURED: [&str; 2] = ["default", "demo"];

fn speed_rows() -> Vec<Row> {
    MEASURED
        .iter()
        .flat_map(|profile| match compare_cost(profile) {
            Ok(rows) => rows,
            Err(error) => vec![Row::not_measured(
                &format!("manifest generate against istioctl, {profile}"),
                "10×",
                RowKind::Performance,
                &error,
            )],
        })
        .collect()
}

fn compare_cost(profile: &str) -> anyhow::Result<Vec<Row>> {
    const RUNS: usize = 9;
    let mainstay = build::mainstay_binary(Profile::Dist)?;
    let istioctl = peer("istioctl")?;
    let set = format!("profile={profile}");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(cost(&mainstay.to_string_lossy(), &set)?);
        theirs.push(cost(&istioctl.to_string_lossy(), &set)?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = theirs.wall.as_secs_f64() / ours.wall.as_secs_f64();
    let memory = theirs.peak_kib as f64 / ours.peak_kib as f64;
    let wall = format!("{:.0} ms, istioctl {:.0} ms, {ratio:.1}×", ms(&ours), ms(&theirs));
    let peak = format!(
        "{} MiB, istioctl {} MiB, 1/{memory:.1}",
        ours.peak_kib / 1024,
        theirs.peak_kib / 1024
    );
    Ok(vec![
        Row::fast(
            &format!("time of manifest generate, {profile}"),
            wall,
            "10×",
            ratio >= 10.0,
        ),
        Row::fast(
            &format!("memory of manifest generate, {profile}"),
            peak,
            "1/5",
            memory >= 5.0,
        ),
    ])
}

fn ms(cost: &Cost) -> f64 {
    cost.wall.as_secs_f64() * 1000.0
}

fn cost(program: &str, set: &str) -> anyhow::Result<Cost> {
    let scratch = tempfile::tempdir()?;
    let command = [program, "manifest", "generate", "--set", set];
    let (output, cost) = measured(&command, None, scratch.path())?;
    ensure!(output.status.success(), "{program} failed");
    cost.context("no cost was reported")
}

fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by_key(|cost| cost.wall);
    costs.swap_remove(costs.len() / 2)
}
