//! Plans `IstioRevisionTag`: releases, finalizer and status.
//!
//! A tag that refers to an Istio moves to its active revision only once that is ready, and reports what it
//! waits for. A tag that an Istio manages also respects the maximum version of its workload migration.

use mainstay_api::{
    ConditionType, IstioRevision, IstioRevisionTag, ObjectKind, Reason, TagStatus, TargetKind, derive_state,
    names, takes_precedence,
};
use serde_json::Value;

use super::builder::{PlanBuilder, StatusUpdate};
use super::condition::reconciled;
use super::finalize::with_finalizer;
use super::in_use;
use super::readiness::is_serving;
use super::release::{Chart, check_charts, key, release, settle};
use super::tags::is_managed_by;
use super::target::{read, resolve};
use crate::migration::exceeded_maximum;
use crate::plan::{Action, NewStatus, Plan, Release, ReleaseKey};
use crate::{Invalid, ReconcileError, Snapshot};

/// The revision a tag refers to, and why it does not move to the active one.
struct TagTarget<'a> {
    revision: &'a IstioRevision,
    held: Option<String>,
}

/// Returns the plan of a tag.
pub(super) fn plan(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Plan {
    with_finalizer(
        snapshot,
        tag,
        || installed(snapshot, tag),
        || reconcile(snapshot, tag),
    )
}

/// Returns the releases the tag has installed according to its status.
fn installed(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Vec<ReleaseKey> {
    let home = &tag.status.istiod_namespace;
    let webhooks = (!home.is_empty()).then(|| webhooks_key(tag, home));
    webhooks.into_iter().chain(base_key(snapshot, tag)).collect()
}

fn webhooks_key(tag: &IstioRevisionTag, namespace: &str) -> ReleaseKey {
    key(tag, namespace, names::release(tag.name(), names::TAGS_CHART))
}

/// Only the default tag installs the default validator.
fn base_key(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Option<ReleaseKey> {
    let name = || names::release(tag.name(), names::BASE_CHART);
    let is_default = tag.name() == names::DEFAULT_REVISION;
    is_default.then(|| key(tag, &snapshot.settings.operator_namespace, name()))
}

fn reconcile(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, tag);
    let target = builder.check(resolve_target(snapshot, tag));
    if let Some(target) = &target {
        let former = former_webhooks(tag, target.revision);
        settle(
            snapshot,
            &mut builder,
            releases(snapshot, tag, target.revision),
            &former,
        );
    }
    builder.hold_back();
    let status = status(snapshot, tag, target.as_ref(), builder.error());
    let moved = moved(&tag.status, &status);
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

/// Returns the release in the previous namespace, if the tag has moved to another one.
fn former_webhooks(tag: &IstioRevisionTag, revision: &IstioRevision) -> Vec<ReleaseKey> {
    let home = &tag.status.istiod_namespace;
    let left = !home.is_empty() && *home != revision.spec.namespace;
    left.then(|| webhooks_key(tag, home)).into_iter().collect()
}

fn resolve_target<'a>(
    snapshot: &'a Snapshot,
    tag: &IstioRevisionTag,
) -> Result<TagTarget<'a>, ReconcileError> {
    check(snapshot, tag)?;
    let wanted = resolve(snapshot, &tag.spec.target_ref)?;
    if wanted.spec.is_remote() {
        return Err(Invalid::RemoteTarget.into());
    }
    let target = held_target(snapshot, tag, wanted).unwrap_or(TagTarget {
        revision: wanted,
        held: None,
    });
    check_charts(
        &snapshot.library,
        names::TAGS_CHART,
        &target.revision.spec.version,
    )?;
    Ok(target)
}

/// Returns the revision a floating tag stays on: its current one, while that is not being deleted and the new
/// one is not ready or above the maximum version.
fn held_target<'a>(
    snapshot: &'a Snapshot,
    tag: &IstioRevisionTag,
    wanted: &IstioRevision,
) -> Option<TagTarget<'a>> {
    let floats = tag.spec.target_ref.target() == TargetKind::Istio;
    let current = snapshot.revisions().get(&tag.status.istio_revision)?;
    let stays =
        current.name() != wanted.name() && !current.metadata.is_deleting() && !current.spec.is_remote();
    if !floats || !stays {
        return None;
    }
    let name = current.name();
    let held = if is_serving(wanted) {
        let reason = maximum_exceeded(snapshot, tag)?;
        format!("stays on IstioRevision {name:?}: {reason}")
    } else {
        format!(
            "stays on IstioRevision {name:?} until {:?} is ready",
            wanted.name()
        )
    };
    Some(TagTarget {
        revision: current,
        held: Some(held),
    })
}

/// Returns why the workloads of a tag's Istio must not move to its version, if the Istio manages the tag. Its
/// pods would move with the tag at their next restart.
fn maximum_exceeded(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Option<String> {
    let istio = snapshot.istios().get(&tag.spec.target_ref.name)?;
    is_managed_by(tag, istio)
        .then(|| exceeded_maximum(snapshot, istio))
        .flatten()
}

fn check(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Result<(), ReconcileError> {
    let target = &tag.spec.target_ref;
    if target.is_unset() {
        return Err(Invalid::NotSet("spec.targetRef").into());
    }
    read(snapshot, ObjectKind::IstioRevision, "")?;
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

/// Returns the releases: the values of the revision with the name of the tag. The default tag also makes the
/// revision the default.
fn releases(snapshot: &Snapshot, tag: &IstioRevisionTag, revision: &IstioRevision) -> Vec<Release> {
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
        release(tag, key, chart(names::BASE_CHART), values)
    });
    let key = webhooks_key(tag, &spec.namespace);
    let webhooks = release(tag, key, chart(names::TAGS_CHART), values);
    [webhooks].into_iter().chain(base).collect()
}

fn status(
    snapshot: &Snapshot,
    tag: &IstioRevisionTag,
    target: Option<&TagTarget<'_>>,
    error: Option<&ReconcileError>,
) -> TagStatus {
    let mut status = tag.status.clone();
    let mut reconciled = reconciled(error);
    if let (None, Some(target)) = (error, target) {
        target.revision.name().clone_into(&mut status.istio_revision);
        status
            .istiod_namespace
            .clone_from(&target.revision.spec.namespace);
        if let Some(held) = &target.held {
            reconciled.message.clone_from(held);
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

fn moved(old: &TagStatus, new: &TagStatus) -> Option<String> {
    let (from, to) = (&old.istio_revision, &new.istio_revision);
    (!from.is_empty() && from != to).then(|| format!("moved from IstioRevision {from:?} to {to:?}"))
}

/// Adds the event about a move after the status that records it, so that it is sent once.
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
