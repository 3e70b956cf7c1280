//! Reads and writes the objects of a cluster: `kubectl get -A -o yaml` output, a List, or separate documents.
//!
//! Loading skips validation and admission because the source cluster has accepted the objects. They are
//! stored unchanged, including status, uid and timestamps, except for new resourceVersions and for defaults,
//! which a server also sets when it reads an object.

mod chunks;
mod files;
mod text;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_yaml::{Budget, Numbers};
use serde_json::{Value, json};

use crate::resource::{Resource, Shape};
use crate::state::State;
use crate::{convert, selector, tree};
pub use files::{check_dump_directory, read_path, read_path_each, write_directory};
pub(crate) use text::parse_document;
pub use text::{Convert, parse, parse_each};

/// Errors of reading or writing a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A document is not valid YAML.
    #[error("cannot parse document {number}")]
    Document {
        /// Number of the document, starting at 1.
        number: usize,
        /// Place in the whole text.
        place: Place,
        /// Error of the parser.
        source: Box<mainstay_yaml::Error>,
    },
    /// A file of a snapshot is invalid.
    #[error("{}", path.display())]
    InFile {
        /// Path of the file.
        path: PathBuf,
        /// Error in the text of the file.
        source: Box<SnapshotError>,
    },
    /// A value cannot be written as YAML.
    #[error("cannot write object as YAML")]
    Write(#[source] mainstay_yaml::Error),
    /// A document is not a Kubernetes object.
    #[error("document {number} is not a Kubernetes object")]
    NoObject {
        /// Number of the document, starting at 1.
        number: usize,
        /// First line of the document.
        place: Place,
    },
    /// A file or directory cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// I/O error.
        source: std::io::Error,
    },
    /// A snapshot contains a link to a directory.
    #[error("{} is a link to a directory", path.display())]
    DirectoryLink {
        /// Path of the link.
        path: PathBuf,
    },
    /// A file of a snapshot is a device, a pipe or a socket.
    #[error("{} is not a regular file", path.display())]
    SpecialFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// The directories of a snapshot are nested too deeply.
    #[error("{} is nested too deeply", path.display())]
    TooDeep {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory for a new snapshot is not empty.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// Path of the directory.
        path: PathBuf,
    },
}

/// A place in the text of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Text of the line; `None` if it is too long to be shown.
    pub source: Option<String>,
}

impl SnapshotError {
    /// Returns the file and the place of an error in the text of a snapshot. The file is `None` if the text
    /// was not read from a file.
    #[must_use]
    pub fn place(&self) -> Option<(Option<&Path>, &Place)> {
        match self {
            Self::Document { place, .. } | Self::NoObject { place, .. } => Some((None, place)),
            Self::InFile { path, source } => source.place().map(|(_, place)| (Some(path.as_path()), place)),
            _ => None,
        }
    }
}

/// Result of loading a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Number of loaded objects.
    pub objects: usize,
    /// Objects that were skipped: `apiVersion kind` if the cluster does not serve the kind, followed by the
    /// error if the object cannot be decoded.
    pub skipped: Vec<String>,
}

/// Loads objects into a cluster: definitions first, then namespaces, then all other objects in their order.
pub fn load(state: &mut State, objects: Vec<Value>) -> Loaded {
    let mut objects = objects;
    objects.sort_by_key(|object| match tree::text(object, &["kind"]) {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    });
    let mut loaded = Loaded::default();
    let known: BTreeSet<Box<str>> = objects
        .iter()
        .map(|object| tree::text(object, &["metadata", "uid"]).into())
        .collect();
    for object in objects {
        record_absent_owners(state, &object, &known);
        match load_object(state, object) {
            Ok(()) => loaded.objects += 1,
            Err(kind) => loaded.skipped.push(kind),
        }
    }
    loaded
}

/// Records owners that the snapshot does not contain, so that their dependents are not garbage collected.
fn record_absent_owners(state: &mut State, object: &Value, known: &BTreeSet<Box<str>>) {
    for owner in tree::list(object, &["metadata", "ownerReferences"]) {
        let uid = tree::text(owner, &["uid"]);
        if !known.contains(uid) && state.store.location_of(uid).is_none() {
            state.absent_owners.insert(uid.into());
        }
    }
}

fn load_object(state: &mut State, object: Value) -> Result<(), String> {
    let (api_version, kind) = (
        tree::text(&object, &["apiVersion"]).to_owned(),
        tree::text(&object, &["kind"]).to_owned(),
    );
    let found = state.resources.find_kind(&api_version, &kind).cloned();
    let resource = found.ok_or_else(|| format!("{api_version} {kind}"))?;
    let mut value = match &resource.shape {
        Shape::Builtin(Some(id)) => {
            state
                .schema
                .decode(*id, object)
                .map_err(|error| format!("{api_version} {kind}: {error}"))?
                .value
        }
        _ => object,
    };
    tree::set(&mut value, &["apiVersion"], api_version);
    tree::set(&mut value, &["kind"], kind);
    let (uid, now) = (state.random.uid(), state.now().rfc3339());
    tree::set_default_text(&mut value, &["metadata", "uid"], &uid);
    tree::set_default_text(&mut value, &["metadata", "creationTimestamp"], &now);
    // The source cluster has stored the object, so it is not too large.
    let _ = crate::defaults::apply(state, &resource, &mut value);
    crate::apply::pack(&mut value);
    claim_service_addresses(state, &resource, &value);
    let mut stored = convert::to_stored(&resource, value);
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::crd::definition::establish(&mut stored, &now);
        crate::crd::serve(state, &stored);
    }
    let fields = selector::selectable(&resource, &stored);
    state.store.put(&resource.table, stored, fields);
    Ok(())
}

fn claim_service_addresses(state: &mut State, resource: &Arc<Resource>, value: &Value) {
    if !resource.is("", "services") {
        return;
    }
    if let Ok(ip) = tree::text(value, &["spec", "clusterIP"]).parse::<Ipv4Addr>() {
        state.ips.allocate_ip(ip);
    }
    for port in tree::list(value, &["spec", "ports"]) {
        if let Some(port) = tree::int(port, &["nodePort"]).and_then(|port| u16::try_from(port).ok()) {
            state.ips.allocate_port(port);
        }
    }
}

/// Returns all objects of a cluster, ordered by table.
#[must_use]
pub fn dump(state: &State) -> Vec<Value> {
    let tables: Vec<Arc<Resource>> = state.resources.tables().cloned().collect();
    tables
        .iter()
        .flat_map(|resource| state.store.all(&resource.table))
        .map(|object| object.value())
        .collect()
}

/// Writes objects as one YAML List, as `kubectl get -o yaml` prints it. Each object is written separately, so
/// that the number of objects is not limited.
pub fn to_yaml(objects: &[Value]) -> Result<String, SnapshotError> {
    if objects.is_empty() {
        return value_to_yaml(&list_object(objects));
    }
    let mut text = String::from("apiVersion: v1\nitems:\n");
    for object in objects {
        text.push_str(&value_to_yaml(&json!([object]))?);
    }
    text.push_str("kind: List\nmetadata:\n  resourceVersion: \"\"\n");
    Ok(text)
}

fn list_object(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

fn value_to_yaml(value: &Value) -> Result<String, SnapshotError> {
    let parsed = mainstay_yaml::parse_json(value.to_string(), Numbers::Exact, &Budget::default());
    parsed
        .and_then(|value| mainstay_yaml::to_yaml_v2(&value))
        .map_err(SnapshotError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;

    const TEXT: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: apps}
- apiVersion: v1
  kind: Pod
  metadata:
    name: p
    namespace: apps
    uid: 11111111-1111-1111-1111-111111111111
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: gone, uid: 22222222-2222-2222-2222-222222222222}]
  spec: {containers: [{name: c, image: i}]}
  status: {phase: Running}
- apiVersion: example.com/v1
  kind: Thing
  metadata: {name: t}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: apps}
data: {on: \"yes\"}
";

    #[test]
    fn lists_are_written_like_one_document() {
        let long =
            "a text that is longer than a line of YAML may be and is folded, wherever it stands ".repeat(3);
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "labels": {"a": "1"}}, "spec": [[{"x": long}], "- y\nz\n"]});
        for objects in [vec![], vec![pod.clone()], vec![pod.clone(), json!({}), pod]] {
            assert_eq!(
                to_yaml(&objects).unwrap(),
                value_to_yaml(&list_object(&objects)).unwrap()
            );
        }
    }

    #[test]
    fn snapshots_are_loaded_unchanged() {
        let cluster = Cluster::default();
        let loaded = cluster.with(|state| load(state, parse(TEXT).unwrap()));
        cluster.settle();
        assert_eq!(
            loaded,
            Loaded {
                objects: 3,
                skipped: vec!["example.com/v1 Thing".into()]
            }
        );
        let pod = cluster.with(|state| state.store.get("pods", "apps/p").unwrap().value());
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(pod["metadata"]["uid"], "11111111-1111-1111-1111-111111111111");
    }

    #[test]
    fn defaults_are_filled_in_on_load() {
        let text = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
";
        let cluster = Cluster::default();
        cluster.run_workloads(1);
        cluster.with(|state| load(state, parse(text).unwrap()));
        cluster.settle();
        assert_eq!(cluster.with(|state| state.store.count("replicasets.apps")), 1);
    }

    #[test]
    fn dumps_can_be_loaded() {
        let first = Cluster::default();
        first.with(|state| load(state, parse(TEXT).unwrap()));
        let text = first.with(|state| to_yaml(&dump(state)).unwrap());
        let second = Cluster::empty(crate::Options::default());
        second.with(|state| load(state, parse(&text).unwrap()));
        let strip = |cluster: &Cluster| {
            let mut objects = cluster.with(|state| dump(state));
            for object in &mut objects {
                tree::remove(object, &["metadata", "resourceVersion"]);
            }
            objects
        };
        assert_eq!(strip(&first), strip(&second));
    }

    #[test]
    fn documents_that_are_not_objects_are_rejected() {
        assert_eq!(
            parse("- a\n").unwrap_err().to_string(),
            "document 1 is not a Kubernetes object"
        );
        assert_eq!(
            parse("a: b\n---\n{").unwrap_err().to_string(),
            "cannot parse document 2"
        );
        assert!(parse("").unwrap().is_empty());
    }
}
