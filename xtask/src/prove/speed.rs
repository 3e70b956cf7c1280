//! Proof of speed: every figure of the bench with its goal, and equal output of the measured charts.

use super::row::{Row, RowKind};
use crate::bench::{self, Failure, Figure, Report};

/// Returns all rows.
pub(super) fn rows() -> Vec<Row> {
    match bench::measure(&bench::Arguments::default()) {
        Ok(report) => report_rows(&report),
        Err(error) => vec![Row::not_measured(CLAIM, GOAL, RowKind::Correctness, &error)],
    }
}

const CLAIM: &str = "output of the measured charts";
const GOAL: &str = "byte-identical to helm";

fn report_rows(report: &Report) -> Vec<Row> {
    println!("{}", report.machine.text());
    let mut rows = vec![parity_row(report)];
    rows.extend(measured_rows(report));
    rows
}

/// Returns a row per figure, and a failed row per input or area that could not be measured.
pub(super) fn measured_rows(report: &Report) -> Vec<Row> {
    let failures = report.failures.iter().map(failure_row);
    report.figures.iter().map(figure_row).chain(failures).collect()
}

fn parity_row(report: &Report) -> Row {
    let (identical, different) = (report.identical.len(), report.different.len());
    let mut figure = format!("{identical} of {} identical", identical + different);
    if different > 0 {
        figure = format!("{figure}; different: {}", report.different.join(", "));
    }
    Row::correct(CLAIM, figure, GOAL, different == 0 && identical > 0)
}

fn failure_row(failure: &Failure) -> Row {
    let error = anyhow::Error::msg(failure.error.clone());
    Row::not_measured(&failure.subject, "measured", RowKind::Correctness, &error)
}

/// Returns the row of a figure.
fn figure_row(figure: &Figure) -> Row {
    Row {
        claim: figure.name(),
        figure: figure.text(),
        goal: figure.goal.to_string(),
        kind: RowKind::Performance,
        outcome: figure.outcome(),
    }
}
