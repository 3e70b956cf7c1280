//! Plans `IstioRevisionTag`: releases, finalizer and status.
//!
//! A tag that refers to an Istio moves to the active revision only once that revision is ready, and reports
//! while it waits. A tag that an Istio manages also respects the maximum version of its workload migration.

use mainstay_api::{
    ConditionType, IstioRevision, IstioRevisionTag, ObjectKind, Reason, TagStatus, TargetKind, derive_state,
    names, takes_precedence,
};
use serde_json::Value;

use super::builder::{PlanBuilder, StatusUpdate};
use super::condition::reconciled_condition;
use super::finalize::with_finalizer;
use super::in_use;
use super::readiness::is_serving;
use super::release::{Chart, add_release_steps, check_charts, new_release, new_release_key};
use super::tags::is_managed_by;
use super::target::{check_kind_readable, resolve};
use crate::migration::exceeded_maximum;
use crate::plan::{Action, NewStatus, Plan, Release, ReleaseKey};
use crate::{Invalid, ReconcileError, Snapshot};

/// The revision a tag refers to, and the reason if it does not move to the active one.
struct TagTarget<'a> {
    revision: &'a IstioRevision,
    hold_reason: Option<String>,
}

/// Returns the plan of a tag.
pub(super) fn plan(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Plan {
    with_finalizer(
        snapshot,
        tag,
        || installed_releases(snapshot, tag),
        || reconcile(snapshot, tag),
    )
}

/// Returns the releases the tag has installed according to its status.
fn installed_releases(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Vec<ReleaseKey> {
    let namespace = &tag.status.istiod_namespace;
    let webhooks = (!namespace.is_empty()).then(|| webhooks_key(tag, namespace));
    webhooks.into_iter().chain(base_key(snapshot, tag)).collect()
}

fn webhooks_key(tag: &IstioRevisionTag, namespace: &str) -> ReleaseKey {
    new_release_key(tag, namespace, names::release(tag.name(), names::TAGS_CHART))
}

/// Returns the release of the default validator, which only the default tag installs.
fn base_key(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Option<ReleaseKey> {
    let name = || names::release(tag.name(), names::BASE_CHART);
    let is_default = tag.name() == names::DEFAULT_REVISION;
    is_default.then(|| new_release_key(tag, &snapshot.settings.operator_namespace, name()))
}

fn reconcile(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, tag);
    let target = builder.check(resolve_target(snapshot, tag));
    if let Some(target) = &target {
        let former = former_webhooks(tag, target.revision);
        add_release_steps(
            snapshot,
            &mut builder,
            desired_releases(snapshot, tag, target.revision),
            &former,
        );
    }
    builder.drop_failed_steps();
    let status = status(snapshot, tag, target.as_ref(), builder.error());
    let moved = move_message(&tag.status, &status);
    let events = [ConditionType::Reconciled, ConditionType::InUse];
    let mut plan = builder.plan_with_status(StatusUpdate {
        old: &tag.status,
        new: status,
        events: &events,
        wrap: NewStatus::Tag,
    });
    add_move_event(&mut plan, moved);
    plan
}

/// Returns the release in the previous namespace, if the tag has moved to another namespace.
fn former_webhooks(tag: &IstioRevisionTag, revision: &IstioRevision) -> Vec<ReleaseKey> {
    let namespace = &tag.status.istiod_namespace;
    let has_moved = !namespace.is_empty() && *namespace != revision.spec.namespace;
    has_moved
        .then(|| webhooks_key(tag, namespace))
        .into_iter()
        .collect()
}

fn resolve_target<'a>(
    snapshot: &'a Snapshot,
    tag: &IstioRevisionTag,
) -> Result<TagTarget<'a>, ReconcileError> {
    check_target(snapshot, tag)?;
    let desired = resolve(snapshot, &tag.spec.target_ref)?;
    if desired.spec.is_remote() {
        return Err(Invalid::RemoteTarget.into());
    }
    let target = held_target(snapshot, tag, desired).unwrap_or(TagTarget {
        revision: desired,
        hold_reason: None,
    });
    check_charts(
        &snapshot.library,
        names::TAGS_CHART,
        &target.revision.spec.version,
    )?;
    Ok(target)
}

/// Returns the current revision of a tag that refers to an Istio, if the tag must not move yet: the current
/// revision is not being deleted, and the new one is not ready or above the maximum version.
fn held_target<'a>(
    snapshot: &'a Snapshot,
    tag: &IstioRevisionTag,
    desired: &IstioRevision,
) -> Option<TagTarget<'a>> {
    let floats = tag.spec.target_ref.target() == TargetKind::Istio;
    let current = snapshot.revisions().get(&tag.status.istio_revision)?;
    let stays =
        current.name() != desired.name() && !current.metadata.is_deleting() && !current.spec.is_remote();
    if !floats || !stays {
        return None;
    }
    let name = current.name();
    let hold_reason = if is_serving(desired) {
        let reason = maximum_exceeded(snapshot, tag)?;
        format!("stays on IstioRevision {name:?}: {reason}")
    } else {
        format!(
            "stays on IstioRevision {name:?} until {:?} is ready",
            desired.name()
        )
    };
    Some(TagTarget {
        revision: current,
        hold_reason: Some(hold_reason),
    })
}

/// Returns the reason why the workloads of a tag's Istio must not move to its version, if there is one and
/// the Istio manages the tag. Pods would move with the tag at their next restart.
fn maximum_exceeded(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Option<String> {
    let istio = snapshot.istios().get(&tag.spec.target_ref.name)?;
    is_managed_by(tag, istio)
        .then(|| exceeded_maximum(snapshot, istio))
        .flatten()
}

fn check_target(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Result<(), ReconcileError> {
    let target = &tag.spec.target_ref;
    if target.is_unset() {
        return Err(Invalid::NotSet("spec.targetRef").into());
    }
    check_kind_readable(snapshot, ObjectKind::IstioRevision, "")?;
    match snapshot.revisions().get(tag.name()) {
        Some(revision) if takes_precedence(&revision.metadata, &tag.metadata) => {
            return Err(ReconcileError::RevisionExists);
        }
        _ => {}
    }
    let (kind, exists) = match target.target() {
        TargetKind::Istio => (ObjectKind::Istio, snapshot.istios().get(&target.name).is_some()),
        TargetKind::Revision => (
            ObjectKind::IstioRevision,
            snapshot.revisions().get(&target.name).is_some(),
        ),
        TargetKind::Unknown => return Ok(()),
    };
    if exists {
        Ok(())
    } else {
        Err(ReconcileError::RefNotFound(kind))
    }
}

/// Returns the releases of a tag. Their values are those of the revision, with the name of the tag. The
/// default tag also makes the revision the default revision.
fn desired_releases(snapshot: &Snapshot, tag: &IstioRevisionTag, revision: &IstioRevision) -> Vec<Release> {
    let spec = &revision.spec;
    let chart = |name| Chart {
        name,
        version: &spec.version,
    };
    let mut values = spec.values.clone().unwrap_or_default();
    values.insert("revisionTags".into(), Value::Array(vec![tag.name().into()]));
    let base = base_key(snapshot, tag).map(|key| {
        let mut values = values.clone();
        values.insert("defaultRevision".into(), revision.name().into());
        new_release(tag, key, chart(names::BASE_CHART), values)
    });
    let key = webhooks_key(tag, &spec.namespace);
    let webhooks = new_release(tag, key, chart(names::TAGS_CHART), values);
    [webhooks].into_iter().chain(base).collect()
}

fn status(
    snapshot: &Snapshot,
    tag: &IstioRevisionTag,
    target: Option<&TagTarget<'_>>,
    error: Option<&ReconcileError>,
) -> TagStatus {
    let mut status = tag.status.clone();
    let mut reconciled = reconciled_condition(error);
    if let (None, Some(target)) = (error, target) {
        target.revision.name().clone_into(&mut status.istio_revision);
        status
            .istiod_namespace
            .clone_from(&target.revision.spec.namespace);
        if let Some(hold_reason) = &target.hold_reason {
            reconciled.message.clone_from(hold_reason);
        }
    }
    let conditions = [reconciled, in_use::tag_condition(snapshot, tag)];
    status.observed_generation = tag.metadata.generation;
    status.state = derive_state(&conditions);
    for condition in conditions {
        status.conditions.set(condition, snapshot.now);
    }
    status
}

fn move_message(old: &TagStatus, new: &TagStatus) -> Option<String> {
    let (from, to) = (&old.istio_revision, &new.istio_revision);
    (!from.is_empty() && from != to).then(|| format!("moved from IstioRevision {from:?} to {to:?}"))
}

/// Inserts the event about a move after the status that records the move, so that the event is sent once.
fn add_move_event(plan: &mut Plan, moved: Option<String>) {
    let written = plan
        .steps
        .iter()
        .rposition(|step| matches!(step.action, Action::WriteStatus { .. }));
    let (Some(at), Some(message)) = (written, moved) else {
        return;
    };
    let about = plan
        .steps
        .get(at)
        .and_then(|step| step.action.precondition())
        .cloned();
    if let Some(about) = about {
        let event = crate::plan::Event {
            about,
            warning: false,
            reason: Reason::TagMoved,
            message,
        };
        let step = crate::plan::Step {
            action: Action::Event(event),
            reason: Reason::TagMoved,
        };
        plan.steps.insert(at + 1, step);
    }
}
