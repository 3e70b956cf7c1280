//! Plans `Istio`: active revision, tags, pruning, migration and status.

use jiff::SignedDuration;
use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Istio, IstioRevision, IstioStatus, ObjectKind, OwnerReference,
    Reason, RevisionSpec, RevisionStatus, RevisionSummary, UpdateStrategyType, names,
};

use super::builder::{PlanBuilder, StatusUpdate};
use super::target::{check_set, resolve_version};
use super::{prune, tags};
use crate::migration::{self, Progress, requests_migration};
use crate::plan::{Action, Change, NewObject, NewStatus, Plan, Precondition};
use crate::snapshot::Source;
use crate::values::{ControlPlane, Pipeline};
use crate::{ReconcileError, Snapshot, Subject};

/// Default of `inactiveRevisionDeletionGracePeriodSeconds`.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// The requested active revision.
struct ActiveRevision {
    name: String,
    spec: RevisionSpec,
}

/// Returns the plan of an Istio. The plan is empty while the Istio is being deleted, because its objects
/// are garbage-collected.
pub(super) fn plan(snapshot: &Snapshot, istio: &Istio) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, istio);
    if istio.metadata.is_deleting() {
        return builder.plan();
    }
    warn_about_deprecated_field(istio, &mut builder);
    let active = builder.check(desired_active_revision(snapshot, istio));
    let mut tags = None;
    // If revisions cannot be read, the status reports that, and no revision is changed.
    if let Some(active) = active.as_ref().filter(|_| can_read_revisions(snapshot).is_ok()) {
        let applied = apply_active(snapshot, istio, active, &mut builder);
        if builder.check(applied).is_some() {
            tags = tags::plan_tags(snapshot, istio, &active.name, &mut builder);
            prune::prune(snapshot, istio, &active.name, &mut builder);
        }
    }
    builder.drop_failed_steps();
    let progress = active
        .is_some()
        .then(|| migration::plan_progress(snapshot, istio, &mut builder))
        .flatten();
    let status = status(
        snapshot,
        istio,
        PlannedParts {
            active: active.as_ref(),
            tags,
            progress,
        },
        &builder,
    );
    let events = [ConditionType::TagsReconciled];
    let events_with_error = [ConditionType::Reconciled, ConditionType::TagsReconciled];
    let events = if builder.error().is_some() {
        &events_with_error[..]
    } else {
        &events[..]
    };
    builder.plan_with_status(StatusUpdate {
        old: &istio.status,
        new: status,
        events,
        wrap: NewStatus::Istio,
    })
}

/// Adds a warning about a field that has no effect, once per change of the spec.
fn warn_about_deprecated_field(istio: &Istio, builder: &mut PlanBuilder<'_>) {
    let set = istio
        .spec
        .update_strategy
        .as_ref()
        .is_some_and(|strategy| strategy.update_workloads);
    if set && istio.status.observed_generation != istio.metadata.generation {
        let message = "spec.updateStrategy.updateWorkloads has no effect; use workloadMigration";
        builder.add_event(true, Reason::DeprecatedField, message.to_owned());
    }
}

/// Returns the name of an Istio's active revision, according to its resolved version.
pub fn active_revision_name(snapshot: &Snapshot, istio: &Istio) -> Result<String, ReconcileError> {
    let version = resolve_version(snapshot, &istio.spec.version, || version_owner(istio))?;
    Ok(revision_name(istio, &version.name()))
}

fn revision_name(istio: &Istio, version: &str) -> String {
    match istio.spec.strategy() {
        UpdateStrategyType::InPlace => istio.name().to_owned(),
        UpdateStrategyType::RevisionBased => names::versioned_revision(istio.name(), version),
    }
}

fn version_owner(istio: &Istio) -> String {
    format!("Istio version for {:?}", istio.name())
}

/// Returns the grace period before an unused revision of an Istio is deleted.
#[must_use]
pub fn grace_period(istio: &Istio) -> SignedDuration {
    let strategy = istio.spec.update_strategy.as_ref();
    let seconds = strategy.and_then(|strategy| strategy.inactive_revision_deletion_grace_period_seconds);
    SignedDuration::from_secs(seconds.unwrap_or(DEFAULT_GRACE_SECONDS).max(0))
}

fn desired_active_revision(snapshot: &Snapshot, istio: &Istio) -> Result<ActiveRevision, ReconcileError> {
    let spec = &istio.spec;
    check_set("spec.version", &spec.version)?;
    check_set("spec.namespace", &spec.namespace)?;
    let version = resolve_version(snapshot, &spec.version, || version_owner(istio))?;
    let name = revision_name(istio, &version.name());
    let plane = ControlPlane {
        revision: &name,
        namespace: &spec.namespace,
        profile: &spec.profile,
        values: spec.values.as_ref(),
    };
    let values = Pipeline::for_snapshot(snapshot).revision_values(plane, &version)?;
    let spec = RevisionSpec {
        version: version.name(),
        namespace: spec.namespace.clone(),
        values: Some(values),
    };
    Ok(ActiveRevision { name, spec })
}

/// Creates or updates the active revision.
fn apply_active(
    snapshot: &Snapshot,
    istio: &Istio,
    active: &ActiveRevision,
    builder: &mut PlanBuilder<'_>,
) -> Result<(), ReconcileError> {
    match snapshot.revisions().get(&active.name) {
        None => create_revision(snapshot, istio, active, builder),
        Some(revision) => return update_revision(istio, active, revision, builder),
    }
    Ok(())
}

fn create_revision(
    snapshot: &Snapshot,
    istio: &Istio,
    active: &ActiveRevision,
    builder: &mut PlanBuilder<'_>,
) {
    let has_tag = snapshot.has_implicit_tag(istio);
    let annotation = has_tag.then(|| (names::IMPLICIT_TAG.to_owned(), "true".to_owned()));
    let new = NewObject {
        name: active.name.clone(),
        owner: istio.owner_reference(),
        finalizers: vec![names::FINALIZER.to_owned()],
        annotations: annotation.into_iter().collect(),
        spec: active.spec.clone(),
    };
    let message = format!(
        "created IstioRevision {:?} of {}",
        active.name, active.spec.version
    );
    builder.add_with_event(Action::CreateRevision(new), &Reason::RevisionCreated, message);
}

/// Updates a revision. A revision without a controlling owner is adopted, one with another owner is an
/// error, and one that is being deleted is not changed.
fn update_revision(
    istio: &Istio,
    active: &ActiveRevision,
    revision: &IstioRevision,
    builder: &mut PlanBuilder<'_>,
) -> Result<(), ReconcileError> {
    let uid = &istio.metadata.uid;
    if let Some(other) = revision.metadata.controller().filter(|owner| owner.uid != *uid) {
        return Err(ReconcileError::ForeignRevision {
            name: active.name.clone(),
            owner: format!("{} {:?}", other.kind, other.name),
        });
    }
    if revision.spec.namespace != active.spec.namespace {
        return Err(ReconcileError::OtherNamespace {
            name: active.name.clone(),
            namespace: revision.spec.namespace.clone(),
        });
    }
    let owners = owners_with(istio, revision);
    let same = revision.spec == active.spec && owners == revision.metadata.owner_references;
    if !same && !revision.metadata.is_deleting() {
        let change = Change {
            object: Precondition::for_object(Subject::revision(&active.name), &revision.metadata),
            owner_references: owners,
            spec: active.spec.clone(),
        };
        builder.add(Action::UpdateRevision(change), Reason::RevisionUpdated);
    }
    Ok(())
}

/// Returns the current owners, with this Istio added if it is missing.
fn owners_with(istio: &Istio, revision: &IstioRevision) -> Vec<OwnerReference> {
    let mut owners = revision.metadata.owner_references.clone();
    if !revision.metadata.is_owned_by(&istio.metadata.uid) {
        owners.push(istio.owner_reference());
    }
    owners
}

/// Results of the parts of a plan that the status reports.
struct PlannedParts<'a> {
    active: Option<&'a ActiveRevision>,
    /// Condition of the managed tags.
    tags: Option<Condition>,
    /// Progress of the migration.
    progress: Option<Progress>,
}

fn status(
    snapshot: &Snapshot,
    istio: &Istio,
    parts: PlannedParts<'_>,
    builder: &PlanBuilder<'_>,
) -> IstioStatus {
    let mut status = istio.status.clone();
    status.observed_generation = istio.metadata.generation;
    match (builder.error(), parts.active) {
        (Some(error), _) => report_error(&mut status, snapshot, error),
        (None, Some(active)) => copy_active_conditions(&mut status, snapshot, &active.name),
        (None, None) => {}
    }
    if let Some(condition) = parts.tags {
        status.conditions.set(condition, snapshot.now);
    }
    report_migration(&mut status, snapshot, istio, parts.progress);
    status.revisions = revision_summary(snapshot, istio, is_creating(builder));
    status
}

/// Sets the progress of the migration. The progress stays unchanged while the Istio has an error, and is
/// removed if no migration is requested.
fn report_migration(
    status: &mut IstioStatus,
    snapshot: &Snapshot,
    istio: &Istio,
    progress: Option<Progress>,
) {
    if let Some(progress) = progress {
        status.workload_migration = Some(progress.status);
        status.conditions.set(progress.condition, snapshot.now);
    } else if !requests_migration(istio) {
        status.workload_migration = None;
        status
            .conditions
            .0
            .retain(|condition| condition.kind != ConditionType::WorkloadsMigrated);
    }
}

fn is_creating(builder: &PlanBuilder<'_>) -> bool {
    let mut actions = builder.steps().iter().map(|step| &step.action);
    actions.any(|action| matches!(action, Action::CreateRevision(_)))
}

/// Reports an error of the Istio itself. The active revision in the status stays unchanged.
fn report_error(status: &mut IstioStatus, snapshot: &Snapshot, error: &ReconcileError) {
    let (reason, unknown) = (Reason::ReconcileError, ConditionStatus::Unknown);
    let message = error.to_string();
    let reconciled = Condition::new(
        ConditionType::Reconciled,
        ConditionStatus::False,
        reason.clone(),
        message,
    );
    let message = "cannot determine readiness due to reconciliation error";
    let ready = Condition::new(ConditionType::Ready, unknown, reason.clone(), message);
    status.conditions.set(reconciled, snapshot.now);
    status.conditions.set(ready, snapshot.now);
    status.state = reason;
}

/// Copies the conditions of the active revision, or reports that it does not exist or cannot be read.
fn copy_active_conditions(status: &mut IstioStatus, snapshot: &Snapshot, active: &str) {
    let known = status.active_revision_name == active;
    active.clone_into(&mut status.active_revision_name);
    if let Err(error) = can_read_revisions(snapshot) {
        let message = format!("failed to get active IstioRevision: get failed: {error}");
        return set_reconciled_and_ready(status, snapshot, |kind| {
            Condition::new(
                kind,
                ConditionStatus::Unknown,
                Reason::FailedToGetActiveRevision,
                &message,
            )
        });
    }
    match snapshot.revisions().get(active).map(|revision| &revision.status) {
        None => {
            let message = "active IstioRevision not found";
            set_reconciled_and_ready(status, snapshot, |kind| {
                Condition::new(
                    kind,
                    ConditionStatus::False,
                    Reason::ActiveRevisionNotFound,
                    message,
                )
            });
        }
        // A new revision has no conditions yet. The previous conditions stay until it does.
        Some(revision) if revision.conditions.is_empty() && known => {}
        Some(revision) => copy_conditions(status, snapshot, revision),
    }
}

fn copy_conditions(status: &mut IstioStatus, snapshot: &Snapshot, revision: &RevisionStatus) {
    let kinds = [
        ConditionType::Reconciled,
        ConditionType::Ready,
        ConditionType::DependenciesHealthy,
    ];
    for kind in kinds {
        status
            .conditions
            .set(revision.conditions.get(&kind), snapshot.now);
    }
    status.state = revision.state.clone();
}

/// Sets the conditions Reconciled and Ready, and the state to the reason of both.
fn set_reconciled_and_ready(
    status: &mut IstioStatus,
    snapshot: &Snapshot,
    condition: impl Fn(ConditionType) -> Condition,
) {
    let ready = condition(ConditionType::Ready);
    status.state = ready.reason.clone();
    status
        .conditions
        .set(condition(ConditionType::Reconciled), snapshot.now);
    status.conditions.set(ready, snapshot.now);
}

fn can_read_revisions(snapshot: &Snapshot) -> Result<(), &str> {
    snapshot.readable(Source::Objects(ObjectKind::IstioRevision))
}

fn revision_summary(snapshot: &Snapshot, istio: &Istio, created: bool) -> RevisionSummary {
    if can_read_revisions(snapshot).is_err() {
        return RevisionSummary::UNREADABLE;
    }
    let mut summary = RevisionSummary {
        total: i32::from(created),
        ..RevisionSummary::default()
    };
    for revision in snapshot.revisions().owned_by(&istio.metadata.uid) {
        summary.total += 1;
        summary.ready += i32::from(revision.status.conditions.is_true(&ConditionType::Ready));
        summary.in_use += i32::from(revision.status.conditions.is_true(&ConditionType::InUse));
    }
    summary
}
