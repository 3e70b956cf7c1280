//! Whether a control plane is ready: takes the facts about its Deployment, or about its webhook if it runs elsewhere.

use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason, RevisionSpec, names};

use super::condition::unknown;
use crate::Snapshot;
use crate::snapshot::Source;

/// The `Ready` condition of a revision.
pub(super) fn ready(snapshot: &Snapshot, spec: &RevisionSpec) -> Condition {
    let (source, found) = if spec.is_remote() {
        (Source::Webhooks, remote(snapshot, spec))
    } else {
        (Source::Deployments, local(snapshot, spec))
    };
    if let Err(error) = snapshot.readable(source) {
        let message = format!("failed to get readiness: {error}");
        return unknown(ConditionType::Ready, Reason::ReadinessCheckFailed, message);
    }
    let (status, reason, message) = match found {
        Ok(()) => (ConditionStatus::True, Reason::Ready, String::new()),
        Err((reason, message)) => (ConditionStatus::False, reason, message),
    };
    Condition::new(ConditionType::Ready, status, reason, message)
}

type Found = Result<(), (Reason, String)>;

fn local(snapshot: &Snapshot, spec: &RevisionSpec) -> Found {
    let not_ready = |message: &str| Err((Reason::IstiodNotReady, message.to_owned()));
    match snapshot.deployment(&spec.namespace, &names::istiod(spec.revision())) {
        None => not_ready("istiod Deployment not found"),
        Some(istiod) if istiod.replicas == 0 => not_ready("istiod Deployment is scaled to zero replicas"),
        Some(istiod) if istiod.ready < istiod.replicas => not_ready("not all istiod pods are ready"),
        Some(_) => Ok(()),
    }
}

fn remote(snapshot: &Snapshot, spec: &RevisionSpec) -> Found {
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
