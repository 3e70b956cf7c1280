//! Objects for scenarios.

use mainstay_catalog::Catalog;
use mainstay_cluster::access::{Rule, granted_rules, namespace_rules, operator_rules};
use serde_json::{Map, Value, json};

/// The newest version that scenarios install.
pub const NEW: &str = "v1.29.1";
/// The version before [`NEW`].
pub const OLD: &str = "v1.28.2";

/// Returns our definitions with the versions of this build.
pub fn definitions() -> Vec<Value> {
    let catalog = Catalog::embedded().unwrap();
    mainstay_cluster::definitions::own_definitions(&catalog).unwrap()
}

/// Returns the operator's roles, as in its chart, bound to the user `name`.
pub fn roles(name: &str, namespace: &str) -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let rules = |rules: &[Rule]| -> Vec<Value> { rules.iter().map(rule).collect() };
    let everywhere = [operator_rules(), granted_rules()].concat();
    let subjects = json!([{"kind": "User", "apiGroup": group, "name": name}]);
    let object = |kind: &str, rest: Value| {
        let role_namespace = if kind.starts_with("Cluster") {
            ""
        } else {
            namespace
        };
        let mut metadata = json!({"name": "scenario-operator"});
        if !role_namespace.is_empty() {
            metadata["namespace"] = role_namespace.into();
        }
        let base = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata});
        merged(base, rest)
    };
    let bound = |kind: &str| json!({"subjects": subjects, "roleRef": {"apiGroup": group, "kind": kind, "name": "scenario-operator"}});
    vec![
        object("ClusterRole", json!({"rules": rules(&everywhere)})),
        object("ClusterRoleBinding", bound("ClusterRole")),
        object("Role", json!({"rules": rules(&namespace_rules())})),
        object("RoleBinding", bound("Role")),
    ]
}

fn rule(rule: &Rule) -> Value {
    let mut value = json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs});
    if !rule.names.is_empty() {
        value["resourceNames"] = json!(rule.names);
    }
    value
}

/// Parses `a=b c=d` into a map.
pub fn pairs(text: &str) -> Map<String, Value> {
    text.split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

#[allow(clippy::needless_pass_by_value, reason = "specs are made where they are used")]
fn custom_resource(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "sailoperator.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Merges `extra` into `base` recursively.
pub fn merged(mut base: Value, extra: Value) -> Value {
    match (&mut base, extra) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                let old = into.remove(&key).unwrap_or(Value::Null);
                into.insert(key, merged(old, value));
            }
            base
        }
        (_, extra) => extra,
    }
}

/// Returns an Istio in `istio-system`. `extra` is merged into its spec.
pub fn istio(name: &str, version: &str, extra: Value) -> Value {
    let spec = json!({"version": version, "namespace": "istio-system"});
    custom_resource("Istio", name, merged(spec, extra))
}

/// Returns an Istio with the strategy `RevisionBased` and these tags.
pub fn revision_based(name: &str, version: &str, grace: u64, tags: &[&str]) -> Value {
    let strategy = json!({
        "type": "RevisionBased",
        "inactiveRevisionDeletionGracePeriodSeconds": grace,
        "revisionTags": tags,
    });
    istio(name, version, json!({"updateStrategy": strategy}))
}

/// Returns a revision with the required values and without an Istio. `extra` is merged into its spec.
pub fn revision(name: &str, version: &str, namespace: &str, extra: Value) -> Value {
    let own = if name == "default" { "" } else { name };
    let spec = json!({
        "version": version,
        "namespace": namespace,
        "values": {"global": {"istioNamespace": namespace}, "revision": own},
    });
    custom_resource("IstioRevision", name, merged(spec, extra))
}

pub fn tag(name: &str, kind: &str, target: &str) -> Value {
    custom_resource(
        "IstioRevisionTag",
        name,
        json!({"targetRef": {"kind": kind, "name": target}}),
    )
}

pub fn cni(extra: Value) -> Value {
    let spec = json!({"version": NEW, "namespace": "istio-cni"});
    custom_resource("IstioCNI", "default", merged(spec, extra))
}

pub fn ztunnel(extra: Value) -> Value {
    let spec = json!({"version": NEW, "namespace": "ztunnel"});
    custom_resource("ZTunnel", "default", merged(spec, extra))
}

pub fn namespace(name: &str, labels: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": pairs(labels)}})
}

/// Returns a pod that never runs. Only its labels and annotations are relevant.
pub fn pod(namespace: &str, name: &str, labels: &str, annotations: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": pairs(labels), "annotations": pairs(annotations)},
        "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
    })
}

/// Returns a Deployment whose pods have these labels and annotations.
pub fn deployment(namespace: &str, name: &str, labels: &str, annotations: &str) -> Value {
    let mut labels = pairs(labels);
    labels.insert("app".into(), name.into());
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels, "annotations": pairs(annotations)},
                "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
            },
        },
    })
}
