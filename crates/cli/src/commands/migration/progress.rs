//! Progress of a migration: bars on a terminal, a line per change otherwise, JSON lines or YAML documents for
//! programs.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use mainstay_api::{
    ConditionStatus, ConditionType, Istio, MigrationFailure, MigrationState, WorkloadMigrationStatus,
};
use mainstay_mesh::Snapshot;
use mainstay_mesh::migration::{MigrationIndex, WorkloadPhase};

use crate::commands::revision::{Format, stream_entry};
use crate::commands::{escape_control_characters, print_styled};
use crate::error::CliError;
use crate::ui::style::ERROR;
use crate::ui::{BarRow, Bars};

/// Maximum number of batches with a separate bar: the last ones.
const MAX_BATCH_BARS: usize = 8;

/// Progress of a migration at one time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MigrationProgress {
    istio: String,
    pub(crate) status: WorkloadMigrationStatus,
    /// Reason why no workload is moving, such as reason and message of the condition.
    waiting: Option<String>,
    batches: BTreeMap<i32, Batch>,
}

/// Number of workloads of a batch by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    migrated: usize,
    failed: usize,
    moving: usize,
}

impl MigrationProgress {
    /// Returns the progress of an Istio's migration, or `None` if it is not enabled.
    pub(crate) fn from_snapshot(snapshot: &Snapshot, istio: &Istio) -> Option<Self> {
        let mut batches: BTreeMap<i32, Batch> = BTreeMap::new();
        let states = snapshot.migration_index(istio.name()).map(MigrationIndex::iter);
        for (_, state) in states.into_iter().flatten() {
            let Some(batch) = state.batch() else {
                continue;
            };
            let batch = batches.entry(batch).or_default();
            match state.phase(snapshot.now) {
                WorkloadPhase::Migrated => batch.migrated += 1,
                WorkloadPhase::Failed => batch.failed += 1,
                WorkloadPhase::Moving => batch.moving += 1,
                WorkloadPhase::Pending | WorkloadPhase::Skipped => {}
            }
        }
        let is_moving = batches.values().any(|batch| batch.moving > 0);
        Some(Self {
            istio: istio.name().to_owned(),
            status: istio.status.workload_migration.clone()?,
            waiting: waiting(istio).filter(|_| !is_moving),
            batches,
        })
    }

    fn moving(&self) -> usize {
        self.batches.values().map(|batch| batch.moving).sum()
    }
}

/// Returns the reason why a migration that has not ended is waiting.
fn waiting(istio: &Istio) -> Option<String> {
    let status = istio.status.workload_migration.as_ref()?;
    if matches!(status.state, MigrationState::Completed | MigrationState::Failed) {
        return None;
    }
    if let Some(time) = status.batched.and_then(|batched| batched.next_batch_time) {
        return Some(format!("next batch at {time}"));
    }
    let condition = istio.status.conditions.find(&ConditionType::WorkloadsMigrated)?;
    (condition.status != ConditionStatus::True)
        .then(|| format!("{}: {}", condition.reason, condition.message))
}

/// Displays the progress of a migration.
pub(crate) struct Display {
    output: Output,
    last: Option<MigrationProgress>,
}

enum Output {
    /// JSON lines or YAML documents.
    Data(Format),
    Lines,
    Bars(Bars),
}

impl Display {
    /// Creates a display on stdout.
    pub(crate) fn new(format: Format) -> Self {
        let output = match format {
            Format::Json | Format::Yaml => Output::Data(format),
            Format::Text | Format::Wide if std::io::stdout().is_terminal() => Output::Bars(Bars::new()),
            Format::Text | Format::Wide => Output::Lines,
        };
        Self { output, last: None }
    }

    /// Stores the progress and returns new failures, or `None` if nothing changed.
    pub(crate) fn accept(&mut self, progress: MigrationProgress) -> Option<Vec<String>> {
        let live = matches!(self.output, Output::Bars(_));
        let is_same = |last: &MigrationProgress| {
            last.status == progress.status
                && last.waiting == progress.waiting
                && (!live || last.batches == progress.batches)
        };
        if self.last.as_ref().is_some_and(is_same) {
            return None;
        }
        let known = self.last.as_ref().map(|last| &last.status.failures);
        let is_new = |failure: &&MigrationFailure| known.is_none_or(|known| !known.contains(failure));
        let failures = progress.status.failures.iter().filter(is_new);
        let failures = failures.map(failure_line).collect();
        self.last = Some(progress);
        Some(failures)
    }

    /// Displays the progress if it changed; `margin` precedes each line.
    pub(crate) fn show(&mut self, margin: &str, progress: MigrationProgress) -> Result<(), CliError> {
        let Some(failures) = self.accept(progress) else {
            return Ok(());
        };
        let Some(progress) = &self.last else {
            return Ok(());
        };
        match &mut self.output {
            Output::Data(format) => print_styled(&stream_entry(&progress.status, *format)?),
            Output::Lines => {
                let lines = failures.iter().map(String::as_str);
                let line = line(progress);
                let lines = lines.chain([line.as_str()]);
                print_styled(&lines.flat_map(|line| [margin, line, "\n"]).collect::<String>())
            }
            Output::Bars(bars) => {
                for failure in &failures {
                    bars.print(&escape_control_characters(&format!("{margin}{failure}")));
                }
                bars.show(&rows(progress));
                Ok(())
            }
        }
    }
}

fn failure_line(failure: &MigrationFailure) -> String {
    let MigrationFailure {
        kind,
        namespace,
        name,
        reason,
        ..
    } = failure;
    format!("{ERROR}failed{ERROR:#} {kind}/{namespace}/{name}: {reason}")
}

fn line(progress: &MigrationProgress) -> String {
    let status = &progress.status;
    let batched = status.batched.unwrap_or_default();
    let mut line = format!(
        "{} {:?}: {} of {} migrated to {}, {} failed, {} skipped, batch {} of {}",
        progress.istio,
        status.state,
        status.migrated_workloads,
        status.total_workloads,
        status.target_revision,
        status.failed_workloads,
        status.skipped_workloads,
        batched.current_batch,
        batched.total_batches
    );
    if let Some(waiting) = &progress.waiting {
        line.push_str("; waiting: ");
        line.push_str(waiting);
    }
    line
}

/// Returns a bar per batch, and one for the whole migration.
fn rows(progress: &MigrationProgress) -> Vec<BarRow> {
    let all = progress.batches.iter();
    let skipped = progress.batches.len().saturating_sub(MAX_BATCH_BARS);
    let mut rows: Vec<BarRow> = all
        .skip(skipped)
        .map(|(number, batch)| batch_row(*number, batch))
        .collect();
    let status = &progress.status;
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    let batched = status.batched.unwrap_or_default();
    let mut note = format!(
        "{:?}, batch {}/{}, {} moving, {} failed, {} skipped",
        status.state,
        batched.current_batch,
        batched.total_batches,
        progress.moving(),
        status.failed_workloads,
        status.skipped_workloads
    );
    if let Some(waiting) = &progress.waiting {
        note.push_str("; waiting: ");
        note.push_str(waiting);
    }
    rows.push(BarRow {
        label: escape_control_characters(&progress.istio),
        done: number(status.migrated_workloads),
        total: number(status.total_workloads).saturating_sub(number(status.skipped_workloads)),
        note: escape_control_characters(&note),
    });
    rows
}

fn batch_row(number: i32, batch: &Batch) -> BarRow {
    let counts = [(batch.moving, "moving"), (batch.failed, "failed")];
    let notes = counts.iter().filter(|(count, _)| *count > 0);
    let notes: Vec<String> = notes.map(|(count, word)| format!("{count} {word}")).collect();
    BarRow {
        label: format!("  batch {number}"),
        done: batch.migrated,
        total: batch.migrated + batch.failed + batch.moving,
        note: notes.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(migrated: i32, failed: i32, waiting: Option<&str>) -> MigrationProgress {
        let count = |number: i32| usize::try_from(number).unwrap();
        let first = Batch {
            migrated: count(migrated),
            failed: count(failed),
            moving: 0,
        };
        let second = Batch {
            moving: 2,
            ..Batch::default()
        };
        MigrationProgress {
            istio: "default".into(),
            status: WorkloadMigrationStatus {
                state: MigrationState::InProgress,
                target_revision: "default-v1-29-1".into(),
                total_workloads: 4,
                migrated_workloads: migrated,
                failed_workloads: failed,
                ..WorkloadMigrationStatus::default()
            },
            waiting: waiting.map(str::to_owned),
            batches: BTreeMap::from([(1, first), (2, second)]),
        }
    }

    #[test]
    fn without_a_terminal_there_is_a_line_per_change() {
        let mut display = Display::new(Format::Text);
        assert_eq!(display.accept(progress(1, 0, None)), Some(Vec::new()));
        assert_eq!(display.accept(progress(1, 0, None)), None);
        assert_eq!(display.accept(progress(2, 0, None)), Some(Vec::new()));
        assert_eq!(
            line(&progress(1, 0, None)),
            "default InProgress: 1 of 4 migrated to default-v1-29-1, 0 failed, 0 skipped, batch 0 of 0"
        );
    }

    #[test]
    fn the_reason_for_waiting_is_printed() {
        let reason = "MigrationPaused: spec.updateStrategy.workloadMigration.paused is true";
        let waits = progress(1, 0, Some(reason));
        assert!(line(&waits).ends_with(&format!("; waiting: {reason}")));
        assert!(
            rows(&waits)
                .last()
                .unwrap()
                .note
                .ends_with(&format!("; waiting: {reason}"))
        );
        let mut display = Display::new(Format::Text);
        display.accept(progress(1, 0, None));
        assert!(display.accept(waits).is_some(), "a new reason is a change");
    }

    #[test]
    fn each_batch_has_a_bar() {
        let rows = rows(&progress(1, 1, None));
        let shown: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}/{} {}", row.label, row.done, row.total, row.note))
            .collect();
        assert_eq!(
            shown,
            [
                "  batch 1 1/2 1 failed",
                "  batch 2 0/2 2 moving",
                "default 1/4 InProgress, batch 0/0, 2 moving, 1 failed, 0 skipped",
            ]
        );
    }

    #[test]
    fn changes_are_json_lines_or_yaml_documents() {
        let text = |format| stream_entry(&progress(1, 0, None).status, format).unwrap();
        let json = text(Format::Json);
        assert_eq!(json.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["migratedWorkloads"], 1);
        let yaml = text(Format::Yaml);
        assert!(
            yaml.starts_with("---\n") && yaml.contains("\nmigratedWorkloads: 1\n"),
            "{yaml}"
        );
        assert!(matches!(
            Display::new(Format::Yaml).output,
            Output::Data(Format::Yaml)
        ));
    }
}
