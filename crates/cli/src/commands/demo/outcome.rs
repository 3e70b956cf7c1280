//! Result of the demo by workload; fails if a workload is not on the expected revision.

use std::collections::BTreeSet;

use mainstay_api::names;
use mainstay_mesh::workload::MigrationRecord;
use serde::Serialize;
use serde_json::{Value, json};

use super::cluster::{DemoCluster, Revisions};
use super::fixtures::{NEW, OLD, SKIPPED, WORKLOADS, Workload};
use super::steps::is_gone;
use crate::error::{CliError, Kind};
use crate::ui::table;

/// Facts recorded during the demo.
pub(super) struct Facts {
    /// Revisions before the upgrade.
    pub(super) before: Revisions,
    /// Workloads that failed during the migration, as `namespace/name`.
    pub(super) failed: BTreeSet<String>,
}

/// Result of a workload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    workload: String,
    kind: &'static str,
    before: String,
    after: String,
    what: ResultKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<i32>,
}

/// Kind of result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ResultKind {
    Moved,
    MovedAfterRepair,
    RestartedByOwner,
    NotInTheMesh,
    Unexpected,
}

impl ResultKind {
    fn words(self) -> &'static str {
        match self {
            Self::Moved => "migrated",
            Self::MovedAfterRepair => "failed, migrated after the fix",
            Self::RestartedByOwner => "skipped, restarted manually",
            Self::NotInTheMesh => "not in the mesh",
            Self::Unexpected => "unexpected revision",
        }
    }
}

/// Results of all workloads.
pub(super) struct Outcome {
    pub(super) rows: Vec<Row>,
    pruned: bool,
}

/// Reads the results from the cluster.
pub(super) async fn read(cluster: &DemoCluster, facts: &Facts) -> Result<Outcome, CliError> {
    let after = cluster.revisions().await?;
    let mut rows = Vec::new();
    for workload in &WORKLOADS {
        let object = cluster.stage.get(&workload.path()).await?.unwrap_or_default();
        let marks = object.pointer("/metadata/annotations");
        let mark = marks.and_then(|marks| marks.get(names::MIGRATION_RECORD)?.as_str());
        let mark = mark.and_then(MigrationRecord::parse);
        let on = |revisions: &Revisions| {
            let all = revisions.get(&(workload.namespace, workload.name));
            all.map(|all| all.join(" and ")).unwrap_or_default()
        };
        let (before, after) = (on(&facts.before), on(&after));
        let what = classify(workload, &before, &after, mark.is_some(), facts);
        rows.push(Row {
            workload: format!("{}/{}", workload.namespace, workload.name),
            kind: workload.kind,
            before,
            after,
            what,
            batch: mark.map(|mark| mark.batch),
        });
    }
    Ok(Outcome {
        rows,
        pruned: is_gone(cluster).await?,
    })
}

fn classify(workload: &Workload, before: &str, after: &str, is_marked: bool, facts: &Facts) -> ResultKind {
    let has_failed = facts
        .failed
        .contains(&format!("{}/{}", workload.namespace, workload.name));
    if workload.is_outside() {
        let is_untouched = before.is_empty() && after.is_empty() && !is_marked;
        return if is_untouched {
            ResultKind::NotInTheMesh
        } else {
            ResultKind::Unexpected
        };
    }
    let skipped = (workload.namespace, workload.name) == SKIPPED;
    match (before == OLD && after == NEW, is_marked, has_failed, skipped) {
        (true, true, false, false) => ResultKind::Moved,
        (true, true, true, false) => ResultKind::MovedAfterRepair,
        (true, false, false, true) => ResultKind::RestartedByOwner,
        _ => ResultKind::Unexpected,
    }
}

impl Outcome {
    fn count(&self, what: ResultKind) -> usize {
        self.rows.iter().filter(|row| row.what == what).count()
    }

    /// Formats the results as a table.
    pub(super) fn table(&self) -> String {
        let head = ["WORKLOAD", "KIND", "BEFORE", "AFTER", "BATCH", "RESULT"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        for row in &self.rows {
            rows.push(vec![
                row.workload.clone(),
                row.kind.to_owned(),
                or_dash(&row.before),
                or_dash(&row.after),
                row.batch
                    .map_or_else(|| "-".to_owned(), |batch| batch.to_string()),
                row.what.words().to_owned(),
            ]);
        }
        table::lines("", &rows)
    }

    /// Fails unless every workload has the expected result.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let unexpected: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| row.what == ResultKind::Unexpected)
            .map(|row| row.workload.as_str())
            .collect();
        if !unexpected.is_empty() {
            let message = format!("workloads on an unexpected revision: {}", unexpected.join(", "));
            return Err(CliError::new(Kind::Cluster, message));
        }
        if !self.pruned {
            return Err(CliError::new(Kind::Cluster, format!("{OLD} is not pruned")));
        }
        Ok(())
    }

    /// Returns a one-line summary.
    pub(super) fn summary(&self) -> String {
        format!(
            "{} workloads: {} migrated, {} after a fix, {} restarted manually, {} not in the mesh. {OLD} is pruned.",
            self.rows.len(),
            self.count(ResultKind::Moved),
            self.count(ResultKind::MovedAfterRepair),
            self.count(ResultKind::RestartedByOwner),
            self.count(ResultKind::NotInTheMesh)
        )
    }

    /// Returns the totals as JSON.
    pub(super) fn data(&self) -> Value {
        json!({
            "workloads": self.rows.len(),
            "moved": self.count(ResultKind::Moved),
            "movedAfterRepair": self.count(ResultKind::MovedAfterRepair),
            "restartedByOwner": self.count(ResultKind::RestartedByOwner),
            "notInTheMesh": self.count(ResultKind::NotInTheMesh),
            "pruned": self.pruned,
        })
    }
}
