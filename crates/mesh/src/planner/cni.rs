//! Plans `IstioCNI`: release, finalizer and status.

use mainstay_api::{CniStatus, ConditionType, IstioCni, derive_state, names};

use super::builder::{PlanBuilder, StatusUpdate};
use super::condition::reconciled_condition;
use super::daemonset;
use super::finalize::with_finalizer;
use super::release::{Chart, add_release_steps, new_release, new_release_key};
use super::target::{check_version_and_namespace, resolve_version};
use crate::plan::{NewStatus, Plan, Release, ReleaseKey};
use crate::values::Pipeline;
use crate::{ReconcileError, Snapshot};

/// Returns the plan of an `IstioCNI`.
pub(super) fn plan(snapshot: &Snapshot, cni: &IstioCni) -> Plan {
    with_finalizer(
        snapshot,
        cni,
        || vec![release_key(cni)],
        || reconcile(snapshot, cni),
    )
}

fn release_key(cni: &IstioCni) -> ReleaseKey {
    new_release_key(cni, &cni.spec.namespace, names::CNI_RELEASE.to_owned())
}

fn reconcile(snapshot: &Snapshot, cni: &IstioCni) -> Plan {
    let mut builder = PlanBuilder::for_object(snapshot, cni);
    if let Some(release) = builder.check(desired_release(snapshot, cni)) {
        add_release_steps(snapshot, &mut builder, vec![release], &[]);
    }
    builder.drop_failed_steps();
    let status = status(snapshot, cni, builder.error());
    let events = [ConditionType::Reconciled, ConditionType::Ready];
    builder.plan_with_status(StatusUpdate {
        old: &cni.status,
        new: status,
        events: &events,
        wrap: NewStatus::Cni,
    })
}

fn desired_release(snapshot: &Snapshot, cni: &IstioCni) -> Result<Release, ReconcileError> {
    let spec = &cni.spec;
    check_version_and_namespace(snapshot, &spec.version, &spec.namespace)?;
    let version = resolve_version(snapshot, &spec.version, || "CNI version".to_owned())?;
    let values =
        Pipeline::for_snapshot(snapshot).cni_values(spec.values.as_ref(), &spec.profile, &version)?;
    Ok(new_release(
        cni,
        release_key(cni),
        Chart {
            name: names::CNI_CHART,
            version: &version.name(),
        },
        values,
    ))
}

fn status(snapshot: &Snapshot, cni: &IstioCni, error: Option<&ReconcileError>) -> CniStatus {
    let mut status = cni.status.clone();
    let conditions = [
        reconciled_condition(error),
        daemonset::ready_condition(snapshot, &cni.spec.namespace, names::CNI_DAEMONSET),
    ];
    status.observed_generation = cni.metadata.generation;
    status.state = derive_state(&conditions);
    for condition in conditions {
        status.conditions.set(condition, snapshot.now);
    }
    status
}
