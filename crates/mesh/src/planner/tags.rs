//! Plans the tags an Istio manages, and reports why a requested tag cannot be created.

use std::collections::BTreeSet;

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Istio, IstioRevisionTag, Reason, TagSpec, TargetReference,
    names, takes_precedence,
};

use super::builder::PlanBuilder;
use super::istio::active_revision_name;
use crate::plan::{Action, Change, NewObject, Precondition};
use crate::snapshot::{may_be_active, requested_tags};
use crate::{Snapshot, Subject};

/// Why a tag is not as the Istio requests it.
struct Obstacle {
    reason: Reason,
    message: String,
    /// Whether the condition becomes false. Not if the tag is implicit and already exists.
    is_serious: bool,
}

/// Adds the steps and returns the `TagsReconciled` condition. No tag may have the name of the active
/// revision.
pub(super) fn manage(
    snapshot: &Snapshot,
    istio: &Istio,
    active: &str,
    builder: &mut PlanBuilder<'_>,
) -> Option<Condition> {
    let listed = requested_tags(istio);
    let (mut obstacles, mut wanted) = (Vec::new(), BTreeSet::new());
    for tag in &listed {
        if let Some(obstacle) = denied(snapshot, istio, tag, active) {
            obstacles.push(obstacle);
        } else {
            wanted.insert(tag.as_str());
            obstacles.extend(apply(snapshot, istio, tag, builder));
        }
    }
    let mut managed = !listed.is_empty();
    let owned = snapshot.tags().owned_by(&istio.metadata.uid);
    for tag in owned.filter(|tag| is_ours(tag, istio)) {
        managed = true;
        if !wanted.contains(tag.name()) {
            obstacles.extend(remove(snapshot, tag, active, builder));
        }
    }
    let was_reported = istio
        .status
        .conditions
        .find(&ConditionType::TagsReconciled)
        .is_some();
    (managed || was_reported).then(|| condition(&obstacles))
}

fn condition(obstacles: &[Obstacle]) -> Condition {
    let first = obstacles.iter().find(|obstacle| obstacle.is_serious);
    let messages: Vec<&str> = obstacles
        .iter()
        .map(|obstacle| obstacle.message.as_str())
        .collect();
    let (status, reason) = match first {
        None => (ConditionStatus::True, Reason::TagsReconciled),
        Some(first) => (ConditionStatus::False, first.reason.clone()),
    };
    Condition::new(ConditionType::TagsReconciled, status, reason, messages.join("; "))
}

/// Returns why this Istio may not have a tag, even if it has it: an older Istio requests it, or it is the
/// name of the active revision.
fn denied(snapshot: &Snapshot, istio: &Istio, name: &str, active: &str) -> Option<Obstacle> {
    if name == active {
        let message = format!("tag {name:?} cannot be created: it is the name of the active IstioRevision");
        return Some(taken(istio, message));
    }
    let older = older_claimant(snapshot, istio, name)?;
    Some(Obstacle {
        reason: Reason::TagClaimedByOther,
        message: format!(
            "tag {name:?} belongs to Istio {:?}, which is older and lists it too",
            older.name()
        ),
        is_serious: true,
    })
}

/// Creates or updates a requested tag, unless the name has another owner.
fn apply(snapshot: &Snapshot, istio: &Istio, name: &str, builder: &mut PlanBuilder<'_>) -> Option<Obstacle> {
    match snapshot.tags().get(name) {
        Some(tag) if is_ours(tag, istio) => {
            update(istio, tag, builder);
            None
        }
        Some(_) => Some(taken(
            istio,
            format!("IstioRevisionTag {name:?} exists and is not managed by this Istio"),
        )),
        None if snapshot.revisions().get(name).is_some() => Some(taken(
            istio,
            format!("tag {name:?} cannot be created while an IstioRevision of that name exists"),
        )),
        None => {
            if let Some(other) = istio_with_active_revision(snapshot, name) {
                let whose = format!("the active IstioRevision of Istio {:?}", other.name());
                return Some(taken(
                    istio,
                    format!("tag {name:?} cannot be created: it is the name of {whose}"),
                ));
            }
            create(istio, name, builder);
            None
        }
    }
}

/// Returns the Istio whose active revision has this name, even before it exists: a tag must not take it.
fn istio_with_active_revision<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Istio> {
    let mut others = snapshot
        .istios()
        .iter()
        .filter(|other| may_be_active(name, other.name()));
    others.find(|other| {
        !other.metadata.is_deleting()
            && active_revision_name(snapshot, other).is_ok_and(|active| active == name)
    })
}

fn taken(istio: &Istio, message: String) -> Obstacle {
    let strategy = istio.spec.update_strategy.as_ref();
    Obstacle {
        reason: Reason::TagNameTaken,
        message,
        is_serious: strategy.is_some_and(|strategy| strategy.revision_tags.is_some()),
    }
}

fn older_claimant<'a>(snapshot: &'a Snapshot, istio: &Istio, tag: &str) -> Option<&'a Istio> {
    snapshot
        .claimants(tag)
        .find(|other| takes_precedence(&other.metadata, &istio.metadata))
}

/// Whether this Istio is the controlling owner.
fn is_ours(tag: &IstioRevisionTag, istio: &Istio) -> bool {
    let controller = tag.metadata.controller();
    controller.is_some_and(|owner| !owner.uid.is_empty() && owner.uid == istio.metadata.uid)
}

fn create(istio: &Istio, name: &str, builder: &mut PlanBuilder<'_>) {
    let new = NewObject {
        name: name.to_owned(),
        owner: istio.owner_reference(),
        finalizers: vec![names::FINALIZER.to_owned()],
        spec: wanted_spec(istio),
    };
    let message = format!("created IstioRevisionTag {name:?}");
    builder.add_with_event(Action::CreateTag(new), &Reason::TagCreated, message);
}

fn wanted_spec(istio: &Istio) -> TagSpec {
    TagSpec {
        target_ref: TargetReference::istio(istio.name()),
    }
}

fn update(istio: &Istio, tag: &IstioRevisionTag, builder: &mut PlanBuilder<'_>) {
    let spec = wanted_spec(istio);
    if tag.spec == spec || tag.metadata.is_deleting() {
        return;
    }
    let change = Change {
        object: Precondition::for_object(Subject::tag(tag.name()), &tag.metadata),
        owner_references: tag.metadata.owner_references.clone(),
        spec,
    };
    builder.add(Action::UpdateTag(change), Reason::TagUpdated);
}

/// Deletes a tag that is no longer requested once nothing refers to it: its workloads would silently lose
/// their injector. A tag with the name of the active revision is deleted at once, because the revision
/// replaces it for the same workloads.
fn remove(
    snapshot: &Snapshot,
    tag: &IstioRevisionTag,
    active: &str,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let name = tag.name();
    if tag.metadata.is_deleting() {
        return None;
    }
    if name != active && snapshot.references().uses_tag(name) {
        return Some(Obstacle {
            reason: Reason::TagStillInUse,
            message: format!("tag {name:?} is no longer requested, but kept while workloads refer to it"),
            is_serious: true,
        });
    }
    let seen = Precondition::for_object(Subject::tag(name), &tag.metadata);
    let message = format!("deleted IstioRevisionTag {name:?}: it is no longer wanted");
    builder.add_with_event(Action::DeleteTag(seen), &Reason::TagRemoved, message);
    None
}
