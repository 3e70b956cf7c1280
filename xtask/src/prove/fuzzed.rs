//! Fuzzing: takes which targets, gives a row for each.

use super::row::{Row, RowKind};
use crate::fuzz;

/// The short share runs 5 s each, from the same seed every time.
pub(super) fn rows(wanted: impl Fn(&str) -> bool, promise: &str, quick: bool) -> Vec<Row> {
    let seconds = if quick { 5 } else { 60 };
    let goal = format!("{seconds} s each, {promise}");
    match fuzz::fuzz_some(wanted, seconds, u32::from(quick)) {
        Ok(runs) if runs.is_empty() => vec![Row::correct("fuzz", "no such target".into(), &goal, false)],
        Ok(runs) => {
            let row = |run: &fuzz::Run| {
                let claim = format!("fuzz {}", run.target);
                Row::correct(&claim, run.figure.clone(), &goal, run.survived)
            };
            runs.iter().map(row).collect()
        }
        Err(error) => vec![Row::not_measured("fuzz", &goal, RowKind::Correctness, &error)],
    }
}
