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

/// Reason why a tag differs from the Istio's request.
struct Obstacle {
    reason: Reason,
    message: String,
    /// Status of the condition. True for an implicit tag if its name is in use, because the user did not
    /// request it.
    status: ConditionStatus,
}

impl Obstacle {
    fn new_false(reason: Reason, message: String) -> Self {
        let status = ConditionStatus::False;
        Self {
            reason,
            message,
            status,
        }
    }
}

/// Adds the steps for all tags of an Istio, and returns the `TagsReconciled` condition. No tag may have the
/// name of the active revision. A tag that cannot be written does not affect the others.
pub(super) fn plan_tags(
    snapshot: &Snapshot,
    istio: &Istio,
    active: &str,
    builder: &mut PlanBuilder<'_>,
) -> Option<Condition> {
    let requested = snapshot.requested_tags(istio);
    let (mut obstacles, mut desired) = (Vec::new(), BTreeSet::new());
    for tag in &requested {
        if let Some(obstacle) = name_obstacle(snapshot, istio, tag, active) {
            obstacles.push(obstacle);
        } else {
            desired.insert(tag.as_str());
            obstacles.extend(apply_tag(snapshot, istio, RequestedTag { tag, active }, builder));
        }
    }
    let mut managed = !requested.is_empty();
    let owned = snapshot.tags().owned_by(&istio.metadata.uid);
    for tag in owned.filter(|tag| is_managed_by(tag, istio)) {
        managed = true;
        if !desired.contains(tag.name()) {
            obstacles.extend(remove_tag(snapshot, tag, active, builder));
        }
    }
    if !managed && lacks_implicit_tag(istio) {
        return Some(no_tags_condition());
    }
    let was_reported = istio
        .status
        .conditions
        .find(&ConditionType::TagsReconciled)
        .is_some();
    (managed || was_reported).then(|| tags_condition(&obstacles))
}

/// Whether an Istio without requested tags would have an implicit one if the operator had created its first
/// revision.
fn lacks_implicit_tag(istio: &Istio) -> bool {
    listed_tags(istio).is_none() && istio.spec.strategy() == UpdateStrategyType::RevisionBased
}

fn no_tags_condition() -> Condition {
    let message = "no tag is created, because this Istio already had revisions; set \
                   spec.updateStrategy.revisionTags to [\"default\"] to create the tag \"default\"";
    Condition::new(
        ConditionType::TagsReconciled,
        ConditionStatus::True,
        Reason::NoTagsRequested,
        message,
    )
}

/// Returns the condition. Its status is the worst status of the obstacles: false, then unknown, then true.
fn tags_condition(obstacles: &[Obstacle]) -> Condition {
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

/// Returns an obstacle if this Istio must not have a tag, even if the tag exists: the name is invalid, an
/// older Istio requests it, or it is the name of the active revision.
fn name_obstacle(snapshot: &Snapshot, istio: &Istio, name: &str, active: &str) -> Option<Obstacle> {
    if !names::is_valid_tag(name) {
        let length = names::MAX_TAG_LENGTH;
        let message = format!(
            "tag {name:?} is invalid: use at most {length} lower-case letters, digits and '-', and start and \
             end with a letter or digit"
        );
        return Some(Obstacle::new_false(Reason::InvalidTagName, message));
    }
    if name == active {
        let message = format!("tag {name:?} cannot be created: it is the name of the active IstioRevision");
        return Some(name_in_use(istio, message));
    }
    let older = older_istio_requesting(snapshot, istio, name)?;
    let message = format!(
        "tag {name:?} belongs to Istio {:?}, which is older and lists it too",
        older.name()
    );
    Some(Obstacle::new_false(Reason::TagClaimedByOther, message))
}

/// A requested tag, and the active revision of its Istio.
#[derive(Clone, Copy)]
struct RequestedTag<'a> {
    tag: &'a str,
    active: &'a str,
}

/// Creates or updates a requested tag, unless the name has another owner.
fn apply_tag(
    snapshot: &Snapshot,
    istio: &Istio,
    requested: RequestedTag<'_>,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let name = requested.tag;
    match snapshot.tags().get(name) {
        Some(tag) if is_managed_by(tag, istio) => update_tag(snapshot, istio, tag, builder),
        Some(_) => Some(name_in_use(
            istio,
            format!("IstioRevisionTag {name:?} exists and is not managed by this Istio"),
        )),
        None if snapshot.revisions().get(name).is_some() => Some(name_in_use(
            istio,
            format!("tag {name:?} cannot be created while an IstioRevision of that name exists"),
        )),
        None => {
            if let Some(other) = istio_with_active_revision(snapshot, name) {
                let owner = format!("the active IstioRevision of Istio {:?}", other.name());
                return Some(name_in_use(
                    istio,
                    format!("tag {name:?} cannot be created: it is the name of {owner}"),
                ));
            }
            implicit_tag_obstacle(snapshot, istio, requested)
                .or_else(|| create_tag(snapshot, istio, name, builder))
        }
    }
}

/// Returns an obstacle while the implicit tag must not be created: the revision is not ready, or another
/// injector serves `istio-injection: enabled`.
fn implicit_tag_obstacle(
    snapshot: &Snapshot,
    istio: &Istio,
    requested: RequestedTag<'_>,
) -> Option<Obstacle> {
    let RequestedTag { tag, active } = requested;
    if listed_tags(istio).is_some() {
        return None;
    }
    if let Some(other) = snapshot.foreign_injectors().next() {
        let message = format!(
            "tag {tag:?} is not created: MutatingWebhookConfiguration {other:?} already injects namespaces \
             labeled istio-injection=enabled"
        );
        return Some(name_in_use(istio, message));
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

/// Returns the Istio with an active revision of this name. The revision may not exist yet, but no tag may
/// have its name.
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

fn name_in_use(istio: &Istio, message: String) -> Obstacle {
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

fn older_istio_requesting<'a>(snapshot: &'a Snapshot, istio: &Istio, tag: &str) -> Option<&'a Istio> {
    snapshot
        .istios_requesting(tag)
        .find(|other| takes_precedence(&other.metadata, &istio.metadata))
}

/// Whether this Istio is the controlling owner of a tag.
pub(super) fn is_managed_by(tag: &IstioRevisionTag, istio: &Istio) -> bool {
    let controller = tag.metadata.controller();
    controller.is_some_and(|owner| !owner.uid.is_empty() && owner.uid == istio.metadata.uid)
}

fn create_tag(
    snapshot: &Snapshot,
    istio: &Istio,
    name: &str,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let new = NewObject {
        name: name.to_owned(),
        owner: istio.owner_reference(),
        finalizers: vec![names::FINALIZER.to_owned()],
        annotations: BTreeMap::new(),
        spec: desired_spec(istio),
    };
    let action = Action::CreateTag(new);
    let failed = back_off_obstacle(snapshot, &action, builder);
    if failed.is_none() {
        let message = format!("created IstioRevisionTag {name:?}");
        builder.add_with_event(action, &Reason::TagCreated, message);
    }
    failed
}

/// Returns an obstacle if an action has failed and must not be retried yet. Unlike other failures, the
/// failure affects only its tag.
fn back_off_obstacle(
    snapshot: &Snapshot,
    action: &Action,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let failure = snapshot.failure(&builder.object().subject, action)?;
    let message = format!("{}{}", action.failure_prefix(), failure.message);
    builder.requeue(Requeue::At(failure.retry_at));
    Some(Obstacle::new_false(Reason::TagFailed, message))
}

fn desired_spec(istio: &Istio) -> TagSpec {
    TagSpec {
        target_ref: TargetReference::istio(istio.name()),
    }
}

fn update_tag(
    snapshot: &Snapshot,
    istio: &Istio,
    tag: &IstioRevisionTag,
    builder: &mut PlanBuilder<'_>,
) -> Option<Obstacle> {
    let spec = desired_spec(istio);
    if tag.spec == spec || tag.metadata.is_deleting() {
        return None;
    }
    let change = Change {
        object: Precondition::for_object(Subject::tag(tag.name()), &tag.metadata),
        owner_references: tag.metadata.owner_references.clone(),
        spec,
    };
    let action = Action::UpdateTag(change);
    let failed = back_off_obstacle(snapshot, &action, builder);
    if failed.is_none() {
        builder.add(action, Reason::TagUpdated);
    }
    failed
}

/// Deletes a tag that is no longer requested. A tag in use is kept, because its workloads would lose their
/// injector without notice, unless it has the name of the active revision, which replaces it for the same
/// workloads.
fn remove_tag(
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
        return Some(Obstacle::new_false(Reason::TagStillInUse, message));
    }
    let action = Action::DeleteTag(Precondition::for_object(Subject::tag(name), &tag.metadata));
    let failed = back_off_obstacle(snapshot, &action, builder);
    if failed.is_none() {
        let message = format!("deleted IstioRevisionTag {name:?}: it is no longer requested");
        builder.add_with_event(action, &Reason::TagRemoved, message);
    }
    failed
}
