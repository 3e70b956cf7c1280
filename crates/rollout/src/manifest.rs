//! Objects of a revision in the form in which they are applied: named, labeled and hashed per revision.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use mainstay_api::delivery::{
    APPLICATION_LABEL, ApplicationRevision, COMPONENT_LABEL, DEPLOYMENT_LABEL, MANIFEST_HASH, REVISION_LABEL,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::RenderError;
use crate::names::{label_value, object_name, service_name, shorten};

/// Key of an object in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Name of the object. The first field, so that comparisons usually end here.
    pub name: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Group and version.
    pub api_version: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Role of an object in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An object that runs pods and has `spec.replicas`.
    Workload,
    /// An object that routes requests to Services.
    Route,
    /// Any other object: Services, `ConfigMap`s, …
    Support,
}

impl Role {
    /// Returns the role of a kind.
    #[must_use]
    pub fn for_kind(kind: &str) -> Self {
        match kind {
            "Deployment" | "StatefulSet" | "ReplicaSet" => Self::Workload,
            "VirtualService" | "HTTPRoute" | "Ingress" => Self::Route,
            _ => Self::Support,
        }
    }
}

/// An object to apply. Contains no replicas, because they are part of the action.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Key of the object.
    pub key: ObjectKey,
    /// Role of the object in a rollout.
    pub role: Role,
    /// The object, including an annotation with its hash.
    pub object: Value,
    /// Hash of the object.
    pub hash: String,
}

impl Manifest {
    /// Creates a manifest. Sets the hash annotation and removes the replicas of a workload.
    #[must_use]
    pub fn new(mut object: Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let key = ObjectKey {
            kind: text("/kind"),
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            api_version: text("/apiVersion"),
        };
        let role = Role::for_kind(&key.kind);
        if role == Role::Workload
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.remove("replicas");
        }
        let hash = hash_value(&object);
        insert_at(
            &mut object,
            &["metadata", "annotations"],
            MANIFEST_HASH,
            json!(hash),
        );
        Self {
            key,
            role,
            object,
            hash,
        }
    }
}

/// Returns the first 16 hexadecimal digits of the SHA-256 of the JSON text.
#[must_use]
pub fn hash_value(value: &Value) -> String {
    hash_text(&value.to_string())
}

/// Returns the first 16 hexadecimal digits of the SHA-256 of a text.
#[must_use]
pub fn hash_text(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.iter().take(8);
    let number = first.fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:016x}")
}

/// Values of the labels of a component's objects and pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the deployment.
    pub deployment: String,
    /// Namespace of the deployment.
    pub namespace: String,
    /// Name of the Application.
    pub application: String,
    /// Name of the revision.
    pub revision: String,
}

impl Identity {
    /// Returns the labels of a component's objects and pods.
    #[must_use]
    pub fn labels(&self, component: &str) -> BTreeMap<String, String> {
        let mut labels = self.selector(component);
        labels.insert(APPLICATION_LABEL.to_owned(), label_value(&self.application));
        labels
    }

    /// Returns the labels that select the pods of a component in this revision only.
    #[must_use]
    pub fn selector(&self, component: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            (DEPLOYMENT_LABEL.to_owned(), label_value(&self.deployment)),
            (REVISION_LABEL.to_owned(), label_value(&self.revision)),
            (COMPONENT_LABEL.to_owned(), label_value(component)),
        ])
    }
}

/// A rendered revision, ready to be applied in any cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedRevision {
    /// Objects that do not run pods, in the order in which they are applied before the workloads.
    pub support: Vec<Arc<Manifest>>,
    /// Objects that run pods. Their replicas are not set.
    pub workloads: Vec<Arc<Manifest>>,
    /// Largest number of replicas in the rendered manifests of a component.
    pub rendered_replicas: u32,
    /// Names of the components.
    pub components: BTreeSet<String>,
    /// Names of the Services by component.
    pub services: BTreeMap<String, String>,
}

/// Service ports by component.
pub type ServicePorts = BTreeMap<String, BTreeSet<u16>>;

/// Renders the objects of a revision for a deployment, including a Service for each component in `ports`.
pub fn prepare_revision(
    identity: &Identity,
    revision: &ApplicationRevision,
    ports: &ServicePorts,
) -> Result<PreparedRevision, RenderError> {
    let components = &revision.spec.components;
    let mut prepared = PreparedRevision {
        support: Vec::new(),
        workloads: Vec::new(),
        rendered_replicas: 1,
        components: components
            .iter()
            .map(|component| component.name.clone())
            .collect(),
        services: BTreeMap::new(),
    };
    for component in components {
        let renamed = rename_manifests(identity, &component.name, &component.manifests)?;
        for object in &renamed {
            let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64);
            let replicas = replicas.and_then(|count| u32::try_from(count).ok());
            prepared.rendered_replicas = prepared.rendered_replicas.max(replicas.unwrap_or_default());
        }
        let service = service_name(&identity.revision, &component.name, components.len());
        if let Some(ports) = ports.get(&component.name) {
            let object = service_object(identity, &component.name, &service, ports, &renamed);
            prepared.support.push(Arc::new(Manifest::new(object)));
        }
        prepared.services.insert(component.name.clone(), service);
        for object in renamed {
            let manifest = Arc::new(Manifest::new(object));
            match manifest.role {
                Role::Workload => prepared.workloads.push(manifest),
                _ => prepared.support.push(manifest),
            }
        }
    }
    Ok(prepared)
}

/// Cluster-scoped kinds that applications may try to contain.
const CLUSTER_SCOPED: &[&str] = &[
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "GatewayClass",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Renames all manifests of a component for the revision, and updates the references between them.
fn rename_manifests(
    identity: &Identity,
    component: &str,
    manifests: &[Value],
) -> Result<Vec<Value>, RenderError> {
    let mut names: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut has_workload = false;
    for (index, manifest) in manifests.iter().enumerate() {
        let field = |pointer: &str, field: &'static str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .ok_or_else(|| RenderError::MissingField {
                    component: component.to_owned(),
                    index,
                    field,
                })
        };
        field("/apiVersion", "apiVersion")?;
        let kind = field("/kind", "kind")?;
        let name = field("/metadata/name", "metadata.name")?;
        if CLUSTER_SCOPED.contains(&kind) {
            return Err(RenderError::ClusterScoped {
                component: component.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
            });
        }
        let base = object_name(&identity.revision, component);
        let is_main = Role::for_kind(kind) == Role::Workload && !has_workload;
        has_workload |= is_main;
        let new = if is_main {
            base
        } else {
            shorten(&format!("{base}-{name}"))
        };
        names.insert((kind.to_owned(), name.to_owned()), new);
    }
    let renamed = manifests.iter().map(|manifest| {
        let mut object = manifest.clone();
        relabel(&mut object, identity, component, &names);
        object
    });
    Ok(renamed.collect())
}

fn relabel(
    object: &mut Value,
    identity: &Identity,
    component: &str,
    names: &BTreeMap<(String, String), String>,
) {
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let key = (text(object, "/kind"), text(object, "/metadata/name"));
    if let Some(name) = names.get(&key) {
        insert_at(object, &["metadata"], "name", json!(name));
    }
    insert_at(object, &["metadata"], "namespace", json!(identity.namespace));
    for (label, value) in identity.labels(component) {
        insert_at(object, &["metadata", "labels"], &label, json!(value));
        if object.pointer("/spec/template").is_some() {
            insert_at(
                object,
                &["spec", "template", "metadata", "labels"],
                &label,
                json!(value),
            );
        }
    }
    let selector: &[&str] = match key.0.as_str() {
        "Service" => &["spec", "selector"],
        "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" => &["spec", "selector", "matchLabels"],
        _ => &[],
    };
    if !selector.is_empty() {
        for (label, value) in identity.selector(component) {
            insert_at(object, selector, &label, json!(value));
        }
    }
    rename_references(object, names);
}

/// Fields that refer to an object: owning field, field with the name, kind of the object.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("configMap", "name", "ConfigMap"),
    ("configMapRef", "name", "ConfigMap"),
    ("configMapKeyRef", "name", "ConfigMap"),
    ("secret", "secretName", "Secret"),
    ("secret", "name", "Secret"),
    ("secretRef", "name", "Secret"),
    ("secretKeyRef", "name", "Secret"),
    ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
    ("scaleTargetRef", "name", "Deployment"),
    ("spec", "serviceAccountName", "ServiceAccount"),
    ("spec", "serviceName", "Service"),
];

/// Maximum depth of the search for references. Required, because rendered manifests are untrusted.
const MAX_DEPTH: usize = 32;

fn rename_references(object: &mut Value, names: &BTreeMap<(String, String), String>) {
    rename_in_value(object, "", names, MAX_DEPTH);
}

fn rename_in_value(value: &mut Value, field: &str, names: &BTreeMap<(String, String), String>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::Array(items) => {
            for item in items {
                rename_in_value(item, field, names, depth);
            }
        }
        Value::Object(map) => {
            for (_, name, kind) in REFERENCES.iter().filter(|(owner, ..)| *owner == field) {
                let known = map.get(*name).and_then(Value::as_str);
                let renamed = known.and_then(|known| names.get(&((*kind).to_owned(), known.to_owned())));
                if let Some(renamed) = renamed {
                    map.insert((*name).to_owned(), json!(renamed));
                }
            }
            for (key, inner) in map {
                rename_in_value(inner, key, names, depth);
            }
        }
        _ => {}
    }
}

/// Returns the Service of a component. It selects only the pods of this revision.
fn service_object(
    identity: &Identity,
    component: &str,
    name: &str,
    ports: &BTreeSet<u16>,
    manifests: &[Value],
) -> Value {
    let container_ports = container_ports(manifests);
    let port = |port: &u16| {
        let target = match container_ports.as_slice() {
            [only] => *only,
            _ => *port,
        };
        let target = if container_ports.contains(port) {
            *port
        } else {
            target
        };
        json!({"name": format!("http-{port}"), "port": port, "protocol": "TCP", "targetPort": target})
    };
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": identity.namespace, "labels": identity.labels(component)},
        "spec": {
            "ports": ports.iter().map(port).collect::<Vec<_>>(),
            "selector": identity.selector(component),
        },
    })
}

fn container_ports(manifests: &[Value]) -> Vec<u16> {
    let containers = manifests
        .iter()
        .filter_map(|manifest| manifest.pointer("/spec/template/spec/containers")?.as_array())
        .flatten();
    let ports = containers
        .filter_map(|container| container.get("ports")?.as_array())
        .flatten();
    ports
        .filter_map(|port| u16::try_from(port.get("containerPort")?.as_u64()?).ok())
        .collect()
}

/// Sets a key of the object at `path`. Missing objects on the path are created.
fn insert_at(object: &mut Value, path: &[&str], key: &str, value: Value) {
    let mut at = object;
    for step in path {
        let Value::Object(map) = at else { return };
        at = map
            .entry((*step).to_owned())
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    if let Value::Object(map) = at {
        map.insert(key.to_owned(), value);
    }
}
