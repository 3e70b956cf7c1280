//! Controller for `EndpointSlices`: maintains the slices of a Service, with up to 100 addresses each.

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::{Index, selector_hint};
use super::pod::Pod;
use super::{RequeueAt, SERVICES, legacy_endpoints};
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("endpointslice-controller");
const SLICES: GroupResource = GroupResource::new("discovery.k8s.io", "endpointslices");
const TABLE: &str = "endpointslices.discovery.k8s.io";
/// Maximum number of addresses per slice.
const MAX_ADDRESSES: usize = 100;

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, service)) = actor::load(state, SERVICES, key) else {
        legacy_endpoints::remove(state, key)?;
        return Ok(None);
    };
    let has_selector = tree::map(&service, &["spec", "selector"]).is_some_and(|map| !map.is_empty());
    if !has_selector || object.meta().deleting || tree::text(&service, &["spec", "type"]) == "ExternalName" {
        return Ok(None);
    }
    let selector = LabelSelector::from_map(tree::get(&service, &["spec", "selector"]));
    let pods = index.pods_matching(
        &object.meta().namespace,
        selector_hint(SERVICES, &service),
        &selector,
    );
    let publish = tree::flag(&service, &["spec", "publishNotReadyAddresses"]);
    let endpoint_pods: Vec<&Pod> = pods
        .into_iter()
        .filter(|pod| !pod.ip.is_empty() && !pod.node.is_empty() && !pod.finished())
        .collect();
    let mut slices: Vec<Value> = endpoint_pods
        .chunks(MAX_ADDRESSES)
        .map(|pods| slice(&service, pods, publish))
        .collect();
    if slices.is_empty() {
        slices.push(slice(&service, &[], publish));
    }
    reconcile(state, &service, slices)?;
    legacy_endpoints::reconcile(state, &service, &endpoint_pods, publish)?;
    Ok(None)
}

fn slice(service: &Value, pods: &[&Pod], publish: bool) -> Value {
    let name = tree::text(service, &["metadata", "name"]);
    let mut labels = tree::get(service, &["metadata", "labels"])
        .cloned()
        .unwrap_or_else(|| json!({}));
    tree::set(&mut labels, &["kubernetes.io/service-name"], name);
    tree::set(
        &mut labels,
        &["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io",
    );
    if tree::text(service, &["spec", "clusterIP"]) == "None" {
        tree::set(&mut labels, &["service.kubernetes.io/headless"], "");
    }
    let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(pod, publish)).collect();
    // Named ports are resolved with the first pod. All pods are assumed to have the same ports.
    let first = pods.first().map(|pod| pod.object.packed());
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "generateName": format!("{name}-"), "labels": labels,
            "ownerReferences": [actor::controller_reference("v1", "Service", service)],
        },
        "endpoints": endpoints, "ports": ports(service, first.as_ref()),
    })
}

fn endpoint(pod: &Pod, publish: bool) -> Value {
    let meta = pod.meta();
    json!({
        "addresses": [&*pod.ip],
        "conditions": {
            "ready": publish || (pod.ready && !pod.deleting()), "serving": pod.ready || publish, "terminating": pod.deleting(),
        },
        "nodeName": &*pod.node,
        "targetRef": {"kind": "Pod", "namespace": &*meta.namespace, "name": &*meta.name, "uid": &*meta.uid},
    })
}

/// Returns the target ports of the Service, or null if there is no pod to resolve them with.
fn ports(service: &Value, pod: Option<&Value>) -> Value {
    let Some(pod) = pod else {
        return Value::Null;
    };
    let ports: Vec<Value> = tree::list(service, &["spec", "ports"])
        .iter()
        .filter_map(|port| {
            let (name, protocol) = (tree::text(port, &["name"]), tree::text(port, &["protocol"]));
            let target = target_port(port, pod)?;
            let mut endpoint_port = json!({"name": name, "port": target, "protocol": protocol});
            if let Some(application) = port.get("appProtocol") {
                tree::set(&mut endpoint_port, &["appProtocol"], application.clone());
            }
            Some(endpoint_port)
        })
        .collect();
    ports.into()
}

/// Returns the port of a pod that a port of a Service refers to.
pub(super) fn target_port(port: &Value, pod: &Value) -> Option<i64> {
    match port.get("targetPort") {
        Some(Value::String(name)) => find_named_port(pod, name, tree::text(port, &["protocol"])),
        Some(Value::Number(number)) => number.as_i64(),
        _ => tree::int(port, &["port"]),
    }
}

fn find_named_port(pod: &Value, name: &str, protocol: &str) -> Option<i64> {
    tree::list(pod, &["spec", "containers"])
        .iter()
        .flat_map(|container| tree::list(container, &["ports"]))
        .find(|port| tree::text(port, &["name"]) == name && tree::text(port, &["protocol"]) == protocol)
        .and_then(|port| tree::int(port, &["containerPort"]))
}

/// Creates, updates and deletes slices to match `desired`. Existing slices are updated rather than replaced.
fn reconcile(state: &mut State, service: &Value, desired: Vec<Value>) -> Result<()> {
    let uid = tree::text(service, &["metadata", "uid"]);
    let keys: Vec<Box<str>> = state
        .store
        .dependents(uid)
        .filter(|location| &*location.table == TABLE)
        .map(|location| location.key.clone())
        .collect();
    let mut existing = keys
        .iter()
        .filter_map(|key| actor::load(state, TABLE, key))
        .collect::<Vec<_>>()
        .into_iter();
    let namespace = tree::text(service, &["metadata", "namespace"]);
    for slice in desired {
        let Some((_, old)) = existing.next() else {
            ACTOR.create(state, SLICES, namespace, slice)?;
            continue;
        };
        let mut new = old.clone();
        for path in [&["endpoints"][..], &["ports"], &["metadata", "labels"]] {
            tree::copy(&slice, &mut new, path);
        }
        if new != old {
            ACTOR.update(state, SLICES, &new, "")?;
        }
    }
    for (object, _) in existing {
        ACTOR.delete(state, SLICES, &object)?;
    }
    Ok(())
}
