//! `cargo xtask parity`: runs the real helm and `mainstay template` on charts and value sets with the same
//! arguments and reports every difference in standard output, exit status and error text. With `--istioctl`,
//! compares `mainstay manifest generate` with the real istioctl instead.

mod case;
mod compare;
mod edge_case;
mod functions;
mod istioctl;
mod matrix;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use mainstay_testkit::{peer, repository_root};

use crate::build::Profile;

pub(crate) use case::{Case, Kind};
pub(crate) use compare::{Difference, Programs};
pub(crate) use functions::fewest_shapes;

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Only cases whose label contains this text
    #[arg(long)]
    pub(crate) only: Option<String>,
    /// Run the share that CI runs: every edge case, and a seventh of charts × value sets
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the first differing lines of this many cases
    #[arg(long, default_value_t = 5)]
    pub(crate) show: usize,
    /// Compare `mainstay manifest generate` with the real istioctl, object for object
    #[arg(long, conflicts_with_all = ["only", "quick", "show"])]
    pub(crate) istioctl: bool,
}

/// Interval of the cases of the matrix that CI runs, in addition to all edge cases.
const QUICK_STRIDE: usize = 7;

/// Result of a parity run.
#[derive(Default)]
pub(crate) struct Findings {
    /// Numbers of comparisons by kind.
    pub(crate) counts: BTreeMap<Kind, Count>,
    /// Every difference.
    pub(crate) differences: Vec<Difference>,
    /// Number of distinct chart directories.
    pub(crate) charts: usize,
    /// Smallest number of value sets of a chart.
    pub(crate) fewest_sets: usize,
    /// Number of edge-case charts.
    pub(crate) edge_cases: usize,
}

/// Numbers of comparisons of one kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    /// All comparisons.
    pub(crate) run: usize,
    /// Comparisons that differ.
    pub(crate) different: usize,
}

/// Prints all differences; fails if there are any.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.istioctl {
        return istioctl::run();
    }
    let begin = Instant::now();
    let findings = find(arguments)?;
    for difference in findings.differences.iter().take(arguments.show) {
        println!("{difference}\n");
    }
    for (kind, count) in &findings.counts {
        println!("{kind}: {} compared, {} different", count.run, count.different);
    }
    println!(
        "{} charts, {} edge cases, {:.0?}",
        findings.charts,
        findings.edge_cases,
        begin.elapsed()
    );
    let run: usize = findings.counts.values().map(|count| count.run).sum();
    let failed = findings.differences.len();
    println!("{} passed, {failed} failed", run - failed);
    if failed > 0 || run == 0 {
        bail!("{failed} of {run} comparisons differ");
    }
    Ok(())
}

/// Runs every case, in parallel.
pub(crate) fn find(arguments: &Arguments) -> anyhow::Result<Findings> {
    let scratch = tempfile::tempdir()?;
    let programs = programs(Profile::for_proof(arguments.quick))?;
    let mut cases = matrix::cases(&repository_root())?;
    let charts = matrix::charts(&cases);
    let fewest_sets = matrix::fewest_sets(&cases);
    cases.extend(edge_case::cases(
        &repository_root().join("parity/edge-cases"),
        scratch.path(),
    )?);
    cases.extend(functions::cases(&repository_root(), scratch.path())?);
    let edge_cases = edge_case::count(&repository_root().join("parity/edge-cases"))?;
    let wanted = |index: usize, case: &Case| {
        arguments
            .only
            .as_ref()
            .is_none_or(|text| case.label.contains(text.as_str()))
            && (!arguments.quick || case.kind == Kind::EdgeCase || index.is_multiple_of(QUICK_STRIDE))
    };
    let cases: Vec<Case> = cases
        .into_iter()
        .enumerate()
        .filter(|(index, case)| wanted(*index, case))
        .map(|(_, case)| case)
        .collect();
    let mut findings = compare_all(&cases, &programs)?;
    (findings.charts, findings.fewest_sets, findings.edge_cases) = (charts, fewest_sets, edge_cases);
    Ok(findings)
}

fn programs(profile: Profile) -> anyhow::Result<Programs> {
    let helm = |name| peer(name).with_context(|| format!("building {name}"));
    Ok(Programs {
        ours: crate::build::mainstay_binary(profile)?,
        helm4: helm("helm4")?,
        helm3: helm("helm3")?,
    })
}

fn compare_all(cases: &[Case], programs: &Programs) -> anyhow::Result<Findings> {
    let next = AtomicUsize::new(0);
    let findings = Mutex::new(Findings::default());
    let failure = Mutex::new(None);
    let worker = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            match compare::compare(case, programs) {
                Ok(outcomes) => record(&findings, outcomes),
                Err(error) => *lock(&failure) = Some(error.context(case.label.clone())),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(worker);
        }
    });
    match failure
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        Some(error) => Err(error),
        None => Ok(findings
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)),
    }
}

fn record(findings: &Mutex<Findings>, outcomes: Vec<compare::Outcome>) {
    let mut findings = lock(findings);
    for outcome in outcomes {
        let count = findings.counts.entry(outcome.kind).or_default();
        count.run += 1;
        count.different += usize::from(outcome.difference.is_some());
        findings.differences.extend(outcome.difference);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
