//! What is wrong and what to do about it: takes a survey, gives a line per cause. The reasons are the operator's; the remedies are here.

use std::collections::BTreeSet;

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Kind, ObjectMeta, Reason, Resource, Status as _,
};
use mainstay_cluster::survey::Survey;
use mainstay_mesh::{Snapshot, active_revision_name};
use serde::Serialize;

use super::Operator;

/// One thing that is wrong.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// `IstioRevision/default`.
    pub(crate) object: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// The state of what nobody has looked at.
const PENDING: &str = "Pending";

/// What to do, by reason; `NAME` and `NAMESPACE` are the object's.
const REMEDIES: &[(Reason, &str)] = &[
    (
        Reason::ReconcileError,
        "mend what the message names; the operator tries again by itself. `kubectl get events --field-selector involvedObject.name=NAME` tells more",
    ),
    (
        Reason::ActiveRevisionNotFound,
        "the operator creates the revision; if it does not, look at its log",
    ),
    (
        Reason::FailedToGetActiveRevision,
        "the operator cannot read IstioRevisions: look at its log and its roles",
    ),
    (
        Reason::NameAlreadyExists,
        "a revision and a tag cannot share a name: rename or delete one of them",
    ),
    (
        Reason::RefNotFound,
        "create what spec.targetRef names, or point it elsewhere",
    ),
    (
        Reason::IstiodNotReady,
        "kubectl -n NAMESPACE get pods -l app=istiod",
    ),
    (
        Reason::RemoteIstiodNotReady,
        "check that the control plane's address is reachable from here and that its certificate is in the webhook's caBundle",
    ),
    (Reason::DaemonSetNotReady, "kubectl -n NAMESPACE get pods -o wide"),
    (
        Reason::ReadinessCheckFailed,
        "the operator cannot read the workload: look at its log and its roles",
    ),
    (
        Reason::IstioCniNotFound,
        "kubectl apply -f deploy/samples/cni.yaml",
    ),
    (Reason::IstioCniNotHealthy, "see IstioCNI/default"),
    (
        Reason::ZTunnelNotFound,
        "kubectl apply -f deploy/samples/ztunnel.yaml",
    ),
    (Reason::ZTunnelNotHealthy, "see ZTunnel/default"),
    (
        Reason::DependencyCheckFailed,
        "the operator cannot read what the revision depends on: look at its log and its roles",
    ),
    (
        Reason::TagNameTaken,
        "delete the tag or revision of that name, or take the name out of spec.updateStrategy.revisionTags",
    ),
    (
        Reason::TagClaimedByOther,
        "take the name out of spec.updateStrategy.revisionTags of one of the two",
    ),
    (
        Reason::TagStillInUse,
        "label the namespaces and pods that use the tag for another one",
    ),
    (
        Reason::WorkloadsFailed,
        "look at the pods of those that `mainstay migration status NAME` names and mend what keeps them; `mainstay migration retry NAME` tries again",
    ),
    (
        Reason::MigrationInProgress,
        "nothing, it is on its way; `mainstay migration watch NAME` shows it",
    ),
    (
        Reason::MigrationPaused,
        "`mainstay migration resume NAME` lets it go on",
    ),
    (
        Reason::TargetRevisionNotReady,
        "the new control plane comes first: `mainstay revision list` shows how it is",
    ),
];

/// Everything that does not hold, each cause once.
pub(crate) fn problems(survey: &Survey) -> Vec<Problem> {
    let snapshot = &survey.snapshot;
    let mut out = Vec::new();
    for (kind, name, error) in &survey.unreadable {
        out.push(Problem {
            object: format!("{}/{name}", kind.name()),
            reason: "Unreadable".to_owned(),
            message: error.clone(),
            remedy: format!(
                "kubectl get {} {name} -o yaml, and mend what is not of the right type",
                kind.plural()
            ),
        });
    }
    for revision in snapshot.revisions().iter() {
        out.extend(of_object(revision, &revision.spec.namespace));
    }
    // What an Istio says of its revision is said there already.
    let told: BTreeSet<String> = out.iter().map(|problem| problem.message.clone()).collect();
    for istio in snapshot.istios().iter() {
        out.extend(refused_spec(snapshot, istio));
        let own = of_object(istio, &istio.spec.namespace);
        out.extend(
            own.into_iter()
                .filter(|problem| is_pending(problem) || !told.contains(&problem.message)),
        );
    }
    for tag in snapshot.tags().iter() {
        out.extend(of_object(tag, &tag.status.istiod_namespace));
    }
    for cni in snapshot.cnis().iter() {
        out.extend(of_object(cni, &cni.spec.namespace));
    }
    for ztunnel in snapshot.ztunnels().iter() {
        out.extend(of_object(ztunnel, &ztunnel.spec.namespace));
    }
    out
}

/// Nobody working is a problem only when it is known.
pub(crate) fn of_operator(operator: &Operator) -> Option<Problem> {
    (operator.running == Some(false)).then(|| Problem {
        object: "operator".to_owned(),
        reason: "NotRunning".to_owned(),
        message: operator.message.trim_start_matches("not running: ").to_owned(),
        remedy: "helm install mainstay deploy/chart, or `kubectl rollout status` if it is installed: what is shown here may be old".to_owned(),
    })
}

/// What the operator will refuse, before it does.
fn refused_spec(snapshot: &Snapshot, istio: &mainstay_api::Istio) -> Option<Problem> {
    let error = active_revision_name(snapshot, istio).err()?;
    let reported = istio.status.conditions.find(&ConditionType::Reconciled);
    let known = reported.is_some_and(|condition| condition.message.contains(&error.to_string()));
    (!known).then(|| Problem {
        object: format!("Istio/{}", istio.name()),
        reason: Reason::ReconcileError.to_string(),
        message: error.to_string(),
        remedy: "`mainstay charts list` shows the versions that can be installed".to_owned(),
    })
}

fn of_object<S: Kind>(object: &Resource<S>, namespace: &str) -> Vec<Problem> {
    let told = |condition: &&Condition| {
        condition.kind != ConditionType::InUse && condition.status != ConditionStatus::True
    };
    let conditions = object.status.conditions().0.iter().filter(told);
    let name = format!("{}/{}", S::KIND.name(), object.name());
    let mut out: Vec<Problem> = conditions
        .map(|condition| Problem {
            object: name.clone(),
            reason: condition.reason.to_string(),
            message: condition.message.clone(),
            remedy: remedy(&condition.reason, &object.metadata, namespace),
        })
        .collect();
    if is_unseen(object) {
        out.push(Problem {
            object: name,
            reason: PENDING.to_owned(),
            message: "the operator has not looked at this version of it yet".to_owned(),
            remedy: "wait; if it stays so, look at the operator's log".to_owned(),
        });
    }
    out
}

fn is_pending(problem: &Problem) -> bool {
    problem.reason == PENDING
}

fn is_unseen<S: Kind>(object: &Resource<S>) -> bool {
    !object.metadata.is_deleting() && object.status.observed_generation() < object.metadata.generation
}

fn remedy(reason: &Reason, metadata: &ObjectMeta, namespace: &str) -> String {
    let known = REMEDIES.iter().find(|(known, _)| known == reason);
    let text = known.map_or("look at the operator's log", |(_, text)| text);
    text.replace("NAMESPACE", namespace)
        .replace("NAME", &metadata.name)
}
