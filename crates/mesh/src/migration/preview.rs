//! Predicts the batches of a migration before any workload is restarted, from the same index and settings as
//! the plans.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use mainstay_api::{Istio, Reason};

use super::WorkloadState;
use super::hold::Migration;
use crate::Snapshot;
use crate::workload::WorkloadKey;

/// Predicted outcome of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The target revision.
    pub target: String,
    /// Namespaces that are relabeled first.
    pub namespaces: Vec<String>,
    /// Batches in order, each with the workloads that are restarted together.
    pub batches: Vec<Vec<WorkloadKey>>,
    /// Workloads that were restarted and are not ready yet.
    pub moving: Vec<WorkloadKey>,
    /// Number of workloads that are ready on the target revision.
    pub migrated: usize,
    /// Workloads that were not ready in time, or whose restart is rejected.
    pub failed: Vec<WorkloadKey>,
    /// Workloads that are excluded from the migration, with the reason.
    pub skipped: Vec<(WorkloadKey, Reason)>,
    /// Pods on old revisions that belong to no workload, by namespace and name.
    pub standalone: Vec<(String, String)>,
    /// Reason and message if no batch may start now.
    pub held: Option<(Reason, String)>,
    /// Time between two batches.
    pub delay: SignedDuration,
}

/// Returns the predicted outcome of an Istio's migration, or `None` if the Istio does not migrate
/// workloads.
#[must_use]
pub fn preview(snapshot: &Snapshot, istio: &Istio) -> Option<Preview> {
    let migration = Migration::for_istio(snapshot, istio)?;
    let now = snapshot.now;
    let mut outstanding: BTreeMap<i32, Vec<WorkloadKey>> = BTreeMap::new();
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for (key, state) in migration.index.iter() {
        match state {
            WorkloadState::Pending { priority } | WorkloadState::Waiting { priority } => {
                outstanding.entry(*priority).or_default().push(key.clone());
            }
            WorkloadState::Skipped(reason) => skipped.push((key.clone(), reason.clone())),
            WorkloadState::Rejected => failed.push(key.clone()),
            WorkloadState::Started { .. } | WorkloadState::Finished { .. } => {}
        }
    }
    failed.extend(migration.index.overdue(now).map(|(_, key)| key.clone()));
    failed.sort();
    let size = migration.settings.batch_size;
    let batches = outstanding.values().flat_map(|keys| keys.chunks(size.max(1)));
    let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
    let old = owned.filter(|revision| revision.name() != migration.target);
    let standalone = old.flat_map(|revision| snapshot.references().standalone_pods(revision.name()));
    Some(Preview {
        target: migration.target.to_owned(),
        namespaces: migration.index.namespaces().map(str::to_owned).collect(),
        batches: batches.map(<[WorkloadKey]>::to_vec).collect(),
        moving: migration.index.moving(now).map(|(_, key)| key.clone()).collect(),
        migrated: migration.index.counts(now).migrated,
        failed,
        skipped,
        standalone: standalone
            .map(|(namespace, pod)| (namespace.to_owned(), pod.to_owned()))
            .collect(),
        held: migration.hold.map(|hold| (hold.reason, hold.message)),
        delay: migration.settings.delay_between_batches,
    })
}
