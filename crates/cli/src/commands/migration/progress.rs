//! A migration as it goes: takes one look at it after the other, gives what to print next: bars that are
//! redrawn on a terminal, a line per change otherwise, a JSON line for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use mainstay_api::{Istio, MigrationFailure, MigrationState, WorkloadMigrationStatus};
use mainstay_mesh::Snapshot;
use mainstay_mesh::migration::{MigrationIndex, WorkloadPhase};

use crate::commands::revision::Format;
use crate::commands::{print, print_styled};
use crate::error::{CliError, Kind};
use crate::style::{ERROR, GOOD, WARNING};

/// How wide a bar is.
const WIDTH: usize = 40;
/// How many batches have a bar of their own: the last ones.
const BARS: usize = 8;

/// What there is to see at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
    istio: String,
    pub(crate) status: WorkloadMigrationStatus,
    batches: BTreeMap<i32, Batch>,
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Batch {
    moved: usize,
    failed: usize,
    moving: usize,
}

impl Look {
    /// At the migration of an Istio; nothing if it moves no workloads.
    pub(crate) fn at(snapshot: &Snapshot, istio: &Istio) -> Option<Self> {
        let mut batches: BTreeMap<i32, Batch> = BTreeMap::new();
        let states = snapshot.migration_index(istio.name()).map(MigrationIndex::iter);
        for (_, state) in states.into_iter().flatten() {
            let Some(batch) = state.batch() else {
                continue;
            };
            let batch = batches.entry(batch).or_default();
            match state.phase(snapshot.now) {
                WorkloadPhase::Migrated => batch.moved += 1,
                WorkloadPhase::Failed => batch.failed += 1,
                WorkloadPhase::Moving => batch.moving += 1,
                WorkloadPhase::Pending | WorkloadPhase::Skipped => {}
            }
        }
        Some(Self {
            istio: istio.name().to_owned(),
            status: istio.status.workload_migration.clone()?,
            batches,
        })
    }
}

/// What to print next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// How many lines are taken back first.
    back: usize,
    pub(crate) text: String,
}

impl Frame {
    /// The same with something in front of its first line, and as much room in front of the others.
    pub(crate) fn with_margin(&self, margin: &str) -> Self {
        let room = " ".repeat(anstream::adapter::strip_str(margin).to_string().chars().count());
        let lines = self.text.lines().enumerate();
        let text = lines.map(|(index, line)| {
            let front = if index == 0 { margin } else { &room };
            format!("{front}{line}\n")
        });
        Self {
            back: self.back,
            text: text.collect(),
        }
    }

    /// Prints it. What it takes back is none of the text's business, which may hold names from a cluster.
    pub(crate) fn print(&self) -> Result<(), CliError> {
        if self.back > 0 {
            print(format!("\x1b[{}A\x1b[J", self.back).as_bytes())?;
        }
        print_styled(&self.text)
    }
}

/// What was printed so far.
pub(crate) struct Display {
    format: Format,
    is_live: bool,
    last: Option<Look>,
    drawn: usize,
}

impl Display {
    pub(crate) fn new(format: Format) -> Self {
        let people = matches!(format, Format::Text | Format::Wide);
        Self {
            format,
            is_live: people && std::io::stdout().is_terminal(),
            last: None,
            drawn: 0,
        }
    }

    /// What to print now: nothing if nothing changed.
    pub(crate) fn next(&mut self, look: Look) -> Result<Frame, CliError> {
        let is_same = |last: &Look| {
            if self.is_live {
                *last == look
            } else {
                last.status == look.status
            }
        };
        if self.last.as_ref().is_some_and(is_same) {
            return Ok(Frame::default());
        }
        if !matches!(self.format, Format::Text | Format::Wide) {
            let line = serde_json::to_string(&look.status).map(|text| text + "\n");
            let text = line.map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))?;
            self.last = Some(look);
            return Ok(Frame { back: 0, text });
        }
        let mut text = self.failures(&look.status);
        let back = self.drawn;
        if self.is_live {
            let bars = bars(&look);
            self.drawn = bars.lines().count();
            text.push_str(&bars);
        } else {
            text.push_str(&line(&look));
        }
        self.last = Some(look);
        Ok(Frame { back, text })
    }

    /// Those nobody was told of.
    fn failures(&self, status: &WorkloadMigrationStatus) -> String {
        let known = self.last.as_ref().map(|last| &last.status.failures);
        let is_new = |failure: &&MigrationFailure| known.is_none_or(|known| !known.contains(failure));
        let mut out = String::new();
        for failure in status.failures.iter().filter(is_new) {
            let MigrationFailure {
                kind,
                namespace,
                name,
                reason,
                ..
            } = failure;
            let _ = writeln!(out, "{ERROR}failed{ERROR:#} {kind}/{namespace}/{name}: {reason}");
        }
        out
    }
}

fn line(look: &Look) -> String {
    let status = &look.status;
    let batched = status.batched.unwrap_or_default();
    format!(
        "{} {:?}: {} of {} moved to {}, {} failed, {} skipped, batch {} of {}\n",
        look.istio,
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

/// A bar per batch, and one for all of them.
fn bars(look: &Look) -> String {
    let status = &look.status;
    let mut out = String::new();
    let (count, all) = (look.batches.len(), look.batches.iter());
    for (number, batch) in all.skip(count.saturating_sub(BARS)) {
        let total = batch.moved + batch.failed + batch.moving;
        let _ = writeln!(
            out,
            "  batch {number:<4}{} {}/{total}",
            bar([batch.moved, batch.failed, batch.moving], total),
            batch.moved
        );
    }
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    let (moved, failed) = (number(status.migrated_workloads), number(status.failed_workloads));
    let total = number(status.total_workloads).saturating_sub(number(status.skipped_workloads));
    let moving = look.batches.values().map(|batch| batch.moving).sum();
    let end = match status.state {
        MigrationState::Completed => format!(" {GOOD}done{GOOD:#}"),
        MigrationState::Failed => format!(" {ERROR}failed{ERROR:#}"),
        _ => String::new(),
    };
    let batched = status.batched.unwrap_or_default();
    let _ = writeln!(
        out,
        "{:<12}{} {moved}/{total} batch {}/{}, {failed} failed, {} skipped{end}",
        look.istio,
        bar([moved, failed, moving], total),
        batched.current_batch,
        batched.total_batches,
        status.skipped_workloads
    );
    out
}

/// So many moved, failed and moving of a total, as letters between brackets.
fn bar([moved, failed, moving]: [usize; 3], total: usize) -> String {
    let mut rest = WIDTH;
    let mut share = |count: usize| {
        let part = (count * WIDTH).div_ceil(total.max(1)).min(rest);
        rest -= part;
        part
    };
    let (moved, failed, moving) = (share(moved), share(failed), share(moving));
    format!(
        "[{GOOD}{}{GOOD:#}{ERROR}{}{ERROR:#}{WARNING}{}{WARNING:#}{}]",
        "=".repeat(moved),
        "x".repeat(failed),
        ">".repeat(moving),
        " ".repeat(rest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(moved: i32, failed: i32) -> Look {
        let count = |number: i32| usize::try_from(number).unwrap();
        Look {
            istio: "default".into(),
            status: WorkloadMigrationStatus {
                state: MigrationState::InProgress,
                target_revision: "default-v1-29-1".into(),
                total_workloads: 4,
                migrated_workloads: moved,
                failed_workloads: failed,
                ..WorkloadMigrationStatus::default()
            },
            batches: BTreeMap::from([
                (
                    1,
                    Batch {
                        moved: count(moved),
                        failed: count(failed),
                        moving: 0,
                    },
                ),
                (
                    2,
                    Batch {
                        moving: 2,
                        ..Batch::default()
                    },
                ),
            ]),
        }
    }

    fn display(format: Format, is_live: bool) -> Display {
        Display {
            is_live,
            ..Display::new(format)
        }
    }

    #[test]
    fn without_a_terminal_there_is_a_line_per_change() {
        let mut display = display(Format::Text, false);
        assert_eq!(
            display.next(look(1, 0)).unwrap(),
            Frame {
                back: 0,
                text:
                    "default InProgress: 1 of 4 moved to default-v1-29-1, 0 failed, 0 skipped, batch 0 of 0\n"
                        .into()
            }
        );
        assert_eq!(display.next(look(1, 0)).unwrap(), Frame::default());
        let next = display.next(look(2, 0)).unwrap();
        assert!(next.back == 0 && next.text.starts_with("default InProgress: 2 of 4"));
    }

    #[test]
    fn bars_are_redrawn_in_place_and_never_longer_than_they_are() {
        let mut display = display(Format::Text, true);
        assert_eq!(display.next(look(1, 1)).unwrap().back, 0);
        let next = display.next(look(4, 4)).unwrap();
        assert_eq!((next.back, next.text.lines().count()), (3, 3));
        for line in next.text.lines() {
            let inside = line.split_once('[').unwrap().1;
            assert_eq!(inside.matches(['=', 'x', '>']).count(), WIDTH, "{line}");
        }
        assert!(!next.text.contains("\x1b[3A"), "the text itself moves nothing");
    }

    #[test]
    fn a_batch_has_a_bar_of_its_own() {
        let drawn = anstream::adapter::strip_str(&bars(&look(1, 1))).to_string();
        let half = "=".repeat(20) + &"x".repeat(20);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], format!("  batch 1   [{half}] 1/2"));
        assert_eq!(lines[1], format!("  batch 2   [{}] 0/2", ">".repeat(40)));
        assert!(lines[2].starts_with("default     [==========xxxxxxxxxx>>>>>>>>>>>>>>>>>>>>] 1/4"));
    }

    #[test]
    fn programs_get_a_json_line() {
        let mut display = Display::new(Format::Json);
        let text = display.next(look(1, 0)).unwrap().text;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["migratedWorkloads"], 1);
    }
}
