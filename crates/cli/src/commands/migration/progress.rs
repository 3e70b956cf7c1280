//! A migration as it goes: takes one status after the other, gives what to print next: a bar that is redrawn on a terminal, a line per
//! change otherwise, a JSON line for programs.

use std::fmt::Write as _;

use std::io::IsTerminal as _;

use mainstay_api::{Istio, MigrationFailure, MigrationState, WorkloadMigrationStatus};

use crate::commands::revision::Format;
use crate::error::{CliError, Kind};
use crate::style::{ERROR, GOOD};

/// How wide a bar is.
const WIDTH: usize = 40;

/// What was printed so far.
pub(super) struct Display {
    format: Format,
    is_live: bool,
    last: Option<WorkloadMigrationStatus>,
    drawn: bool,
}

impl Display {
    pub(super) fn new(format: Format) -> Self {
        let people = matches!(format, Format::Text | Format::Wide);
        Self {
            format,
            is_live: people && std::io::stdout().is_terminal(),
            last: None,
            drawn: false,
        }
    }

    /// What to print now: nothing if nothing changed.
    pub(super) fn next(
        &mut self,
        istio: &Istio,
        status: &WorkloadMigrationStatus,
    ) -> Result<String, CliError> {
        if self.last.as_ref() == Some(status) {
            return Ok(String::new());
        }
        let known = self.last.replace(status.clone());
        if !matches!(self.format, Format::Text | Format::Wide) {
            let line = serde_json::to_string(status).map(|text| text + "\n");
            return line.map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")));
        }
        let mut out = String::new();
        if self.drawn {
            out.push_str("\x1b[1A\x1b[2K");
        }
        let news = |failure: &&MigrationFailure| {
            known
                .as_ref()
                .is_none_or(|known| !known.failures.contains(failure))
        };
        for failure in status.failures.iter().filter(news) {
            let MigrationFailure {
                kind,
                namespace,
                name,
                reason,
                ..
            } = failure;
            let _ = writeln!(out, "{ERROR}failed{ERROR:#} {kind}/{namespace}/{name}: {reason}");
        }
        out.push_str(&if self.is_live {
            bar(istio, status)
        } else {
            line(istio, status)
        });
        self.drawn = self.is_live;
        Ok(out)
    }
}

fn line(istio: &Istio, status: &WorkloadMigrationStatus) -> String {
    let batched = status.batched.unwrap_or_default();
    format!(
        "{} {:?}: {} of {} moved to {}, {} failed, {} skipped, batch {} of {}\n",
        istio.name(),
        status.state,
        status.migrated_workloads,
        status.total_workloads,
        status.target_revision,
        status.failed_workloads,
        status.skipped_workloads,
        batched.current_batch,
        batched.total_batches
    )
}

fn bar(istio: &Istio, status: &WorkloadMigrationStatus) -> String {
    let count = |number: i32| usize::try_from(number).unwrap_or_default();
    let total = count(status.total_workloads).max(1);
    let share = |number: i32| (count(number) * WIDTH).div_ceil(total).min(WIDTH);
    let (moved, failed) = (share(status.migrated_workloads), share(status.failed_workloads));
    let failed = failed.min(WIDTH - moved);
    let rest = WIDTH - moved - failed;
    let batched = status.batched.unwrap_or_default();
    let end = match status.state {
        MigrationState::Completed => format!(" {GOOD}done{GOOD:#}"),
        MigrationState::Failed => format!(" {ERROR}failed{ERROR:#}"),
        _ => String::new(),
    };
    format!(
        "{} [{GOOD}{}{GOOD:#}{ERROR}{}{ERROR:#}{}] {}/{} batch {}/{}{end}\n",
        istio.name(),
        "=".repeat(moved),
        "x".repeat(failed),
        " ".repeat(rest),
        status.migrated_workloads,
        status.total_workloads,
        batched.current_batch,
        batched.total_batches
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(moved: i32, failed: i32) -> WorkloadMigrationStatus {
        WorkloadMigrationStatus {
            state: MigrationState::InProgress,
            target_revision: "default-v1-29-1".into(),
            total_workloads: 4,
            migrated_workloads: moved,
            failed_workloads: failed,
            ..WorkloadMigrationStatus::default()
        }
    }

    fn istio() -> Istio {
        serde_json::from_str(r#"{"metadata": {"name": "default"}}"#).unwrap()
    }

    #[test]
    fn without_a_terminal_there_is_a_line_per_change() {
        let mut display = Display::new(Format::Text);
        display.is_live = false;
        let first = display.next(&istio(), &status(1, 0)).unwrap();
        assert_eq!(
            first,
            "default InProgress: 1 of 4 moved to default-v1-29-1, 0 failed, 0 skipped, batch 0 of 0\n"
        );
        assert_eq!(display.next(&istio(), &status(1, 0)).unwrap(), "");
        assert!(
            display
                .next(&istio(), &status(2, 0))
                .unwrap()
                .starts_with("default InProgress: 2 of 4")
        );
    }

    #[test]
    fn a_bar_is_redrawn_in_place_and_never_longer_than_it_is() {
        let mut display = Display::new(Format::Text);
        display.is_live = true;
        assert!(!display.next(&istio(), &status(1, 1)).unwrap().contains("\x1b[1A"));
        assert!(
            display
                .next(&istio(), &status(4, 4))
                .unwrap()
                .starts_with("\x1b[1A\x1b[2K")
        );
        let full = bar(&istio(), &status(4, 4));
        assert_eq!(full.matches('=').count() + full.matches('x').count(), WIDTH);
    }

    #[test]
    fn programs_get_a_json_line() {
        let mut display = Display::new(Format::Json);
        let text = display.next(&istio(), &status(1, 0)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["migratedWorkloads"], 1);
    }
}
