//! What became of everybody: takes the cluster at the end and what was seen on the way, gives a row per workload, and fails if one is not
//! where it should be.

use std::collections::BTreeSet;

use mainstay_api::names;
use mainstay_mesh::workload::MigrationRecord;
use serde::Serialize;
use serde_json::{Value, json};

use super::acts::is_gone;
use super::cast::{ACTORS, Actor, NEW, OLD, SKIPPED};
use super::world::{Revisions, World};
use crate::error::{CliError, Kind};
use crate::table;

/// What was seen on the way.
pub(super) struct Facts {
    /// Who was on which revision before the upgrade.
    pub(super) before: Revisions,
    /// Who failed at first, as `namespace/name`.
    pub(super) failed: BTreeSet<String>,
}

/// One workload's way.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    workload: String,
    kind: &'static str,
    before: String,
    after: String,
    what: What,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<i32>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum What {
    Moved,
    MovedAfterRepair,
    RestartedByOwner,
    NotInTheMesh,
    Astray,
}

impl What {
    fn words(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::MovedAfterRepair => "failed, moved after its repair",
            Self::RestartedByOwner => "skipped, restarted by its owner",
            Self::NotInTheMesh => "not in the mesh, untouched",
            Self::Astray => "not where it should be",
        }
    }
}

/// Everybody's.
pub(super) struct Outcome {
    pub(super) rows: Vec<Row>,
    pruned: bool,
}

/// Reads it.
pub(super) async fn read(world: &World, facts: &Facts) -> Result<Outcome, CliError> {
    let after = world.revisions().await?;
    let mut rows = Vec::new();
    for actor in &ACTORS {
        let object = world.stage.get(&actor.path()).await?.unwrap_or_default();
        let marks = object.pointer("/metadata/annotations");
        let mark = marks.and_then(|marks| marks.get(names::MIGRATION_RECORD)?.as_str());
        let mark = mark.and_then(MigrationRecord::parse);
        let on = |revisions: &Revisions| {
            let all = revisions.get(&(actor.space, actor.name));
            all.map(|all| all.join(" and ")).unwrap_or_default()
        };
        let (before, after) = (on(&facts.before), on(&after));
        let what = judge(actor, &before, &after, mark.is_some(), facts);
        rows.push(Row {
            workload: format!("{}/{}", actor.space, actor.name),
            kind: actor.kind,
            before,
            after,
            what,
            batch: mark.map(|mark| mark.batch),
        });
    }
    Ok(Outcome {
        rows,
        pruned: is_gone(world).await?,
    })
}

fn judge(actor: &Actor, before: &str, after: &str, is_marked: bool, facts: &Facts) -> What {
    let has_failed = facts.failed.contains(&format!("{}/{}", actor.space, actor.name));
    if actor.is_outside() {
        let is_untouched = before.is_empty() && after.is_empty() && !is_marked;
        return if is_untouched {
            What::NotInTheMesh
        } else {
            What::Astray
        };
    }
    let skipped = (actor.space, actor.name) == SKIPPED;
    match (before == OLD && after == NEW, is_marked, has_failed, skipped) {
        (true, true, false, false) => What::Moved,
        (true, true, true, false) => What::MovedAfterRepair,
        (true, false, false, true) => What::RestartedByOwner,
        _ => What::Astray,
    }
}

impl Outcome {
    fn count(&self, what: What) -> usize {
        self.rows.iter().filter(|row| row.what == what).count()
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let head = ["WORKLOAD", "KIND", "BEFORE", "AFTER", "BATCH", "WHAT HAPPENED"];
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

    /// Fails unless everything went as it should: a demo that shows something else is broken.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let astray: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| row.what == What::Astray)
            .map(|row| row.workload.as_str())
            .collect();
        if !astray.is_empty() {
            let said = format!("not where they should be: {}", astray.join(", "));
            return Err(CliError::new(Kind::Cluster, said));
        }
        if !self.pruned {
            return Err(CliError::new(Kind::Cluster, format!("{OLD} is still there")));
        }
        Ok(())
    }

    /// For people, in short.
    pub(super) fn sentence(&self) -> String {
        format!(
            "{} workloads: {} moved, {} after its repair, {} restarted by its owner, {} not in the mesh. {OLD} is pruned.",
            self.rows.len(),
            self.count(What::Moved),
            self.count(What::MovedAfterRepair),
            self.count(What::RestartedByOwner),
            self.count(What::NotInTheMesh)
        )
    }

    /// For programs.
    pub(super) fn data(&self) -> Value {
        json!({
            "workloads": self.rows.len(),
            "moved": self.count(What::Moved),
            "movedAfterRepair": self.count(What::MovedAfterRepair),
            "restartedByOwner": self.count(What::RestartedByOwner),
            "notInTheMesh": self.count(What::NotInTheMesh),
            "pruned": self.pruned,
        })
    }
}
