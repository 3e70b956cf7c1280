//! Problems of a mesh with hints: reasons are the operator's condition reasons, hints are defined here.

use std::collections::BTreeSet;

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Kind, MigrationState, ObjectMeta, Reason, Resource,
    Status as _,
};
use mainstay_cluster::survey::Survey;
use mainstay_mesh::{Snapshot, active_revision_name};
use serde::Serialize;

use super::Operator;

/// A problem.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// `IstioRevision/default`.
    pub(crate) object: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// Reason for objects that are not reconciled yet.
const PENDING: &str = "Pending";

/// Hints by reason; `NAME` and `NAMESPACE` are replaced by the object's, `FIELD` by the field that the
/// message names.
const REMEDIES: &[(Reason, &str)] = &[
    (
        Reason::ReconcileError,
        "fix the reported cause; the operator retries. Run `kubectl get events --field-selector involvedObject.name=NAME` for details",
    ),
    (
        Reason::ActiveRevisionNotFound,
        "wait until the operator creates the revision; otherwise check its log",
    ),
    (
        Reason::FailedToGetActiveRevision,
        "check the operator's log and roles: it cannot read IstioRevisions",
    ),
    (
        Reason::NameAlreadyExists,
        "rename or delete the revision or the tag: they cannot share a name",
    ),
    (
        Reason::RefNotFound,
        "create the object that spec.targetRef names, or change spec.targetRef",
    ),
    (
        Reason::IstiodNotReady,
        "run `kubectl -n NAMESPACE get pods -l app=istiod`",
    ),
    (
        Reason::RemoteIstiodNotReady,
        "check that the control plane's address is reachable from here and that its certificate is in the webhook's caBundle",
    ),
    (
        Reason::DaemonSetNotReady,
        "run `kubectl -n NAMESPACE get pods -o wide`",
    ),
    (
        Reason::ReadinessCheckFailed,
        "check the operator's log and roles: it cannot read the workload",
    ),
    (
        Reason::IstioCniNotFound,
        "create an IstioCNI (sailoperator.io/v1) with the name default and spec.namespace istio-cni",
    ),
    (Reason::IstioCniNotHealthy, "see IstioCNI/default"),
    (
        Reason::ZTunnelNotFound,
        "create a ZTunnel (sailoperator.io/v1) with the name default and spec.namespace ztunnel",
    ),
    (Reason::ZTunnelNotHealthy, "see ZTunnel/default"),
    (
        Reason::DependencyCheckFailed,
        "check the operator's log and roles: it cannot read the revision's dependencies",
    ),
    (
        Reason::TagNameTaken,
        "delete the tag or revision of that name, or remove the name from spec.updateStrategy.revisionTags",
    ),
    (
        Reason::TagClaimedByOther,
        "remove the name from spec.updateStrategy.revisionTags of one Istio",
    ),
    (
        Reason::InvalidTagName,
        "correct the name in spec.updateStrategy.revisionTags",
    ),
    (
        Reason::TagFailed,
        "see the message of the condition TagsReconciled; the tag is retried",
    ),
    (
        Reason::TagStillInUse,
        "label the namespaces and pods that use the tag with another revision",
    ),
    (
        Reason::WorkloadsFailed,
        "fix the workloads listed by `mainstay migration status NAME`, then run `mainstay migration retry NAME`",
    ),
    (
        Reason::MigrationPaused,
        "run `mainstay migration resume NAME` to continue",
    ),
    (
        Reason::TargetRevisionNotReady,
        "wait until the new control plane is ready; run `mainstay revision list` to check it",
    ),
    (
        Reason::VersionAboveMaximum,
        "raise or remove spec.updateStrategy.workloadMigration.batched.maxVersion to migrate to this version",
    ),
    (
        Reason::InvalidMigrationSettings,
        "correct spec.updateStrategy.workloadMigrationFIELD",
    ),
    (
        Reason::WorkloadsUnreadable,
        "check the operator's log and roles: it cannot read namespaces, pods or workloads",
    ),
];

/// Returns all problems, each cause once.
pub(crate) fn problems(survey: &Survey) -> Vec<Problem> {
    let snapshot = &survey.snapshot;
    let mut out = Vec::new();
    for (kind, name, error) in &survey.unreadable {
        out.push(Problem {
            object: format!("{}/{name}", kind.name()),
            reason: "Unreadable".to_owned(),
            message: error.clone(),
            remedy: format!(
                "run `kubectl get {} {name} -o yaml` and fix the field of the wrong type",
                kind.plural()
            ),
        });
    }
    for revision in snapshot.revisions().iter() {
        out.extend(object_problems(revision, &revision.spec.namespace));
    }
    // An Istio repeats the conditions of its revision.
    let reported: BTreeSet<String> = out.iter().map(|problem| problem.message.clone()).collect();
    for istio in snapshot.istios().iter() {
        out.extend(invalid_spec(snapshot, istio));
        out.extend(failed_workloads(istio));
        let own = object_problems(istio, &istio.spec.namespace);
        out.extend(
            own.into_iter()
                .filter(|problem| is_pending(problem) || !reported.contains(&problem.message)),
        );
    }
    for tag in snapshot.tags().iter() {
        out.extend(object_problems(tag, &tag.status.istiod_namespace));
    }
    for cni in snapshot.cnis().iter() {
        out.extend(object_problems(cni, &cni.spec.namespace));
    }
    for ztunnel in snapshot.ztunnels().iter() {
        out.extend(object_problems(ztunnel, &ztunnel.spec.namespace));
    }
    out
}

/// Returns a problem if the operator is known not to run.
pub(crate) fn operator_problem(operator: &Operator) -> Option<Problem> {
    (operator.running == Some(false)).then(|| Problem {
        object: "operator".to_owned(),
        reason: "NotRunning".to_owned(),
        message: operator.detail.clone(),
        remedy: "install the operator with its Helm chart, or check its Deployment; the status shown here may be outdated. Delete the Lease if the operator runs with --leader-elect=false".to_owned(),
    })
}

/// Returns a problem if the operator will reject the spec.
fn invalid_spec(snapshot: &Snapshot, istio: &mainstay_api::Istio) -> Option<Problem> {
    let error = active_revision_name(snapshot, istio).err()?;
    let reported = istio.status.conditions.find(&ConditionType::Reconciled);
    let known = reported.is_some_and(|condition| condition.message.contains(&error.to_string()));
    (!known).then(|| Problem {
        object: format!("Istio/{}", istio.name()),
        reason: Reason::ReconcileError.to_string(),
        message: error.to_string(),
        remedy: "run `mainstay charts list` to list the available versions".to_owned(),
    })
}

/// Returns a problem if workloads of a migration in progress have failed.
fn failed_workloads(istio: &mainstay_api::Istio) -> Option<Problem> {
    let migration = istio.status.workload_migration.as_ref()?;
    let (failed, total) = (migration.failed_workloads, migration.total_workloads);
    let is_failing = migration.state == MigrationState::InProgress && failed > 0;
    is_failing.then(|| {
        let message = format!(
            "{failed} of {total} workloads not ready on {}",
            migration.target_revision
        );
        let condition = Condition::new(
            ConditionType::WorkloadsMigrated,
            ConditionStatus::False,
            Reason::WorkloadsFailed,
            message,
        );
        Problem {
            object: format!("Istio/{}", istio.name()),
            reason: condition.reason.to_string(),
            remedy: remedy(&condition, &istio.metadata, &istio.spec.namespace),
            message: condition.message,
        }
    })
}

fn object_problems<S: Kind>(object: &Resource<S>, namespace: &str) -> Vec<Problem> {
    let is_problem = |condition: &&Condition| {
        condition.kind != ConditionType::InUse
            && condition.status != ConditionStatus::True
            // A migration in progress is healthy.
            && condition.reason != Reason::MigrationInProgress
    };
    let conditions = object.status.conditions().0.iter().filter(is_problem);
    let name = format!("{}/{}", S::KIND.name(), object.name());
    let mut out: Vec<Problem> = conditions
        .map(|condition| Problem {
            object: name.clone(),
            reason: condition.reason.to_string(),
            message: condition.message.clone(),
            remedy: remedy(condition, &object.metadata, namespace),
        })
        .collect();
    if is_unreconciled(object) {
        out.push(Problem {
            object: name,
            reason: PENDING.to_owned(),
            message: "not reconciled by the operator yet".to_owned(),
            remedy: "wait; if it does not change, check that the operator runs, and its log".to_owned(),
        });
    }
    out
}

fn is_pending(problem: &Problem) -> bool {
    problem.reason == PENDING
}

fn is_unreconciled<S: Kind>(object: &Resource<S>) -> bool {
    !object.metadata.is_deleting() && object.status.observed_generation() < object.metadata.generation
}

fn remedy(condition: &Condition, metadata: &ObjectMeta, namespace: &str) -> String {
    let known = REMEDIES.iter().find(|(known, _)| *known == condition.reason);
    let text = known.map_or("check the operator's log", |(_, text)| text);
    text.replace("NAMESPACE", namespace)
        .replace("NAME", &metadata.name)
        .replace("FIELD", &field(&condition.message))
}

/// Returns the field of the migration settings at the start of a message, after a dot.
fn field(message: &str) -> String {
    let word = message.split([':', ' ']).next().unwrap_or_default();
    if word == "kinds" || word.starts_with("batched.") {
        format!(".{word}")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_about_migration_settings_name_the_field() {
        let check = |reason: Reason, message: &str, expected: &str| {
            let condition = Condition::new(
                ConditionType::WorkloadsMigrated,
                ConditionStatus::False,
                reason,
                message,
            );
            assert_eq!(remedy(&condition, &ObjectMeta::default(), ""), expected);
        };
        let invalid = |message: &str, expected: &str| {
            let hint = format!("correct spec.updateStrategy.workloadMigration{expected}");
            check(Reason::InvalidMigrationSettings, message, &hint);
        };
        invalid("batched.batchSize is 0, must be at least 1", ".batched.batchSize");
        invalid(
            "batched.maxVersion: \"newest\" is not a version",
            ".batched.maxVersion",
        );
        invalid(
            "kinds: \"Job\" is not one of Deployment, StatefulSet, DaemonSet",
            ".kinds",
        );
        invalid("version \"v9.9.9\" not found", "");
        check(
            Reason::VersionAboveMaximum,
            "1.29.1 is above batched.maxVersion 1.28.999; workloads and managed tags stay",
            "raise or remove spec.updateStrategy.workloadMigration.batched.maxVersion to migrate to this version",
        );
    }
}
