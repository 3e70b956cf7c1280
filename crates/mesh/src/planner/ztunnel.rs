//! Plans `ZTunnel`: release, finalizer and status.

use mainstay_api::{ConditionType, IstioRevision, ZTunnel, ZTunnelStatus, derive_state, names};

use super::builder::{PlanBuilder, StatusUpdate};
use super::condition::reconciled_condition;
use super::daemonset;
use super::finalize::with_finalizer;
use super::release::{Chart, add_release_steps, new_release, new_release_key};
use super::target::{check_version_and_namespace, resolve, resolve_version};
use crate::plan::{NewStatus, Plan, Release, ReleaseKey};
use crate::values::Pipeline;
use crate::{ReconcileError, Snapshot};

/// Returns the plan of a `ZTunnel`.
pub(super) fn plan(snapshot: &Snapshot, ztunnel: &ZTunnel) -> Plan {
    with_finalizer(
        snapshot,
        ztunnel,
        || vec![release_key(ztunnel)],
        || reconcile(snapshot, ztunnel),
    )
}

fn release_key(ztunnel: &ZTunnel) -> ReleaseKey {
    new_release_key(
        ztunnel,
        &ztunnel.spec.namespace,
        names::ZTUNNEL_RELEASE.to_owned(),
    )
}

fn reconcile(snapshot: &Snapshot, ztunnel: &ZTunnel) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, ztunnel);
    let plane = builder.check(control_plane(snapshot, ztunnel));
    let release = plane.map(|plane| desired_release(snapshot, ztunnel, plane));
    if let Some(release) = release.and_then(|release| builder.check(release)) {
        add_release_steps(snapshot, &mut builder, vec![release], &[]);
    }
    builder.drop_failed_steps();
    let status = status(snapshot, ztunnel, plane.flatten(), builder.error());
    let events = [ConditionType::Reconciled, ConditionType::Ready];
    builder.plan_with_status(StatusUpdate {
        old: &ztunnel.status,
        new: status,
        events: &events,
        wrap: NewStatus::ZTunnel,
    })
}

/// Returns the control plane of a `ZTunnel`, if it refers to one.
fn control_plane<'a>(
    snapshot: &'a Snapshot,
    ztunnel: &ZTunnel,
) -> Result<Option<&'a IstioRevision>, ReconcileError> {
    let spec = &ztunnel.spec;
    check_version_and_namespace(snapshot, &spec.version, &spec.namespace)?;
    spec.target_ref
        .as_ref()
        .map(|target| resolve(snapshot, target))
        .transpose()
}

fn desired_release(
    snapshot: &Snapshot,
    ztunnel: &ZTunnel,
    plane: Option<&IstioRevision>,
) -> Result<Release, ReconcileError> {
    let spec = &ztunnel.spec;
    let version = resolve_version(snapshot, &spec.version, || "ZTunnel version".to_owned())?;
    let plane = plane.map(|plane| &plane.spec);
    let values = Pipeline::for_snapshot(snapshot).ztunnel_values(spec.values.as_ref(), plane, &version)?;
    Ok(new_release(
        ztunnel,
        release_key(ztunnel),
        Chart {
            name: names::ZTUNNEL_CHART,
            version: &version.name(),
        },
        values,
    ))
}

fn status(
    snapshot: &Snapshot,
    ztunnel: &ZTunnel,
    plane: Option<&IstioRevision>,
    error: Option<&ReconcileError>,
) -> ZTunnelStatus {
    let mut status = ztunnel.status.clone();
    let conditions = [
        reconciled_condition(error),
        daemonset::ready_condition(snapshot, &ztunnel.spec.namespace, names::ZTUNNEL_DAEMONSET),
    ];
    status.observed_generation = ztunnel.metadata.generation;
    status.state = derive_state(&conditions);
    status.istio_revision = plane.map(|plane| plane.name().to_owned()).unwrap_or_default();
    for condition in conditions {
        status.conditions.set(condition, snapshot.now);
    }
    status
}
