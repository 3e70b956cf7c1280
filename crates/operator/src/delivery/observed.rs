//! Extracts the fields that the planner needs from live objects, and builds the bodies of apply requests.

use mainstay_api::delivery::{DEPLOYMENT_LABEL, MANIFEST_HASH, REVISION_LABEL};
use mainstay_api::{ObjectMeta, OwnerReference};
use mainstay_cluster::compare::difference;
use mainstay_cluster::connect::MANAGER;
use mainstay_rollout::manifest::{Manifest, ObjectKey, Role};
use mainstay_rollout::snapshot::{Observed, Version};
use mainstay_rollout::traffic::{WEIGHTS, parse_weights};
use serde_json::{Value, json};

use super::names::ObjectType;
use crate::object::string_at;

fn string_in<'a>(object: &'a Value, map: &str, name: &str) -> Option<&'a str> {
    object.pointer(map)?.get(name)?.as_str()
}

fn u64_at(object: &Value, pointer: &str) -> u64 {
    object
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn u32_at(object: &Value, pointer: &str) -> u32 {
    u32::try_from(u64_at(object, pointer)).unwrap_or(u32::MAX)
}

/// Returns the version of an object with this metadata.
pub(crate) fn metadata_version(metadata: &ObjectMeta) -> Version {
    Version {
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
    }
}

/// Returns the version of an object in JSON form.
pub(crate) fn object_version(object: &Value) -> Version {
    Version {
        uid: string_at(object, "/metadata/uid").to_owned(),
        resource_version: string_at(object, "/metadata/resourceVersion").to_owned(),
    }
}

/// Returns the key of an object. The kind is a parameter because the items of a list do not contain it.
pub(crate) fn object_key(kind: &ObjectType, object: &Value) -> ObjectKey {
    ObjectKey {
        name: string_at(object, "/metadata/name").to_owned(),
        kind: kind.kind.clone(),
        namespace: string_at(object, "/metadata/namespace").to_owned(),
        api_version: kind.api_version.clone(),
    }
}

/// Returns the fields of an object that the planner needs. Does not detect drift.
pub(crate) fn observe(kind: &str, object: &Value) -> Observed {
    let label = |name| string_in(object, "/metadata/labels", name).map(str::to_owned);
    let mut observed = Observed {
        version: object_version(object),
        deployment: label(DEPLOYMENT_LABEL),
        revision: label(REVISION_LABEL),
        owners: owner_uids(object),
        hash: string_in(object, "/metadata/annotations", MANIFEST_HASH).map(str::to_owned),
        is_deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
        ..Observed::default()
    };
    match Role::for_kind(kind) {
        Role::Workload => observe_workload(object, &mut observed),
        Role::Route => {
            let weights = string_in(object, "/metadata/annotations", WEIGHTS).and_then(parse_weights);
            observed.weights = weights.unwrap_or_default();
            observed.is_accepted = kind != "HTTPRoute" || is_route_accepted(object);
        }
        Role::Support => {}
    }
    observed
}

fn owner_uids(object: &Value) -> Vec<String> {
    let references = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let uids = references.into_iter().flatten();
    uids.map(|reference| string_at(reference, "/uid").to_owned())
        .collect()
}

fn observe_workload(object: &Value, observed: &mut Observed) {
    let default = u32::from(object.pointer("/spec/replicas").is_none());
    observed.replicas = u32_at(object, "/spec/replicas").max(default);
    observed.available = u32_at(object, "/status/availableReplicas");
    observed.pods = u32_at(object, "/status/replicas");
    let is_current = u64_at(object, "/status/observedGeneration") >= u64_at(object, "/metadata/generation");
    if !is_current {
        // There may be pods that are not counted in the status yet.
        observed.pods = observed.pods.max(1);
    }
}

/// Whether an `HTTPRoute` has at least one parent in its status, and all of them accept the current
/// generation.
fn is_route_accepted(route: &Value) -> bool {
    let generation = u64_at(route, "/metadata/generation");
    let parents = route.pointer("/status/parents").and_then(Value::as_array);
    let parents = parents.map(Vec::as_slice).unwrap_or_default();
    let is_accepted = |parent: &Value| {
        let conditions = parent.get("conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| {
            string_at(condition, "/type") == "Accepted"
                && string_at(condition, "/status") == "True"
                && u64_at(condition, "/observedGeneration") >= generation
        })
    };
    !parents.is_empty() && parents.iter().all(is_accepted)
}

/// Returns the body of an apply request, without a precondition.
pub(crate) fn apply_body(
    manifest: &Manifest,
    owner: Option<&OwnerReference>,
    replicas: Option<u64>,
) -> Value {
    let mut body = manifest.object.clone();
    if let (Some(owner), Some(Value::Object(metadata))) = (owner, body.get_mut("metadata")) {
        metadata.insert("ownerReferences".into(), json!([owner]));
    }
    if let (Some(replicas), Some(Value::Object(spec))) = (replicas, body.get_mut("spec")) {
        spec.insert("replicas".into(), json!(replicas));
    }
    body
}

/// Returns the replicas of a workload if our last apply set them and no other client has changed them
/// since. An apply without them would remove the field, which resets it to the default of 1.
pub(crate) fn applied_replicas(live: &Value) -> Option<u64> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let is_ours = |entry: &&Value| {
        string_at(entry, "/manager") == MANAGER
            && string_at(entry, "/operation") == "Apply"
            && string_at(entry, "/subresource").is_empty()
    };
    let own = entries.iter().find(is_ours)?;
    own.pointer("/fieldsV1/f:spec/f:replicas")?;
    live.pointer("/spec/replicas")?.as_u64()
}

/// Whether another client changed a field that we applied.
pub(crate) fn is_drifted(manifest: &Manifest, owner: Option<&OwnerReference>, live: &Value) -> bool {
    let body = apply_body(manifest, owner, applied_replicas(live));
    difference(&body, live, MANAGER).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_that_was_not_observed_yet_may_have_pods() {
        let object = json!({
            "metadata": {
                "generation": 2, "labels": {DEPLOYMENT_LABEL: "shop"}, "ownerReferences": [{"uid": "owner"}],
            },
            "spec": {"replicas": 0},
            "status": {"observedGeneration": 1, "availableReplicas": 0},
        });
        let observed = observe("Deployment", &object);
        assert_eq!((observed.replicas, observed.pods, observed.available), (0, 1, 0));
        assert_eq!(observed.deployment.as_deref(), Some("shop"));
        assert_eq!(observed.owners, ["owner"]);
    }

    #[test]
    fn a_route_is_accepted_for_its_current_generation_only() {
        let route = |generation: u64, status: &str| {
            json!({"metadata": {"generation": 3}, "status": {"parents": [{"conditions": [
                {"type": "Accepted", "status": status, "observedGeneration": generation},
            ]}]}})
        };
        let is_accepted = |object: &Value| observe("HTTPRoute", object).is_accepted;
        assert!(is_accepted(&route(3, "True")));
        assert!(!is_accepted(&route(2, "True")));
        assert!(!is_accepted(&route(3, "False")));
        assert!(!is_accepted(&json!({"metadata": {}})));
        assert!(observe("VirtualService", &json!({"metadata": {}})).is_accepted);
    }

    #[test]
    fn replicas_are_applied_again_only_while_they_are_ours() {
        let live = |operation: &str| {
            json!({"metadata": {"managedFields": [
                {"manager": MANAGER, "operation": operation, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            ]}, "spec": {"replicas": 4}})
        };
        assert_eq!(applied_replicas(&live("Apply")), Some(4));
        assert_eq!(applied_replicas(&live("Update")), None);
    }
}
