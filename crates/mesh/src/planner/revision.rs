//! Plans `IstioRevision`: releases, finalizer and status.

use mainstay_api::{
    ConditionType, IstioRevision, ObjectKind, RevisionStatus, derive_state, names, takes_precedence, values,
};

use super::builder::{PlanBuilder, StatusUpdate};
use super::condition::reconciled_condition;
use super::finalize::with_finalizer;
use super::release::{Chart, add_release_steps, check_charts, new_release, new_release_key};
use super::target::{check_namespace, check_set};
use super::{dependency, in_use, readiness};
use crate::plan::{NewStatus, Plan, Release, ReleaseKey};
use crate::snapshot::Source;
use crate::{Invalid, ReconcileError, Snapshot};

/// Returns the plan of a revision.
pub(super) fn plan(snapshot: &Snapshot, revision: &IstioRevision) -> Plan {
    with_finalizer(
        snapshot,
        revision,
        || charts(snapshot, revision).map(|(_, key)| key).collect(),
        || reconcile(snapshot, revision),
    )
}

/// Returns the charts of a revision with their releases: istiod in its namespace, and base, for the default
/// revision only, in the namespace of the operator.
fn charts<'a>(
    snapshot: &'a Snapshot,
    revision: &'a IstioRevision,
) -> impl Iterator<Item = (&'static str, ReleaseKey)> + use<'a> {
    let is_default = revision.name() == names::DEFAULT_REVISION;
    let base = is_default.then_some((names::BASE_CHART, snapshot.settings.operator_namespace.as_str()));
    let istiod = (names::ISTIOD_CHART, revision.spec.namespace.as_str());
    let named = move |(chart, namespace)| {
        (
            chart,
            new_release_key(revision, namespace, names::release(revision.name(), chart)),
        )
    };
    [istiod].into_iter().chain(base).map(named)
}

fn reconcile(snapshot: &Snapshot, revision: &IstioRevision) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, revision);
    if let Some(releases) = builder.check(desired_releases(snapshot, revision)) {
        add_release_steps(snapshot, &mut builder, releases, &[]);
    }
    builder.drop_failed_steps();
    let status = status(snapshot, revision, builder.error());
    let events = [
        ConditionType::Reconciled,
        ConditionType::Ready,
        ConditionType::DependenciesHealthy,
        ConditionType::InUse,
    ];
    builder.plan_with_status(StatusUpdate {
        old: &revision.status,
        new: status,
        events: &events,
        wrap: NewStatus::Revision,
    })
}

fn desired_releases(snapshot: &Snapshot, revision: &IstioRevision) -> Result<Vec<Release>, ReconcileError> {
    let spec = &revision.spec;
    check_consistent(revision)?;
    check_name(snapshot, revision)?;
    check_set("version", &spec.version)?;
    check_set("namespace", &spec.namespace)?;
    let values = spec.values.as_ref().ok_or(Invalid::NotSet("values"))?;
    check_namespace(snapshot, &spec.namespace)?;
    check_charts(&snapshot.library, names::ISTIOD_CHART, &spec.version)?;
    let releases = charts(snapshot, revision);
    let releases = releases.map(|(chart, key)| {
        new_release(
            revision,
            key,
            Chart {
                name: chart,
                version: &spec.version,
            },
            values.clone(),
        )
    });
    Ok(releases.collect())
}

/// Checks that name and namespace match the values. Missing values are reported later.
fn check_consistent(revision: &IstioRevision) -> Result<(), ReconcileError> {
    let Some(map) = &revision.spec.values else {
        return Ok(());
    };
    let said = revision.spec.revision();
    match revision.name() {
        names::DEFAULT_REVISION if !said.is_empty() => return Err(Invalid::DefaultRevision.into()),
        names::DEFAULT_REVISION => {}
        name if name != said => return Err(Invalid::WrongRevision.into()),
        _ => {}
    }
    match values::text(map, &["global", "istioNamespace"]) {
        Some(namespace) if namespace == revision.spec.namespace => Ok(()),
        _ => Err(Invalid::WrongNamespace.into()),
    }
}

/// Checks that no older tag has the same name. Fails if tags cannot be read, because such a tag might
/// exist.
fn check_name(snapshot: &Snapshot, revision: &IstioRevision) -> Result<(), ReconcileError> {
    let source = Source::Objects(ObjectKind::IstioRevisionTag);
    snapshot
        .readable(source)
        .map_err(|error| ReconcileError::Unreadable {
            context: "failed to get IstioRevisionTag: ",
            error: error.to_owned(),
        })?;
    match snapshot.tags().get(revision.name()) {
        Some(tag) if takes_precedence(&tag.metadata, &revision.metadata) => Err(ReconcileError::TagExists),
        _ => Ok(()),
    }
}

fn status(snapshot: &Snapshot, revision: &IstioRevision, error: Option<&ReconcileError>) -> RevisionStatus {
    let mut status = revision.status.clone();
    let deciding = [
        reconciled_condition(error),
        readiness::ready_condition(snapshot, &revision.spec),
        dependency::healthy_condition(snapshot, revision),
    ];
    status.observed_generation = revision.metadata.generation;
    status.state = derive_state(&deciding);
    for condition in deciding
        .into_iter()
        .chain([in_use::revision_condition(snapshot, revision)])
    {
        status.conditions.set(condition, snapshot.now);
    }
    status
}
