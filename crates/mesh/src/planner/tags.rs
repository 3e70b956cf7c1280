//! Plans the tags an Istio manages, and reports why a requested tag cannot be created.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Istio, IstioRevisionTag, Reason, TagSpec, TargetReference,
    UpdateStrategyType, names, takes_precedence,
};

use super::builder::PlanBuilder;
use super::is_serving;
use super::istio::active_revision_name;
use crate::plan::{Action, Change, NewObject, Precondition, Requeue};
use crate::snapshot::{listed_tags, may_be_active};
use crate::{Snapshot, Subject};

/// Why a tag is not as the Istio requests it.
struct Obstacle {
    reason: Reason,
    message: String,
    /// Status of the condition: true for an implicit tag whose name is in use.
    status: ConditionStatus,
}

impl Obstacle {
    fn serious(reason: Reason, message: String) -> Self {
        let status = ConditionStatus::False;
        Self {
            reason,
            message,
            status,
        }
    }
}

/// Adds the steps and returns the `TagsReconciled` condition. No tag may have the name of the active
/// revision. A tag that cannot be written does not affect the others.
pub(super) fn manage(
    snapshot: &Snapshot,
    istio: &Istio,
    active: &str,
    builder: &mut PlanBuilder<'_>,
) -> Option<Condition> {
    let requested = snapshot.requested_tags(istio);
    let (mut obstacles, mut wanted) = (Vec::new(), BTreeSet::new());
    for tag in &requested {
        if let Some(obstacle) = denied(snapshot, istio, tag, active) {
            obstacles.push(obstacle);
        } else {
            wanted.insert(tag.as_str());
            obstacles.extend(apply(snapshot, istio, Requested { tag, active }, builder));
        }
    }
    let mut managed = !requested.is_empty();
    let owned = snapshot.tags().owned_by(&istio.metadata.uid);
    for tag in owned.filter(|tag| is_managed_by(tag, istio)) {
        managed = true;
        if !wanted.contains(tag.name()) {
            obstacles.extend(remove(snapshot, tag, active, builder));
        }
    }
    if !managed && lacks_implicit_tag(istio) {
        return Some(explain_missing_tag());
    }
    let was_reported = istio
        .status
        .conditions
        .find(&ConditionType::TagsReconciled)
        .is_some();
    (managed || was_reported).then(|| condition(&obstacles))
}

/// Whether an Istio without requested tags would have an implicit one if the operator had created its first
/// revision.
fn lacks_implicit_tag(istio: &Istio) -> bool {
    listed_tags(istio).is_none() && istio.spec.strategy() == UpdateStrategyType::RevisionBased
}

fn explain_missing_tag() -> Condition {
    let message = "no tag is created, because this Istio already had revisions; set \
                   spec.updateStrategy.revisionTags to [\"default\"] to create the tag \"default\"";
    Condition::new(
        ConditionType::TagsReconciled,
        ConditionStatus::True,
        Reason::NoTagsRequested,
        message,
    )
}

/// Returns the condition: false if a tag has a serious obstacle, unknown if one is waited for.
fn condition(obstacles: &[Obstacle]) -> Condition {
    let first = |status| obstacles.iter().find(|obstacle| obstacle.status == status);
    let worst = first(ConditionStatus::False).or_else(|| first(ConditionStatus::Unknown));
    let messages: Vec<&str> = obstacles
        .iter()
        .map(|obstacle| obstacle.message.as_str())
        .collect();
    let (status, reason) = match worst {
        None => (ConditionStatus::True, Reason::TagsReconciled),
        Some(worst) => (worst.status, worst.reason.clone()),
    };
    Condition::new(ConditionType::TagsReconciled, status, reason, messages.join("; "))
}

/// Returns why this Istio may not have a tag, even if it has it: the name is invalid, an older Istio requests
/// it, or it is the name of the active revision.
fn denied(snapshot: &Snapshot, istio: &Istio, name: &str, active: &str) -> Option<Obstacle> {
    if !names::is_valid_tag(name) {
        let length = names::MAX_TAG_LENGTH;
        let message = format!(
            "tag {name:?} is invalid: use at most {length} lower-case letters, digits and '-', and start and \
             end with a letter or digit"
        );
        return Some(Obstacle::serious(Reason::InvalidTagName, message));
    }
    if name == active {
        let message = format!("tag {name:?} cannot be created: it is the name of the active IstioRevision");
        return Some(taken(istio, message));
    }
    let older = older_claimant(snapshot, istio, name)?;
    let message = format!(
        "tag {name:?} belongs to Istio {:?}, which is older and lists it too",
        older.name()
    );
    Some(Obstacle::serious(Reason::TagClaimedByOther, message))
}

/// A requested tag, and the active revision of its Istio.
#[derive(Clone, Copy)]
struct Requested<'a> {
    tag: &'a str,
    active: &'a str,
}

/// Creates or updates a requested tag, unless the name has another owner.
fn apply(
    snapshot: &Snapshot,
    istio: &Istio,
    requested: Requested<'_>,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let name = requested.tag;
    match snapshot.tags().get(name) {
        Some(tag) if is_managed_by(tag, istio) => update(snapshot, istio, tag, builder),
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
            postponed(snapshot, istio, requested).or_else(|| create(snapshot, istio, name, builder))
        }
    }
}

/// Returns why the implicit tag is not created yet: the revision is not ready, or another injector serves
/// `istio-injection: enabled`.
fn postponed(snapshot: &Snapshot, istio: &Istio, requested: Requested<'_>) -> Option<Obstacle> {
    let Requested { tag, active } = requested;
    if listed_tags(istio).is_some() {
        return None;
    }
    if let Some(other) = snapshot.foreign_injectors().next() {
        let message = format!(
            "tag {tag:?} is not created: MutatingWebhookConfiguration {other:?} already injects namespaces \
             labelled istio-injection=enabled"
        );
        return Some(taken(istio, message));
    }
    let revision = snapshot.revisions().get(active);
    if revision.is_some_and(is_serving) {
        return None;
    }
    Some(Obstacle {
        reason: Reason::WaitingForRevision,
        message: format!("tag {tag:?} is created once IstioRevision {active:?} is ready"),
        status: ConditionStatus::Unknown,
    })
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
    let status = if listed_tags(istio).is_some() {
        ConditionStatus::False
    } else {
        ConditionStatus::True
    };
    Obstacle {
        reason: Reason::TagNameTaken,
        message,
        status,
    }
}

fn older_claimant<'a>(snapshot: &'a Snapshot, istio: &Istio, tag: &str) -> Option<&'a Istio> {
    snapshot
        .claimants(tag)
        .find(|other| takes_precedence(&other.metadata, &istio.metadata))
}

/// Whether this Istio is the controlling owner.
pub(super) fn is_managed_by(tag: &IstioRevisionTag, istio: &Istio) -> bool {
    let controller = tag.metadata.controller();
    controller.is_some_and(|owner| !owner.uid.is_empty() && owner.uid == istio.metadata.uid)
}

fn create(snapshot: &Snapshot, istio: &Istio, name: &str, builder: &mut PlanBuilder<'_>) -> Option<Obstacle> {
    let new = NewObject {
        name: name.to_owned(),
        owner: istio.owner_reference(),
        finalizers: vec![names::FINALIZER.to_owned()],
        annotations: BTreeMap::new(),
        spec: wanted_spec(istio),
    };
    let action = Action::CreateTag(new);
    let failed = backing_off(snapshot, &action, builder);
    if failed.is_none() {
        let message = format!("created IstioRevisionTag {name:?}");
        builder.add_with_event(action, &Reason::TagCreated, message);
    }
    failed
}

/// Returns the failure of an action that may not be retried yet. Unlike other failures, it affects only its
/// tag.
fn backing_off(snapshot: &Snapshot, action: &Action, builder: &mut PlanBuilder<'_>) -> Option<Obstacle> {
    let failure = snapshot.failure(&builder.object().subject, action)?;
    let message = format!("{}{}", action.failure_prefix(), failure.message);
    builder.requeue(Requeue::At(failure.retry_at));
    Some(Obstacle::serious(Reason::TagFailed, message))
}

fn wanted_spec(istio: &Istio) -> TagSpec {
    TagSpec {
        target_ref: TargetReference::istio(istio.name()),
    }
}

fn update(
    snapshot: &Snapshot,
    istio: &Istio,
    tag: &IstioRevisionTag,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let spec = wanted_spec(istio);
    if tag.spec == spec || tag.metadata.is_deleting() {
        return None;
    }
    let change = Change {
        object: Precondition::for_object(Subject::tag(tag.name()), &tag.metadata),
        owner_references: tag.metadata.owner_references.clone(),
        spec,
    };
    let action = Action::UpdateTag(change);
    let failed = backing_off(snapshot, &action, builder);
    if failed.is_none() {
        builder.add(action, Reason::TagUpdated);
    }
    failed
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
        let message = format!("tag {name:?} is no longer requested, but kept while workloads refer to it");
        return Some(Obstacle::serious(Reason::TagStillInUse, message));
    }
    let action = Action::DeleteTag(Precondition::for_object(Subject::tag(name), &tag.metadata));
    let failed = backing_off(snapshot, &action, builder);
    if failed.is_none() {
        let message = format!("deleted IstioRevisionTag {name:?}: it is no longer wanted");
        builder.add_with_event(action, &Reason::TagRemoved, message);
    }
    failed
}
