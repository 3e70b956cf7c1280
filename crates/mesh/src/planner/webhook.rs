//! Plans webhook configurations of remote control planes: probes when they are due, and annotations when
//! the result has changed.

use jiff::SignedDuration;
use mainstay_api::{ObjectKind, Reason, names};

use super::builder::PlanBuilder;
use crate::plan::{Action, Plan, ProbeRequest, Requeue};
use crate::snapshot::{ProbeResult, Webhook};
use crate::{Snapshot, Subject};

const DEFAULT_PERIOD_SECONDS: u32 = 3;
const DEFAULT_TIMEOUT_SECONDS: u32 = 5;
const DEFAULT_PORT: u16 = 443;

/// Upstream's messages about webhooks that cannot be probed.
const NO_WEBHOOKS: &str = "mutatingwebhookconfiguration contains no webhooks";
const NO_SERVICE: &str = "missing webhooks[].clientConfig.service";
const NO_BUNDLE: &str =
    "webhooks[].clientConfig.caBundle hasn't been set; check if the remote istiod can access this cluster";

/// Returns the plan of a webhook configuration. The plan is empty unless a remote revision owns the
/// configuration.
pub(super) fn plan(snapshot: &Snapshot, webhook: &Webhook) -> Plan {
    let subject = Subject::Webhook(webhook.metadata.name.clone());
    let mut builder = PlanBuilder::for_subject(snapshot, subject, &webhook.metadata);
    if is_remote(snapshot, webhook) && !webhook.metadata.is_deleting() {
        match probe_request(webhook) {
            Ok(request) => plan_probe(snapshot, webhook, request, &mut builder),
            Err(reason) => plan_annotation(webhook, false, reason, &mut builder),
        }
    }
    builder.plan()
}

fn is_remote(snapshot: &Snapshot, webhook: &Webhook) -> bool {
    let owners = webhook.metadata.owner_references.iter();
    let mut owners = owners
        .filter(|owner| {
            owner.api_version == names::API_VERSION && owner.kind == ObjectKind::IstioRevision.name()
        })
        .filter_map(|owner| snapshot.revisions().get(&owner.name));
    owners.any(|revision| revision.spec.is_remote())
}

fn probe_request(webhook: &Webhook) -> Result<ProbeRequest, &'static str> {
    let client = webhook.client.as_ref().ok_or(NO_WEBHOOKS)?;
    let service = client.service.as_ref().ok_or(NO_SERVICE)?;
    if client.ca_bundle.is_empty() {
        return Err(NO_BUNDLE);
    }
    let port = service.port.unwrap_or(DEFAULT_PORT);
    Ok(ProbeRequest {
        webhook: webhook.metadata.name.clone(),
        url: format!("https://{}.{}.svc:{port}/ready", service.name, service.namespace),
        ca_bundle: client.ca_bundle.clone(),
        timeout_seconds: annotated_seconds(webhook, names::PROBE_TIMEOUT, DEFAULT_TIMEOUT_SECONDS),
    })
}

/// Returns a number of seconds from an annotation, or `default` if it is missing or invalid. At least 1.
fn annotated_seconds(webhook: &Webhook, annotation: &str, default: u32) -> u32 {
    let set = webhook
        .metadata
        .annotations
        .get(annotation)
        .and_then(|text| text.parse().ok());
    set.unwrap_or(default).max(1)
}

fn plan_probe(snapshot: &Snapshot, webhook: &Webhook, request: ProbeRequest, builder: &mut PlanBuilder<'_>) {
    let period = SignedDuration::from_secs(i64::from(annotated_seconds(
        webhook,
        names::PROBE_PERIOD,
        DEFAULT_PERIOD_SECONDS,
    )));
    let last = snapshot.probe(&webhook.metadata.name);
    let due = last.and_then(|last| last.at.checked_add(period).ok());
    if let Some(ProbeResult { ready, reason, .. }) = last {
        plan_annotation(webhook, *ready, reason, builder);
    }
    match due {
        Some(due) if due > snapshot.now => builder.requeue(Requeue::At(due)),
        _ => builder.add(Action::Probe(request), Reason::ProbeDue),
    }
}

fn plan_annotation(webhook: &Webhook, ready: bool, reason: &str, builder: &mut PlanBuilder<'_>) {
    let annotations = &webhook.metadata.annotations;
    let written = |key: &str| annotations.get(key).map(String::as_str);
    let status = if ready { "true" } else { "false" };
    if written(names::PROBE_STATUS) == Some(status) && written(names::PROBE_REASON) == Some(reason) {
        return;
    }
    let action = Action::AnnotateWebhook {
        object: builder.object().clone(),
        ready,
        reason: reason.to_owned(),
    };
    builder.add(action, Reason::ProbeChanged);
}
