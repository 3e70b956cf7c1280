//! Rows of the fuzz targets.

use super::row::{Row, RowKind};
use crate::fuzz::{Effort, Run, fuzz_targets};

/// Duration per target in the full proof.
const SECONDS: u64 = 60;

/// Returns a row per selected target. The quick proof executes fixed inputs, the full proof explores from a
/// new seed.
pub(super) fn rows(wanted: impl Fn(&str) -> bool, promise: &str, quick: bool) -> Vec<Row> {
    let effort = if quick {
        Effort::Fixed
    } else {
        Effort::explore(SECONDS)
    };
    rows_with(wanted, promise, effort)
}

/// Returns a row per selected target, with this effort.
pub(super) fn rows_with(wanted: impl Fn(&str) -> bool, promise: &str, effort: Effort) -> Vec<Row> {
    let goal = format!("{effort}, {promise}");
    match fuzz_targets(wanted, effort) {
        Ok(runs) if runs.is_empty() => vec![Row::correct("fuzz", "no such target".into(), &goal, false)],
        Ok(runs) => {
            let row = |run: &Run| {
                let claim = format!("fuzz {}", run.target);
                Row::correct(&claim, run.figure.clone(), &goal, run.passed)
            };
            runs.iter().map(row).collect()
        }
        Err(error) => vec![Row::not_measured("fuzz", &goal, RowKind::Correctness, &error)],
    }
}
