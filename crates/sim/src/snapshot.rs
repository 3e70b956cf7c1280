//! Reads and writes the objects of a cluster: `kubectl get -A -o yaml` output, a List, or separate documents.
//!
//! Loading skips validation and admission: the source cluster accepted the objects before, and they are
//! stored as they are, including status, uid and timestamps. Only resourceVersions are new, and defaults are
//! filled in, as a server does when it reads an object.

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
pub use files::{check_dump_directory, read_path, read_path_trimmed, write_directory};
pub(crate) use text::parse_document;
pub use text::{Trim, parse, parse_trimmed};

/// A failure to read or write a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A document is not valid YAML.
    #[error("cannot parse document {number}")]
    Document {
        /// The number of the document, from 1.
        number: usize,
        /// The place in the whole text.
        place: Place,
        /// The parser's error.
        source: Box<mainstay_yaml::Error>,
    },
    /// A file of a snapshot is invalid.
    #[error("{}", path.display())]
    InFile {
        /// The path of the file.
        path: PathBuf,
        /// The problem in its text.
        source: Box<SnapshotError>,
    },
    /// A value cannot be written as YAML.
    #[error("cannot write object")]
    Write(#[source] mainstay_yaml::Error),
    /// A document is not a Kubernetes object.
    #[error("document {number} is not a Kubernetes object")]
    NoObject {
        /// The number of the document, from 1.
        number: usize,
        /// The first line of the document.
        place: Place,
    },
    /// A file or directory cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The path of the file or directory.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A directory in a snapshot is a link.
    #[error("{} is a link to a directory", path.display())]
    DirectoryLink {
        /// The path of the link.
        path: PathBuf,
    },
    /// A file of a snapshot is a device, a pipe or a socket.
    #[error("{} is not a regular file", path.display())]
    SpecialFile {
        /// The path of the file.
        path: PathBuf,
    },
    /// The directories of a snapshot are nested too deeply.
    #[error("{} is nested too deeply", path.display())]
    TooDeep {
        /// The path of the directory.
        path: PathBuf,
    },
    /// A directory to write to contains files already.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The path of the directory.
        path: PathBuf,
    },
}

/// A place in the text of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text of the line, unless it is too long to be shown.
    pub source: Option<String>,
}

impl SnapshotError {
    /// Returns the file and the place of a problem in the text of a snapshot; no file for text that was not
    /// read from one.
    #[must_use]
    pub fn place(&self) -> Option<(Option<&Path>, &Place)> {
        match self {
            Self::Document { place, .. } | Self::NoObject { place, .. } => Some((None, place)),
            Self::InFile { path, source } => source.place().map(|(_, place)| (Some(path.as_path()), place)),
            _ => None,
        }
    }
}

/// The result of loading a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The number of loaded objects.
    pub objects: usize,
    /// `apiVersion kind` of the objects that were skipped because the cluster does not serve their kind.
    pub skipped: Vec<String>,
}

/// Loads objects into a cluster: definitions first, then namespaces, then the rest in their order.
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
        note_absent_owners(state, &object, &known);
        match load_object(state, object) {
            Ok(()) => loaded.objects += 1,
            Err(kind) => loaded.skipped.push(kind),
        }
    }
    loaded
}

/// A snapshot may lack owners; their dependents must not be garbage collected for that reason.
fn note_absent_owners(state: &mut State, object: &Value, known: &BTreeSet<Box<str>>) {
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
    // The source cluster stored it, so it is not too large.
    let _ = crate::defaults::apply(state, &resource, &mut value);
    crate::apply::pack(&mut value);
    reserve(state, &resource, &value);
    let mut stored = convert::to_stored(&resource, value);
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::crd::definition::establish(&mut stored, &now);
        crate::crd::serve(state, &stored);
    }
    let fields = selector::selectable(&resource, &stored);
    state.store.put(&resource.table, stored, fields);
    Ok(())
}

fn reserve(state: &mut State, resource: &Arc<Resource>, value: &Value) {
    if !resource.is("", "services") {
        return;
    }
    if let Ok(ip) = tree::text(value, &["spec", "clusterIP"]).parse::<Ipv4Addr>() {
        state.ips.claim_ip(ip);
    }
    for port in tree::list(value, &["spec", "ports"]) {
        if let Some(port) = tree::int(port, &["nodePort"]).and_then(|port| u16::try_from(port).ok()) {
            state.ips.claim_port(port);
        }
    }
}

/// Returns every object of a cluster, table by table.
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
        return yaml(&list(objects));
    }
    let mut text = String::from("apiVersion: v1\nitems:\n");
    for object in objects {
        text.push_str(&yaml(&json!([object]))?);
    }
    text.push_str("kind: List\nmetadata:\n  resourceVersion: \"\"\n");
    Ok(text)
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

fn yaml(value: &Value) -> Result<String, SnapshotError> {
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
            assert_eq!(to_yaml(&objects).unwrap(), yaml(&list(&objects)).unwrap());
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
