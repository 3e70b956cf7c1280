//! Readiness of a control plane, determined from its Deployment, or from its webhook if it is remote.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, IstioRevision, Reason, RevisionSpec, Status, names,
};

use super::condition::unknown_condition;
use crate::Snapshot;
use crate::snapshot::Source;

/// Returns the `Ready` condition of a revision.
pub(super) fn ready_condition(snapshot: &Snapshot, spec: &RevisionSpec) -> Condition {
    let (source, found) = if spec.is_remote() {
        (Source::Webhooks, remote_readiness(snapshot, spec))
    } else {
        (Source::Deployments, local_readiness(snapshot, spec))
    };
    if let Err(error) = snapshot.readable(source) {
        let message = format!("failed to get readiness: {error}");
        return unknown_condition(ConditionType::Ready, Reason::ReadinessCheckFailed, message);
    }
    let (status, reason, message) = match found {
        Ok(()) => (ConditionStatus::True, Reason::Ready, String::new()),
        Err((reason, message)) => (ConditionStatus::False, reason, message),
    };
    Condition::new(ConditionType::Ready, status, reason, message)
}

/// Whether workloads may use a revision: according to a status of its current generation, it is completely
/// installed, including its webhook, and ready. The Deployment may be ready long before the webhook is
/// installed.
pub(crate) fn is_serving(revision: &IstioRevision) -> bool {
    let conditions = &revision.status.conditions;
    revision.status.observed_generation() >= revision.metadata.generation
        && conditions.is_true(&ConditionType::Reconciled)
        && conditions.is_true(&ConditionType::Ready)
        && !revision.metadata.is_deleting()
}

type Readiness = Result<(), (Reason, String)>;

fn local_readiness(snapshot: &Snapshot, spec: &RevisionSpec) -> Readiness {
    let not_ready = |message: &str| Err((Reason::IstiodNotReady, message.to_owned()));
    match snapshot.deployment(&spec.namespace, &names::istiod(spec.revision())) {
        None => not_ready("istiod Deployment not found"),
        Some(istiod) if istiod.replicas == 0 => not_ready("istiod Deployment is scaled to zero replicas"),
        Some(istiod) if istiod.ready < istiod.replicas => not_ready("not all istiod pods are ready"),
        Some(_) => Ok(()),
    }
}

fn remote_readiness(snapshot: &Snapshot, spec: &RevisionSpec) -> Readiness {
    let name = names::injector(spec.revision(), &spec.namespace);
    let not_ready = |message: String| Err((Reason::RemoteIstiodNotReady, message));
    let Some(webhook) = snapshot.webhook(&name) else {
        return not_ready(format!("MutatingWebhookConfiguration {name} not found"));
    };
    match webhook
        .metadata
        .annotations
        .get(names::PROBE_STATUS)
        .map(String::as_str)
    {
        Some("true") => Ok(()),
        Some("false") => not_ready("readiness probe on remote istiod failed".into()),
        _ => not_ready(format!(
            "invalid or missing annotation {} on MutatingWebhookConfiguration {name}",
            names::PROBE_STATUS
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks a revision of this generation with these conditions in a status of generation 2.
    fn check(generation: i64, reconciled: &str, ready: &str, expected: bool) {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
        let revision: IstioRevision = serde_json::from_value(json!({
            "metadata": {"name": "new", "generation": generation},
            "spec": {"version": "v1.29.1", "namespace": "istio-system"},
            "status": {"observedGeneration": 2, "conditions": [condition("Reconciled", reconciled), condition("Ready", ready)]},
        }))
        .unwrap();
        assert_eq!(
            is_serving(&revision),
            expected,
            "{generation} {reconciled} {ready}"
        );
    }

    #[test]
    fn a_revision_serves_only_when_reconciled_and_ready() {
        check(2, "True", "True", true);
        check(2, "False", "True", false);
        check(2, "Unknown", "True", false);
        check(2, "True", "False", false);
        check(3, "True", "True", false);
    }
}
