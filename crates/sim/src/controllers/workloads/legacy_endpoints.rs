//! Endpoints objects of Services, the predecessors of endpoint slices.

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::endpoints::target_port;
use super::pod::Pod;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("endpoint-controller");
const ENDPOINTS: GroupResource = GroupResource::new("", "endpoints");
const TABLE: &str = "endpoints";
/// Maximum number of addresses. Additional addresses are omitted.
const MAX_ADDRESSES: usize = 1000;
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Writes the Endpoints of a Service if they differ.
pub(super) fn reconcile(state: &mut State, service: &Value, pods: &[&Pod], publish: bool) -> Result<()> {
    let (namespace, name) = (
        tree::text(service, &["metadata", "namespace"]),
        tree::text(service, &["metadata", "name"]),
    );
    let mut desired = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": name, "labels": labels(service)},
    });
    let subsets = subsets(service, pods, publish);
    if !subsets.is_empty() {
        tree::set(&mut desired, &["subsets"], subsets);
    }
    if pods.len() > MAX_ADDRESSES {
        tree::set(
            &mut desired,
            &["metadata", "annotations", OVER_CAPACITY],
            "truncated",
        );
    }
    let key = crate::object::key(namespace, name);
    let Some((_, old)) = actor::load(state, TABLE, &key) else {
        set_trigger_time(state, &mut desired);
        return ACTOR.create(state, ENDPOINTS, namespace, desired).map(drop);
    };
    let mut new = old.clone();
    for path in [
        &["subsets"][..],
        &["metadata", "labels"],
        &["metadata", "annotations", OVER_CAPACITY],
    ] {
        tree::copy(&desired, &mut new, path);
    }
    if new == old {
        return Ok(());
    }
    set_trigger_time(state, &mut new);
    ACTOR.update(state, ENDPOINTS, &new, "").map(drop)
}

/// Deletes the Endpoints of a deleted Service.
pub(super) fn remove(state: &mut State, key: &str) -> Result<()> {
    match actor::load(state, TABLE, key) {
        Some((object, _)) => ACTOR.delete(state, ENDPOINTS, &object),
        None => Ok(()),
    }
}

/// Records the time of the change in an annotation.
fn set_trigger_time(state: &State, endpoints: &mut Value) {
    let now = state.now().rfc3339();
    tree::set(endpoints, &["metadata", "annotations", TRIGGER_TIME], now);
}

fn labels(service: &Value) -> Value {
    let service_labels = tree::get(service, &["metadata", "labels"]).filter(|labels| labels.is_object());
    let mut labels = service_labels.cloned().unwrap_or_else(|| json!({}));
    if tree::text(service, &["spec", "clusterIP"]) == "None" {
        tree::set(&mut labels, &["service.kubernetes.io/headless"], "");
    }
    tree::set(&mut labels, &[MANAGED_BY], "endpoint-controller");
    labels
}

/// Addresses with the same ports.
#[derive(Default)]
struct Subset {
    ports: Vec<Value>,
    ready: Vec<Value>,
    unready: Vec<Value>,
}

fn subsets(service: &Value, pods: &[&Pod], publish: bool) -> Vec<Value> {
    let mut subsets: Vec<Subset> = Vec::new();
    for pod in pods.iter().take(MAX_ADDRESSES) {
        if pod.deleting() && !publish {
            continue;
        }
        let ports = ports(service, &pod.object.packed());
        let is_headless = tree::text(service, &["spec", "clusterIP"]) == "None";
        if ports.is_empty() && !(is_headless && tree::list(service, &["spec", "ports"]).is_empty()) {
            continue;
        }
        let known = subsets.iter().position(|subset| subset.ports == ports);
        let at = known.unwrap_or_else(|| {
            subsets.push(Subset {
                ports,
                ..Subset::default()
            });
            subsets.len() - 1
        });
        if let Some(subset) = subsets.get_mut(at) {
            let is_ready = publish || pod.ready;
            let list = if is_ready {
                &mut subset.ready
            } else {
                &mut subset.unready
            };
            list.push(address(pod));
        }
    }
    subsets.into_iter().map(Subset::into_value).collect()
}

impl Subset {
    fn into_value(mut self) -> Value {
        let by_address = |address: &Value| tree::text(address, &["ip"]).to_owned();
        self.ready.sort_by_key(by_address);
        self.unready.sort_by_key(by_address);
        let mut subset = json!({});
        for (field, list) in [
            ("addresses", self.ready),
            ("notReadyAddresses", self.unready),
            ("ports", self.ports),
        ] {
            if !list.is_empty() {
                tree::set(&mut subset, &[field], list);
            }
        }
        subset
    }
}

fn address(pod: &Pod) -> Value {
    let meta = pod.meta();
    json!({
        "ip": &*pod.ip, "nodeName": &*pod.node,
        "targetRef": {"kind": "Pod", "namespace": &*meta.namespace, "name": &*meta.name, "uid": &*meta.uid},
    })
}

fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let mut ports: Vec<Value> = tree::list(service, &["spec", "ports"])
        .iter()
        .filter_map(|port| {
            let mut endpoint_port =
                json!({"port": target_port(port, pod)?, "protocol": tree::text(port, &["protocol"])});
            for field in ["name", "appProtocol"] {
                let text = tree::text(port, &[field]);
                if !text.is_empty() {
                    tree::set(&mut endpoint_port, &[field], text);
                }
            }
            Some(endpoint_port)
        })
        .collect();
    ports.sort_by_key(|port| tree::text(port, &["name"]).to_owned());
    ports
}
