//! Which revisions go: takes those an Istio owns, gives each one's prospect. Only what is known to be unused ever goes.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{ConditionStatus, ConditionType, Istio, IstioRevision, Reason, values};

use super::builder::PlanBuilder;
use super::in_use::revision_used;
use crate::plan::{Action, Precondition, Requeue};
use crate::{Snapshot, Subject};

/// What becomes of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneDecision {
    /// It is the active one.
    Active,
    /// Something refers to it.
    InUse,
    /// Nobody can tell whether something does, so it stays.
    Unknown,
    /// It is unused, and goes at this moment.
    Until(Timestamp),
    /// It is being deleted.
    Going,
    /// Nothing is ever deleted that another cluster may use.
    External,
}

/// What becomes of every revision of an Istio.
pub fn prune_decisions<'a>(
    snapshot: &'a Snapshot,
    istio: &'a Istio,
    active: &'a str,
    grace: SignedDuration,
) -> impl Iterator<Item = (&'a IstioRevision, PruneDecision)> {
    let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
    owned.map(move |revision| (revision, prospect(snapshot, istio, revision, (active, grace))))
}

fn prospect(
    snapshot: &Snapshot,
    istio: &Istio,
    revision: &IstioRevision,
    (active, grace): (&str, SignedDuration),
) -> PruneDecision {
    if revision.name() == active {
        return PruneDecision::Active;
    }
    if revision.metadata.is_deleting() {
        return PruneDecision::Going;
    }
    if is_external(istio) {
        return PruneDecision::External;
    }
    let condition = revision.status.conditions.get(&ConditionType::InUse);
    match (condition.status, condition.last_transition_time) {
        (ConditionStatus::True, _) => PruneDecision::InUse,
        // The status may be older than the index: both must agree that nothing refers to it.
        (ConditionStatus::False, Some(since)) => match revision_used(snapshot, revision) {
            Ok(false) => PruneDecision::Until(since.after(grace)),
            Ok(true) => PruneDecision::InUse,
            Err(_) => PruneDecision::Unknown,
        },
        _ => PruneDecision::Unknown,
    }
}

/// Deletes what is due, and looks again when the next one is.
pub(super) fn prune(snapshot: &Snapshot, istio: &Istio, active: &str, builder: &mut PlanBuilder<'_>) {
    let grace = super::grace_period(istio);
    for (revision, prospect) in prune_decisions(snapshot, istio, active, grace) {
        match prospect {
            PruneDecision::Until(due) if due <= snapshot.now => delete(revision, builder),
            PruneDecision::Until(due) => builder.requeue(Requeue::At(due)),
            _ => {}
        }
    }
}

fn delete(revision: &IstioRevision, builder: &mut PlanBuilder<'_>) {
    let name = revision.name();
    let seen = Precondition::for_object(Subject::revision(name), &revision.metadata);
    let message =
        format!("deleted IstioRevision {name:?}: nothing has referred to it for the whole grace period");
    builder.add_with_event(Action::DeleteRevision(seen), &Reason::RevisionPruned, message);
}

/// An external control plane serves clusters that cannot be seen from here.
fn is_external(istio: &Istio) -> bool {
    let values = istio.spec.values.as_ref();
    values.and_then(|map| values::text(map, &["pilot", "env", "EXTERNAL_ISTIOD"])) == Some("true")
}
