//! Sidecar injection: a controller that registers a handler for the Service or URL of every injection
//! webhook. The handler responds as the webhook's istiod does. It annotates pods with the revision but adds
//! no proxy, because no container runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::names;
use mainstay_sim::context::{Destination, WebhookCall, WebhookReply};
use mainstay_sim::controllers::Controller;
use mainstay_sim::{ReplyFuture, State, WebhookTransport};
use serde_json::{Value, json};

const CONFIGURATIONS: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// Name of istiod's Service. The Service of a revision other than the default one has the suffix
/// `-REVISION`.
const ISTIOD_SERVICE: &str = "istiod";
const INJECT_PATH: &str = "/inject";
/// Value of the label `app` on an injector's webhook configuration.
const INJECTOR_APP: &str = "sidecar-injector";
/// Namespaces in which istiod does not inject.
const SYSTEM_NAMESPACES: [&str; 2] = ["kube-system", "kube-public"];

const INTERCEPTION_MODE: &str = "sidecar.istio.io/interceptionMode";
const INTERCEPTION_MODES: [&str; 3] = ["REDIRECT", "TPROXY", "NONE"];

/// Webhook transport that admits every request unchanged, for webhooks that no server handles.
pub(crate) struct AdmitAll;

impl WebhookTransport for AdmitAll {
    fn call(&self, call: WebhookCall) -> ReplyFuture {
        let uid = call.body.pointer("/request/uid").cloned().unwrap_or_default();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": uid, "allowed": true}});
        Box::pin(std::future::ready(WebhookReply::Response(
            200,
            review.to_string(),
        )))
    }
}

/// Controller that injects on behalf of all istiods of a cluster.
#[derive(Debug, Default)]
pub struct Injectors {
    observed_version: u64,
    /// Revisions by the destination of the webhook.
    registered: BTreeMap<String, String>,
}

impl Controller for Injectors {
    fn name(&self) -> &'static str {
        "istiod"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let version = state
            .store
            .history(CONFIGURATIONS)
            .map_or(0, mainstay_sim::store::History::last_version);
        if version == self.observed_version {
            return false;
        }
        self.observed_version = version;
        for injector in injectors(state) {
            self.register(state, injector);
        }
        false
    }
}

/// An injection webhook and the revision of the istiod that serves it.
struct Injector {
    destination: Destination,
    revision: String,
}

impl Injectors {
    fn register(&mut self, state: &mut State, injector: Injector) {
        let Injector {
            destination,
            revision,
        } = injector;
        let key = format!("{destination:?}");
        if self.registered.insert(key, revision.clone()).as_ref() != Some(&revision) {
            let handler = move |review: &Value| {
                WebhookReply::Response(200, review_response(review, &revision).to_string())
            };
            state
                .webhooks
                .handlers
                .set(&destination, Arc::new(Mutex::new(handler)));
        }
    }
}

fn injectors(state: &State) -> Vec<Injector> {
    let mut configurations: Vec<Value> = state
        .store
        .all(CONFIGURATIONS)
        .map(|object| object.value().clone())
        .collect();
    // If several configurations have the same URL, the newest one determines the istiod.
    let created = |configuration: &Value| {
        let time = configuration.pointer("/metadata/creationTimestamp");
        time.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    configurations.sort_by_key(created);
    let injectors = configurations.into_iter().flat_map(|configuration| {
        let hooks = configuration.get("webhooks").and_then(Value::as_array);
        let hooks = hooks.cloned().unwrap_or_default().into_iter();
        let injectors = hooks.filter_map(|hook| {
            let destination = Destination::parse(hook.get("clientConfig").unwrap_or(&Value::Null));
            let revision = injector_revision(&configuration, &destination)?;
            Some(Injector {
                destination,
                revision,
            })
        });
        injectors.collect::<Vec<_>>()
    });
    injectors.collect()
}

/// Returns the revision of the istiod that serves a webhook, or `None` if the webhook does not inject
/// sidecars. The revision is derived from the webhook's Service if that belongs to an istiod, otherwise
/// (for example if the webhook has a URL) from the labels and the owner of its configuration.
#[must_use]
pub fn injector_revision(configuration: &Value, destination: &Destination) -> Option<String> {
    istiod_revision(destination).or_else(|| revision_from_labels(configuration))
}

/// Returns the revision in the labels of an injector's webhook configuration.
fn revision_from_labels(configuration: &Value) -> Option<String> {
    let metadata = configuration.get("metadata")?;
    let label = |key: &str| metadata.get("labels")?.get(key)?.as_str();
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let is_owned = owners
        .into_iter()
        .flatten()
        .any(|owner| owner.get("apiVersion").and_then(Value::as_str) == Some(names::API_VERSION));
    let is_injector = is_owned || label("app") == Some(INJECTOR_APP);
    label(names::REVISION_LABEL)
        .filter(|revision| is_injector && !revision.is_empty())
        .map(str::to_owned)
}

/// Returns the revision of the istiod with this Service, or `None` if the Service does not belong to an
/// istiod.
fn istiod_revision(destination: &Destination) -> Option<String> {
    let Destination::Service { name, path, .. } = destination else {
        return None;
    };
    let rest = name
        .strip_prefix(ISTIOD_SERVICE)
        .filter(|_| path.starts_with(INJECT_PATH))?;
    match rest {
        "" => Some(names::DEFAULT_REVISION.to_owned()),
        rest => rest.strip_prefix('-').map(str::to_owned),
    }
}

fn review_response(review: &Value, revision: &str) -> Value {
    let mut response = json!({
        "uid": review.pointer("/request/uid").cloned().unwrap_or_default(), "allowed": true,
    });
    let pod = review.pointer("/request/object").unwrap_or(&Value::Null);
    let namespace = review
        .pointer("/request/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if let Some(message) = invalid_mode(pod) {
        response = json!({"uid": response.get("uid"), "allowed": false, "status": {"message": message}});
    } else if is_injected(pod, namespace)
        && let Value::Object(fields) = &mut response
    {
        let patch = STANDARD.encode(patch(pod, revision).to_string());
        fields.insert("patchType".into(), json!("JSONPatch"));
        fields.insert("patch".into(), json!(patch));
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Returns istiod's error message if the pod has an unsupported interception mode.
fn invalid_mode(pod: &Value) -> Option<String> {
    let annotations = pod.pointer("/metadata/annotations")?;
    let mode = annotations.get(INTERCEPTION_MODE)?.as_str()?;
    let is_valid = INTERCEPTION_MODES.contains(&mode);
    (!is_valid).then(|| format!("invalid value '{mode}' for annotation '{INTERCEPTION_MODE}'"))
}

/// Whether istiod injects a pod that has matched the webhook's selectors.
fn is_injected(pod: &Value, namespace: &str) -> bool {
    let opts_out = |path: &str| {
        let value = pod.pointer(path).and_then(|map| map.get(names::INJECT_LABEL));
        value.and_then(Value::as_str) == Some("false")
    };
    let on_host_network = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    !on_host_network
        && !SYSTEM_NAMESPACES.contains(&namespace)
        && !opts_out("/metadata/labels")
        && !opts_out("/metadata/annotations")
}

fn patch(pod: &Value, revision: &str) -> Value {
    let mut operations = Vec::new();
    if pod.pointer("/metadata/annotations").is_none_or(Value::is_null) {
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    let escaped = names::REVISION_LABEL.replace('~', "~0").replace('/', "~1");
    let path = format!("/metadata/annotations/{escaped}");
    operations.push(json!({"op": "add", "path": path, "value": revision}));
    Value::Array(operations)
}
