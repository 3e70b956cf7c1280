//! What a migration will do: takes a snapshot and an Istio, gives the batches in their order, what is left alone and why, before anything
//! moves. It is made of the same index and the same terms as the plans.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use mainstay_api::{Istio, Reason};

use super::terms::Migration;
use crate::Snapshot;
use crate::migration::WorkloadState;
use crate::workload::WorkloadKey;

/// What a migration will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Where workloads go.
    pub target: String,
    /// Namespaces that are relabelled first.
    pub namespaces: Vec<String>,
    /// Workloads that are restarted together, in this order.
    pub batches: Vec<Vec<WorkloadKey>>,
    /// Workloads that are being moved.
    pub moving: Vec<WorkloadKey>,
    /// Workloads that were moved.
    pub migrated: usize,
    /// Workloads that did not come up, or are refused.
    pub failed: Vec<WorkloadKey>,
    /// Workloads that are left alone, and why.
    pub skipped: Vec<(WorkloadKey, Reason)>,
    /// Pods on old revisions that no workload made, by namespace and name.
    pub loose: Vec<(String, String)>,
    /// Why nothing starts at this moment.
    pub held: Option<(Reason, String)>,
    /// How long it waits between two batches.
    pub delay: SignedDuration,
}

/// What the migration of an Istio will do from here on; nothing if it moves no workloads.
#[must_use]
pub fn preview(snapshot: &Snapshot, istio: &Istio) -> Option<Preview> {
    let migration = Migration::of(snapshot, istio)?;
    let now = snapshot.now;
    let (size, delay) = match &migration.terms {
        Ok(terms) => (terms.size, terms.delay),
        Err(hold) => hold
            .terms
            .as_ref()
            .map_or((1, SignedDuration::ZERO), |terms| (terms.size, terms.delay)),
    };
    let mut outstanding: BTreeMap<i32, Vec<WorkloadKey>> = BTreeMap::new();
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for (key, standing) in migration.index.iter() {
        match standing {
            WorkloadState::Pending { .. } | WorkloadState::Waiting => {
                let priority = snapshot.workload(key).map_or(0, |workload| workload.priority);
                outstanding.entry(priority).or_default().push(key.clone());
            }
            WorkloadState::Skipped(reason) => skipped.push((key.clone(), reason.clone())),
            WorkloadState::Rejected => failed.push(key.clone()),
            WorkloadState::Started { .. } | WorkloadState::Finished { .. } => {}
        }
    }
    failed.extend(migration.index.late(now).map(|(_, key)| key.clone()));
    failed.sort();
    let batches = outstanding.values().flat_map(|keys| keys.chunks(size.max(1)));
    let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
    let old = owned.filter(|revision| revision.name() != migration.target);
    let loose = old.flat_map(|revision| snapshot.references().standalone_pods(revision.name()));
    Some(Preview {
        target: migration.target.to_owned(),
        namespaces: migration.index.namespaces().map(str::to_owned).collect(),
        batches: batches.map(<[WorkloadKey]>::to_vec).collect(),
        moving: migration.index.moving(now).map(|(_, key)| key.clone()).collect(),
        migrated: migration.index.counts(now).migrated,
        failed,
        skipped,
        loose: loose
            .map(|(space, pod)| (space.to_owned(), pod.to_owned()))
            .collect(),
        held: migration.terms.err().map(|hold| (hold.reason, hold.message)),
        delay,
    })
}
