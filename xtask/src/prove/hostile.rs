//! Rows of hostile input to the command line.

use super::row::{Row, RowKind};
use crate::hostile::{CaseResult, worst};

/// Returns a row for the results of at least `least` cases, and prints the cases with problems.
pub(super) fn row(claim: &str, goal: &str, least: usize, results: anyhow::Result<Vec<CaseResult>>) -> Row {
    match results {
        Ok(results) => {
            let bad: Vec<_> = results.iter().filter(|result| result.problem.is_some()).collect();
            for result in &bad {
                println!("{result}");
            }
            let figure = format!("{} cases, {} bad, {}", results.len(), bad.len(), worst(&results));
            Row::correct(claim, figure, goal, bad.is_empty() && results.len() >= least)
        }
        Err(error) => Row::not_measured(claim, goal, RowKind::Correctness, &error),
    }
}
