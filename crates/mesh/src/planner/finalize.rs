//! From first sight to the end of an object: takes an object that installs something, gives the finalizer's steps or the work.

use mainstay_api::{Kind, Reason, Resource, names};

use super::work::Work;
use crate::Snapshot;
use crate::plan::{Action, Plan, ReleaseKey};
use crate::snapshot::ReleaseFact;

/// Puts the finalizer on, or takes away what was installed and then the finalizer; otherwise lets `reconcile` work.
///
/// The finalizer goes only once every release is known to be gone: not in the plan that removes it.
pub(super) fn guarded<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: impl FnOnce() -> Vec<ReleaseKey>,
    reconcile: impl FnOnce() -> Plan,
) -> Plan {
    let metadata = &object.metadata;
    let mut work = Work::on(snapshot, object);
    match (metadata.is_deleting(), metadata.has_finalizer()) {
        (true, false) => {}
        (true, true) => take_away(snapshot, object, installs(), &mut work),
        (false, false) => {
            let finalizers = metadata
                .finalizers
                .iter()
                .cloned()
                .chain([names::FINALIZER.to_owned()]);
            let action = Action::AddFinalizer {
                object: work.object().clone(),
                finalizers: finalizers.collect(),
            };
            work.add(action, Reason::FinalizerMissing);
        }
        (false, true) => return reconcile(),
    }
    work.plan()
}

fn take_away<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: Vec<ReleaseKey>,
    work: &mut Work<'_>,
) {
    let left = remaining(snapshot, &object.metadata.uid, installs);
    if left.is_empty() {
        let others = object
            .metadata
            .finalizers
            .iter()
            .filter(|name| *name != names::FINALIZER);
        let action = Action::RemoveFinalizer {
            object: work.object().clone(),
            finalizers: others.cloned().collect(),
        };
        work.add(action, Reason::CleanedUp);
    }
    for key in left {
        work.add(Action::Uninstall(key), Reason::ObjectDeleted);
    }
}

/// Those of `installs`, and of all that is known of the owner, that are not known to be gone.
fn remaining(snapshot: &Snapshot, owner: &str, installs: Vec<ReleaseKey>) -> Vec<ReleaseKey> {
    let mut left: Vec<ReleaseKey> = installs;
    for (key, _) in snapshot.releases_of(owner) {
        if !left.contains(key) {
            left.push(key.clone());
        }
    }
    left.retain(|key| snapshot.release(key) != Some(&ReleaseFact::Absent));
    left
}
