//! Plans the finalizer of an object that installs releases.

use mainstay_api::{Kind, Reason, Resource, names};

use super::builder::PlanBuilder;
use crate::Snapshot;
use crate::plan::{Action, Plan, ReleaseKey};
use crate::snapshot::ReleaseFact;

/// Adds the finalizer if it is missing, uninstalls the releases of a deleted object and then removes the
/// finalizer, and otherwise calls `reconcile`.
///
/// The finalizer is removed only once every release is known to be absent, never in the plan that
/// uninstalls one.
pub(super) fn with_finalizer<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: impl FnOnce() -> Vec<ReleaseKey>,
    reconcile: impl FnOnce() -> Plan,
) -> Plan {
    let metadata = &object.metadata;
    let mut builder = PlanBuilder::for_object(snapshot, object);
    match (metadata.is_deleting(), metadata.has_finalizer()) {
        (true, false) => {}
        (true, true) => add_uninstall_steps(snapshot, object, installs(), &mut builder),
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

fn add_uninstall_steps<S: Kind>(
    snapshot: &Snapshot,
    object: &Resource<S>,
    installs: Vec<ReleaseKey>,
    builder: &mut PlanBuilder<'_>,
) {
    let left = remaining_releases(snapshot, &object.metadata.uid, installs);
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

/// Returns the releases in `installs` and the recorded releases of the owner, except those that are known
/// to be absent.
fn remaining_releases(snapshot: &Snapshot, owner: &str, installs: Vec<ReleaseKey>) -> Vec<ReleaseKey> {
    let mut left: Vec<ReleaseKey> = installs;
    for (key, _) in snapshot.releases_of(owner) {
        if !left.contains(key) {
            left.push(key.clone());
        }
    }
    left.retain(|key| snapshot.release(key) != Some(&ReleaseFact::Absent));
    left
}
