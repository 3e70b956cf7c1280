//! From first sight to the end of an object: takes an object that installs something, gives the finalizer's steps or the builder.

use mainstay_api::{Kind, Reason, Resource, names};

use super::builder::PlanBuilder;
use crate::Snapshot;
use crate::plan::{Action, Plan, ReleaseKey};
use crate::snapshot::ReleaseFact;

/// Puts the finalizer on, or takes away what was installed and then the finalizer; otherwise lets `reconcile` builder.
///
/// The finalizer goes only once every release is known to be gone: not in the plan that removes it.
pub(super) fn guarded<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: impl FnOnce() -> Vec<ReleaseKey>,
    reconcile: impl FnOnce() -> Plan,
) -> Plan {
    let metadata = &object.metadata;
    let mut builder = PlanBuilder::for_object(snapshot, object);
    match (metadata.is_deleting(), metadata.has_finalizer()) {
        (true, false) => {}
        (true, true) => take_away(snapshot, object, installs(), &mut builder),
        (false, false) => {
            let finalizers = metadata
                .finalizers
                .iter()
                .cloned()
                .chain([names::FINALIZER.to_owned()]);
            let action = Action::AddFinalizer {
                object: builder.object().clone(),
                finalizers: finalizers.collect(),
            };
            builder.add(action, Reason::FinalizerMissing);
        }
        (false, true) => return reconcile(),
    }
    builder.plan()
}

fn take_away<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: Vec<ReleaseKey>,
    builder: &mut PlanBuilder<'_>,
) {
    let left = remaining(snapshot, &object.metadata.uid, installs);
    if left.is_empty() {
        let others = object
            .metadata
            .finalizers
            .iter()
            .filter(|name| *name != names::FINALIZER);
        let action = Action::RemoveFinalizer {
            object: builder.object().clone(),
            finalizers: others.cloned().collect(),
        };
        builder.add(action, Reason::CleanedUp);
    }
    for key in left {
        builder.add(Action::Uninstall(key), Reason::ObjectDeleted);
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
