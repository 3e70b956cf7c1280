//! Prunes inactive revisions that were not in use during the grace period.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{ConditionStatus, ConditionType, Istio, IstioRevision, Reason, values};

use super::builder::PlanBuilder;
use super::in_use::is_revision_in_use;
use crate::plan::{Action, Precondition, Requeue};
use crate::{Snapshot, Subject};

/// Decision whether to prune a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneDecision {
    /// Kept, because the revision is active.
    Active,
    /// Kept, because the revision is in use.
    InUse,
    /// Kept, because it is not known whether the revision is in use.
    Unknown,
    /// Deleted at this time unless the revision is in use again.
    DeleteAt(Timestamp),
    /// Already being deleted.
    Deleting,
    /// Kept, because other clusters may use the revision.
    External,
}

/// Returns the decision about each revision of an Istio.
pub fn prune_decisions<'a>(
    snapshot: &'a Snapshot,
    istio: &'a Istio,
    active: &'a str,
    grace: SignedDuration,
) -> impl Iterator<Item = (&'a IstioRevision, PruneDecision)> {
    let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
    owned.map(move |revision| {
        let decision = if revision.name() == active {
            PruneDecision::Active
        } else {
            inactive_decision(snapshot, istio, revision, grace)
        };
        (revision, decision)
    })
}

fn inactive_decision(
    snapshot: &Snapshot,
    istio: &Istio,
    revision: &IstioRevision,
    grace: SignedDuration,
) -> PruneDecision {
    if revision.metadata.is_deleting() {
        return PruneDecision::Deleting;
    }
    if is_external(istio) {
        return PruneDecision::External;
    }
    let condition = revision.status.conditions.get(&ConditionType::InUse);
    match (condition.status, condition.last_transition_time) {
        (ConditionStatus::True, _) => PruneDecision::InUse,
        // The status may be older than the index, so the revision must be unused according to both.
        (ConditionStatus::False, Some(since)) => match is_revision_in_use(snapshot, revision) {
            Ok(false) => PruneDecision::DeleteAt(since.after(grace)),
            Ok(true) => PruneDecision::InUse,
            Err(_) => PruneDecision::Unknown,
        },
        _ => PruneDecision::Unknown,
    }
}

/// Deletes the revisions that are due, and requeues the Istio at the time of the next deletion.
pub(super) fn prune(snapshot: &Snapshot, istio: &Istio, active: &str, builder: &mut PlanBuilder<'_>) {
    let grace = super::grace_period(istio);
    for (revision, decision) in prune_decisions(snapshot, istio, active, grace) {
        match decision {
            PruneDecision::DeleteAt(due) if due <= snapshot.now => delete(revision, builder),
            PruneDecision::DeleteAt(due) => builder.requeue(Requeue::At(due)),
            _ => {}
        }
    }
}

fn delete(revision: &IstioRevision, builder: &mut PlanBuilder<'_>) {
    let name = revision.name();
    let object = Precondition::for_object(Subject::revision(name), &revision.metadata);
    let message = format!("deleted IstioRevision {name:?}: unused for the whole grace period");
    builder.add_with_event(Action::DeleteRevision(object), &Reason::RevisionPruned, message);
}

/// Whether the control plane is external. It serves clusters that are not observed here.
fn is_external(istio: &Istio) -> bool {
    let values = istio.spec.values.as_ref();
    values.and_then(|map| values::text(map, &["pilot", "env", "EXTERNAL_ISTIOD"])) == Some("true")
}
