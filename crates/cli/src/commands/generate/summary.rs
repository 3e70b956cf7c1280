//! Counts over a whole run: takes what became of each input, gives the numbers that reports and exit code are made from.

use mainstay_inject::{Action, Severity};
use serde::Serialize;

use super::treat::Treated;

/// The numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    pub(super) files: usize,
    pub(super) changed: usize,
    pub(super) unreadable: usize,
    #[serde(skip)]
    pub(super) unwritable: usize,
    pub(super) workloads: usize,
    pub(super) injected: usize,
    pub(super) removed: usize,
    pub(super) unchanged: usize,
    pub(super) skipped: usize,
    #[serde(rename = "failed")]
    pub(super) objects_failed: usize,
    pub(super) warnings: usize,
    pub(super) errors: usize,
}

impl Summary {
    /// Counts.
    pub(super) fn of(all: &[Treated]) -> Self {
        let mut summary = Self {
            files: all.len(),
            ..Self::default()
        };
        for treated in all {
            summary.changed += usize::from(treated.changed);
            summary.unreadable += usize::from(treated.error.is_some());
            summary.unwritable += usize::from(treated.unwritable);
            for told in &treated.objects {
                summary.count(told.report.action);
                let severities = told.report.findings.iter().map(|finding| finding.severity);
                severities.for_each(|severity| summary.weigh(severity));
            }
        }
        summary
    }

    /// Whether something that should have been treated was not.
    pub(super) fn failed(&self) -> bool {
        self.unreadable + self.objects_failed > 0
    }

    fn count(&mut self, action: Action) {
        self.workloads += 1;
        *match action {
            Action::Injected => &mut self.injected,
            Action::Removed => &mut self.removed,
            Action::Unchanged => &mut self.unchanged,
            Action::Skipped => &mut self.skipped,
            Action::Failed => &mut self.objects_failed,
        } += 1;
    }

    fn weigh(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => {}
        }
    }
}
