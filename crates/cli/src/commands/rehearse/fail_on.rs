//! `--fail-on`: which findings of a rehearsal are a failure of the command.

use mainstay_rehearsal::Report;
use mainstay_rehearsal::report::{Outcome, Severity};

use crate::error::{CliError, Kind};

/// Lowest severity that is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailOn {
    /// Errors: workloads fail, Services are interrupted, the upgrade does not complete
    Error,
    /// Errors and warnings
    Warning,
    /// No finding
    Never,
}

impl FailOn {
    /// Returns the result of the command.
    pub(super) fn exit(self, report: &Report) -> Result<(), CliError> {
        let found = |lowest: Severity| report.findings.iter().any(|it| it.severity >= lowest);
        let is_incomplete = matches!(report.outcome, Outcome::Failed | Outcome::Unfinished);
        let fails = match self {
            Self::Error => is_incomplete || found(Severity::Error),
            Self::Warning => is_incomplete || found(Severity::Warning),
            Self::Never => false,
        };
        if fails {
            return Err(CliError::new(Kind::Attention, ""));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_rehearsal::report::{Finding, FindingKind};

    fn check(outcome: Outcome, severity: Option<Severity>, expected: [bool; 3]) {
        let finding = |severity| Finding {
            severity,
            kind: FindingKind::Skipped,
            subject: String::new(),
            what: String::new(),
            remedy: String::new(),
        };
        let report = Report {
            outcome,
            findings: severity.map(finding).into_iter().collect(),
            ..Report::default()
        };
        let exits = [FailOn::Error, FailOn::Warning, FailOn::Never].map(|it| it.exit(&report).is_err());
        assert_eq!(exits, expected, "{outcome:?} {severity:?}");
    }

    #[test]
    fn the_severity_decides() {
        check(Outcome::Completed, None, [false, false, false]);
        check(Outcome::Completed, Some(Severity::Info), [false, false, false]);
        check(Outcome::Completed, Some(Severity::Warning), [false, true, false]);
        check(Outcome::Completed, Some(Severity::Error), [true, true, false]);
        check(
            Outcome::NothingMoves,
            Some(Severity::Warning),
            [false, true, false],
        );
        check(Outcome::Failed, None, [true, true, false]);
        check(Outcome::Unfinished, None, [true, true, false]);
    }
}
