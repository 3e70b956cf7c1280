//! `cargo xtask bench`: measures Mainstay and its peers alternately in one run, stores the figures and writes
//! the page about them.

mod charts;
mod figure;
pub(crate) mod inject;
mod machine;
mod operator;
mod process;
mod rehearsal;
mod render;
mod report;

pub(crate) use figure::Figure;
pub(crate) use rehearsal::MAX_TIME as MAX_REHEARSAL_TIME;
pub(crate) use report::{Failure, Report};

use anyhow::{bail, ensure};
use machine::{Machine, Monitor};

/// Minimum number of runs of each program.
const MIN_RUNS: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs of each program, at least 20
    #[arg(long, default_value_t = MIN_RUNS)]
    runs: usize,
    /// Measure only inputs whose name contains this; the page is not written
    #[arg(long, default_value = "")]
    only: String,
    /// Measure only this area: rendering, injection, operator, rehearsal; the page is not written
    #[arg(long)]
    area: Option<String>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            runs: MIN_RUNS,
            only: String::new(),
            area: None,
        }
    }
}

impl Arguments {
    /// Returns the arguments for all inputs of one area.
    pub(crate) fn for_area(name: &str) -> Self {
        Self {
            area: Some(name.into()),
            ..Self::default()
        }
    }

    fn is_complete(&self) -> bool {
        self.only.is_empty() && self.area.is_none()
    }
}

/// The measurements of one area, with their programs.
trait Suite {
    fn measure(&self, bench: &mut Bench) -> anyhow::Result<()>;
}

/// A selectable part of the bench.
struct Area {
    name: &'static str,
    /// Builds the programs of the suite.
    build: fn() -> anyhow::Result<Box<dyn Suite>>,
}

const AREAS: &[Area] = &[
    Area {
        name: "rendering",
        build: || Ok(Box::new(render::Programs::build()?)),
    },
    Area {
        name: INJECTION,
        build: || Ok(Box::new(inject::Programs::build()?)),
    },
    Area {
        name: "rehearsal",
        build: || Ok(Box::new(rehearsal::Programs::build()?)),
    },
    Area {
        name: "operator",
        build: || Ok(Box::new(operator::Programs::build()?)),
    },
];

/// The area of `mainstay generate`.
pub(crate) const INJECTION: &str = "injection";

/// A bench in progress.
pub(crate) struct Bench {
    only: String,
    report: Report,
}

impl Bench {
    fn new(arguments: &Arguments) -> Self {
        Self {
            only: arguments.only.clone(),
            report: Report::new(Machine::default(), arguments.runs.max(MIN_RUNS)),
        }
    }

    /// Returns the number of runs of each program.
    fn runs(&self) -> usize {
        self.report.runs
    }

    /// Whether the arguments select an input.
    fn selects(&self, subject: &str) -> bool {
        subject.contains(&self.only)
    }

    /// Records measured figures.
    fn add(&mut self, figures: impl IntoIterator<Item = Figure>) {
        self.report.figures.extend(figures);
    }

    /// Records whether the output of both programs is equal.
    fn compared(&mut self, subject: &str, is_same: bool) {
        let list = if is_same {
            &mut self.report.identical
        } else {
            &mut self.report.different
        };
        list.push(subject.to_owned());
    }

    /// Measures one input or area. Records an error, so that the others are measured nevertheless.
    fn attempt(&mut self, subject: &str, measure: impl FnOnce(&mut Self) -> anyhow::Result<()>) {
        if let Err(error) = measure(self) {
            self.failed(subject, &error);
        }
    }

    /// Records that an input or area could not be measured.
    fn failed(&mut self, subject: &str, error: &anyhow::Error) {
        println!("not measured: {subject}: {error:#}");
        self.report.failures.push(Failure {
            subject: subject.to_owned(),
            error: format!("{error:#}"),
        });
    }
}

/// Measures, prints and stores all figures; writes the page. Fails if an input could not be measured.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let report = measure(arguments)?;
    println!("\n{}\n", crate::table::layout(report::HEADINGS, &report.rows()));
    for subject in &report.different {
        println!("different output: {subject}");
    }
    for failure in &report.failures {
        println!("not measured: {}: {}", failure.subject, failure.error);
    }
    println!("{}", report.machine.text());
    if arguments.is_complete() {
        println!("{}", report.store_page()?.display());
    }
    let failures = report.failures.len();
    ensure!(failures == 0, "{failures} measurements failed");
    Ok(())
}

/// Builds all programs, then measures the selected areas. Stores the figures after each of them.
pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let areas = selected(arguments.area.as_deref())?;
    let mut bench = Bench::new(arguments);
    let suites = build(&areas, &mut bench);
    let monitor = Monitor::start();
    for (area, suite) in suites {
        println!("measuring {area}");
        bench.attempt(area, |bench| suite.measure(bench));
        bench.report.machine = monitor.machine();
        println!("{}", bench.report.store()?.display());
    }
    Ok(bench.report)
}

/// Builds the programs of these areas; a compiler beside the runs would falsify them.
fn build(areas: &[&Area], bench: &mut Bench) -> Vec<(&'static str, Box<dyn Suite>)> {
    let mut suites = Vec::new();
    for area in areas {
        bench.attempt(area.name, |_| {
            suites.push((area.name, (area.build)()?));
            Ok(())
        });
    }
    suites
}

/// Returns one area, or all of them if `name` is `None`.
fn selected(name: Option<&str>) -> anyhow::Result<Vec<&'static Area>> {
    let is_selected = |area: &&Area| name.is_none_or(|name| area.name == name);
    let selected: Vec<&Area> = AREAS.iter().filter(is_selected).collect();
    if selected.is_empty() {
        let known: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
        bail!(
            "unknown area {:?}; known areas: {}",
            name.unwrap_or_default(),
            known.join(", ")
        );
    }
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_input_does_not_discard_the_others() {
        let mut bench = Bench::new(&Arguments::default());
        bench.attempt("first", |_| bail!("no such chart"));
        bench.attempt("second", |bench| {
            bench.compared("second", true);
            Ok(())
        });
        let failure = Failure {
            subject: "first".into(),
            error: "no such chart".into(),
        };
        assert_eq!(bench.report.failures, [failure]);
        assert_eq!(bench.report.identical, ["second"]);
    }

    #[test]
    fn an_area_is_selected_by_its_name() {
        assert_eq!(selected(None).unwrap().len(), AREAS.len());
        assert_eq!(selected(Some(INJECTION)).unwrap().len(), 1);
        let error = selected(Some("nothing")).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("unknown area \"nothing\"; known areas: rendering, injection, rehearsal, operator")
        );
    }
}
