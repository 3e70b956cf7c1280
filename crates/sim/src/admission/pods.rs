//! Defaults for new pods: service account and token volume, tolerations, priority.

use serde_json::{Value, json};

use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;

const PODS: Qualified<'static> = Qualified {
    group: "",
    name: "pods",
};
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn forbidden(pod: &Value, reason: &str) -> Status {
    Status::forbidden(PODS, tree::text(pod, &["metadata", "name"]), reason)
}

/// Sets the service account and mounts its token. Fails if the service account does not exist.
pub(super) fn set_service_account(state: &mut State, namespace: &str, pod: &mut Value) -> Result<()> {
    tree::set_default_text(pod, &["spec", "serviceAccountName"], "default");
    let name = tree::text(pod, &["spec", "serviceAccountName"]).to_owned();
    tree::set(pod, &["spec", "serviceAccount"], name.clone());
    let key = crate::object::key(namespace, &name);
    let Some(account) = state
        .store
        .get("serviceaccounts", &key)
        .map(|object| object.packed())
    else {
        let reason =
            format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        return Err(forbidden(pod, &reason));
    };
    if tree::list(pod, &["spec", "imagePullSecrets"]).is_empty()
        && !tree::list(&account, &["imagePullSecrets"]).is_empty()
    {
        tree::copy(
            &json!({"spec": {"imagePullSecrets": account.get("imagePullSecrets")}}),
            pod,
            &["spec", "imagePullSecrets"],
        );
    }
    let wanted = tree::get(pod, &["spec", "automountServiceAccountToken"])
        .or_else(|| account.get("automountServiceAccountToken"));
    if wanted != Some(&Value::Bool(false)) {
        mount_token(state, pod);
    }
    Ok(())
}

fn mount_token(state: &mut State, pod: &mut Value) {
    let has_token = |volume: &&Value| tree::text(volume, &["name"]).starts_with("kube-api-access-");
    let existing = tree::list(pod, &["spec", "volumes"])
        .iter()
        .find(has_token)
        .map(|volume| tree::text(volume, &["name"]).to_owned());
    let name = existing
        .clone()
        .unwrap_or_else(|| format!("kube-api-access-{}", state.random.suffix(5)));
    let mut needed = false;
    for kind in ["initContainers", "containers"] {
        for container in tree::list_mut(pod, &["spec", kind]).into_iter().flatten() {
            let mounted = tree::list(container, &["volumeMounts"])
                .iter()
                .any(|mount| tree::text(mount, &["mountPath"]) == TOKEN_PATH);
            if !mounted {
                let mut mounts = tree::list(container, &["volumeMounts"]).to_vec();
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
                tree::set(container, &["volumeMounts"], mounts);
                needed = true;
            }
        }
    }
    if needed && existing.is_none() {
        let mut volumes = tree::list(pod, &["spec", "volumes"]).to_vec();
        volumes.push(token_volume(&name));
        tree::set(pod, &["spec", "volumes"], volumes);
    }
}

fn token_volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}})
}

/// Adds tolerations of five minutes for nodes that are not ready or unreachable.
pub(super) fn add_tolerations(pod: &mut Value) {
    let mut all = tree::list(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = |one: &Value| {
            let (effect, have) = (tree::text(one, &["effect"]), tree::text(one, &["key"]));
            (have == key || have.is_empty()) && matches!(effect, "NoExecute" | "")
        };
        if !all.iter().any(tolerated) {
            all.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    tree::set(pod, &["spec", "tolerations"], all);
}

/// Sets the priority from the pod's priority class, or from the default class if it names none.
pub(super) fn set_priority(state: &State, pod: &mut Value) -> Result<()> {
    let name = tree::text(pod, &["spec", "priorityClassName"]).to_owned();
    let class = if name.is_empty() {
        default_priority_class(state)
    } else {
        find_priority_class(state, &name)
    };
    if class.is_none() && !name.is_empty() {
        return Err(forbidden(
            pod,
            &format!("no PriorityClass with name {name} was found"),
        ));
    }
    let class = class.unwrap_or_else(|| json!({"value": 0, "preemptionPolicy": "PreemptLowerPriority"}));
    let number = tree::int(&class, &["value"]).unwrap_or(0);
    let given = tree::int(pod, &["spec", "priority"]);
    if given.is_some_and(|given| given != number) {
        let reason = format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {number} from the given PriorityClass name",
            given.unwrap_or(0)
        );
        return Err(forbidden(pod, &reason));
    }
    if name.is_empty()
        && let Some(default) = tree::get(&class, &["metadata", "name"])
    {
        tree::set(pod, &["spec", "priorityClassName"], default.clone());
    }
    tree::set(pod, &["spec", "priority"], number);
    let policy = tree::text(&class, &["preemptionPolicy"]);
    tree::set_default(
        pod,
        &["spec", "preemptionPolicy"],
        if policy.is_empty() {
            "PreemptLowerPriority"
        } else {
            policy
        },
    );
    Ok(())
}

const PRIORITY_CLASSES: &str = "priorityclasses.scheduling.k8s.io";

fn find_priority_class(state: &State, name: &str) -> Option<Value> {
    match name {
        "system-cluster-critical" => Some(json!({"value": 2_000_000_000})),
        "system-node-critical" => Some(json!({"value": 2_000_001_000})),
        _ => state
            .store
            .get(PRIORITY_CLASSES, name)
            .map(|object| object.packed()),
    }
}

fn default_priority_class(state: &State) -> Option<Value> {
    let classes = state.store.all(PRIORITY_CLASSES).map(|object| object.packed());
    classes
        .filter(|class| tree::flag(class, &["globalDefault"]))
        .min_by_key(|class| tree::int(class, &["value"]))
}
