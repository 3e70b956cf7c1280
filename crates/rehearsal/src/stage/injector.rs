//! Every istiod's injector in one: takes webhook configurations as they come and go, answers for the Services they name as the istiod
//! behind each would. It marks pods, and adds no proxy: nothing here runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::names;
use mainstay_sim::State;
use mainstay_sim::context::{Destination, Reply};
use mainstay_sim::controllers::Controller;
use serde_json::{Value, json};

const CONFIGURATIONS: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// What every istiod's Service is called; a revision's name follows.
const SERVICE: &str = "istiod";
/// Where istiods inject.
const PATH: &str = "/inject";
/// Namespaces istiod never injects in.
const SYSTEM: [&str; 2] = ["kube-system", "kube-public"];

/// Answers for all istiods of a cluster.
#[derive(Debug, Default)]
pub struct Injectors {
    seen: u64,
    known: BTreeSet<(String, String, String, u16)>,
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
        if version == self.seen {
            return false;
        }
        self.seen = version;
        for to in destinations(state) {
            self.answer_for(state, &to);
        }
        false
    }
}

impl Injectors {
    fn answer_for(&mut self, state: &mut State, to: &Destination) {
        let Some(revision) = revision_of(to) else {
            return;
        };
        let Destination::Service {
            namespace,
            name,
            path,
            port,
        } = to
        else {
            return;
        };
        let place = (namespace.clone(), name.clone(), path.clone(), *port);
        if self.known.insert(place) {
            let handler = move |review: &Value| Reply::Answer(200, answer(review, &revision).to_string());
            state.hooks.handlers.set(to, Arc::new(Mutex::new(handler)));
        }
    }
}

fn destinations(state: &State) -> Vec<Destination> {
    let configurations = state.store.all(CONFIGURATIONS).map(|object| object.value());
    let hooks = configurations.flat_map(|object| {
        let hooks = object.get("webhooks").and_then(Value::as_array).cloned();
        hooks.unwrap_or_default()
    });
    hooks
        .map(|hook| Destination::parse(hook.get("clientConfig").unwrap_or(&Value::Null)))
        .collect()
}

/// The revision whose istiod is behind a Service; nothing if it is none.
#[must_use]
pub(crate) fn revision_of(to: &Destination) -> Option<String> {
    let Destination::Service { name, path, .. } = to else {
        return None;
    };
    let rest = name.strip_prefix(SERVICE).filter(|_| path.starts_with(PATH))?;
    match rest {
        "" => Some(names::DEFAULT_REVISION.to_owned()),
        rest => rest.strip_prefix('-').map(str::to_owned),
    }
}

fn answer(review: &Value, revision: &str) -> Value {
    let mut response = json!({
        "uid": review.pointer("/request/uid").cloned().unwrap_or_default(), "allowed": true,
    });
    let pod = review.pointer("/request/object").unwrap_or(&Value::Null);
    let namespace = review
        .pointer("/request/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if injects(pod, namespace)
        && let Value::Object(fields) = &mut response
    {
        let patch = STANDARD.encode(patch(pod, revision).to_string());
        fields.insert("patchType".into(), json!("JSONPatch"));
        fields.insert("patch".into(), json!(patch));
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// What istiod itself looks at once a webhook's selectors let a pod through.
#[must_use]
pub(crate) fn injects(pod: &Value, namespace: &str) -> bool {
    let says_no = |at: &str| {
        let said = pod.pointer(at).and_then(|map| map.get(names::INJECT_LABEL));
        said.and_then(Value::as_str) == Some("false")
    };
    let on_host = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    !on_host
        && !SYSTEM.contains(&namespace)
        && !says_no("/metadata/labels")
        && !says_no("/metadata/annotations")
}

fn patch(pod: &Value, revision: &str) -> Value {
    let mut patch = Vec::new();
    if pod.pointer("/metadata/annotations").is_none_or(Value::is_null) {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    let escaped = names::REVISION_LABEL.replace('~', "~0").replace('/', "~1");
    let place = format!("/metadata/annotations/{escaped}");
    patch.push(json!({"op": "add", "path": place, "value": revision}));
    Value::Array(patch)
}
