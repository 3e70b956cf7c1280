//! Totals of a run, used by reports and the exit code.

use mainstay_inject::{Action, Severity};
use serde::Serialize;

use super::process::Processed;

/// Totals of a run.
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
    /// Counts results.
    pub(super) fn new(all: &[Processed]) -> Self {
        let mut summary = Self {
            files: all.len(),
            ..Self::default()
        };
        for processed in all {
            summary.changed += usize::from(processed.changed);
            summary.unreadable += usize::from(processed.error.is_some());
            summary.unwritable += usize::from(processed.unwritable);
            for object in &processed.objects {
                summary.count(object.report.action);
                let severities = object.report.findings.iter().map(|finding| finding.severity);
                severities.for_each(|severity| summary.count_severity(severity));
            }
        }
        summary
    }

    /// Whether an input or object failed.
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

    fn count_severity(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => {}
        }
    }
}
