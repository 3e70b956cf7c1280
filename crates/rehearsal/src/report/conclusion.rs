//! Conclusion of a rehearsal in one word, for the terminal and the HTML page.

use super::{Outcome, Report, Severity};

/// Conclusion of a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every workload is migrated, and no finding is an error.
    Completes,
    /// The upgrade ends, but workloads fail or Services are interrupted.
    CompletesWithErrors,
    /// The control plane fails, or the migration stops early.
    Fails,
    /// No workload is moved.
    NothingMoves,
    /// The upgrade had not finished at the time limit.
    DoesNotComplete,
}

impl Report {
    /// Returns the conclusion from the outcome and the findings.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let totals = &self.totals;
        let is_finished = totals.migrated + totals.failed + totals.skipped >= totals.workloads;
        let has_errors = self.findings.iter().any(|it| it.severity == Severity::Error);
        match self.outcome {
            Outcome::Completed if has_errors => Conclusion::CompletesWithErrors,
            Outcome::Completed => Conclusion::Completes,
            Outcome::Failed if totals.migrated > 0 && is_finished => Conclusion::CompletesWithErrors,
            Outcome::Failed => Conclusion::Fails,
            Outcome::NothingMoves => Conclusion::NothingMoves,
            Outcome::Unfinished => Conclusion::DoesNotComplete,
        }
    }
}
