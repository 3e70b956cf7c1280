//! What a rehearsal is made from: takes objects of a cluster, keeps those that matter, refuses what no cluster could hold. Never a Secret.

mod kinds;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use crate::error::RehearsalError;
pub use kinds::{KINDS, Wanted};
pub use read::read_cluster;

/// More pods than this are no copy of a cluster, but an attempt on the memory of whoever rehearses.
const MOST_PODS: u64 = 500_000;

/// The objects a rehearsal is made from.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Where they came from, in words.
    pub source: String,
    /// By kind in the order of [`KINDS`], then by namespace and name.
    pub objects: Vec<Value>,
    /// Kinds nothing is known of, and why.
    pub missing: Vec<(&'static str, String)>,
    /// Webhook configurations of others: they are not played.
    pub foreign_webhooks: Vec<String>,
    /// When it was taken: nothing in it is younger.
    pub taken: Option<Timestamp>,
}

impl Input {
    /// A file or folder as `kubectl get -A -o yaml` writes it.
    pub fn of_path(path: &Path) -> Result<Self, RehearsalError> {
        let read = mainstay_sim::snapshot::read_path(path);
        let objects = read.map_err(|source| RehearsalError::Snapshot {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        Self::of_objects(format!("snapshot {}", path.display()), objects)
    }

    /// Objects from wherever; a kind of which there are none may have been left out.
    pub fn of_objects(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let mut input = Self::sorted(source, objects)?;
        let there: BTreeSet<&str> = input.objects.iter().map(|object| text(object, "/kind")).collect();
        let absent = KINDS
            .iter()
            .filter(|kind| kind.expected && !there.contains(kind.kind));
        let why = "there is none in the snapshot".to_owned();
        input.missing = absent.map(|kind| (kind.kind, why.clone())).collect();
        Ok(input)
    }

    /// Objects of known kinds, each once, in a fixed order.
    fn sorted(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let (mut kept, mut foreign) = (BTreeMap::new(), BTreeSet::new());
        let (mut taken, mut pods) = (None, 0_u64);
        for (at, mut object) in objects.into_iter().enumerate() {
            check(&object).map_err(|why| RehearsalError::Object { number: at + 1, why })?;
            let Some(rank) = kinds::rank(&object) else {
                continue;
            };
            pods += workload(&object).map_err(|why| RehearsalError::Object { number: at + 1, why })?;
            if pods > MOST_PODS {
                let why = format!("with it there are more than {MOST_PODS} pods");
                return Err(RehearsalError::Object { number: at + 1, why });
            }
            if !kinds::is_played(&object) {
                if text(&object, "/kind") == kinds::WEBHOOKS {
                    foreign.insert(text(&object, "/metadata/name").to_owned());
                }
                continue;
            }
            if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            taken = taken.max(newest(&object));
            let place = |at| text(&object, at).to_owned();
            let key = (rank, place("/metadata/namespace"), place("/metadata/name"));
            kept.insert(key, object);
        }
        Ok(Self {
            source,
            objects: kept.into_values().collect(),
            missing: Vec::new(),
            foreign_webhooks: foreign.into_iter().collect(),
            taken,
        })
    }

    /// Objects of a kind.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects
            .iter()
            .filter(move |object| text(object, "/kind") == kind)
    }
}

/// What is in an object at `/a/b/c`. Keys with slashes are not asked for, so that nothing has to be unescaped: [`Value::pointer`] makes two
/// texts per key, which is most of the cost of reading a large cluster.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('/').skip(1);
    keys.try_fold(object, |value, key| value.get(key))
}

/// A text in an object; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// Names become parts of paths: what no server would have accepted must not get that far.
fn check(object: &Value) -> Result<(), String> {
    if !object.is_object() {
        return Err("it is no map".to_owned());
    }
    if text(object, "/kind").is_empty() || text(object, "/apiVersion").is_empty() {
        return Err("it has no kind or no apiVersion".to_owned());
    }
    let kind = text(object, "/kind");
    let name = text(object, "/metadata/name");
    if name.is_empty() {
        return Err(format!("a {kind} without a name"));
    }
    let is_plain = |text: &str, most: usize| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
        text.len() <= most && text.chars().all(allowed)
    };
    if !is_plain(name, 253) {
        return Err(format!("the name of a {kind} is none: {:?}", shortened(name)));
    }
    let namespace = text(object, "/metadata/namespace");
    if !is_plain(namespace, 63) {
        return Err(format!("the namespace of {kind} {name:?} is none"));
    }
    Ok(())
}

/// Workloads make pods, so what no server would have accepted must not be played; gives how many pods it wants.
fn workload(object: &Value) -> Result<u64, String> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    if !matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") {
        return Ok(0);
    }
    let labels = at(object, "/spec/template/metadata/labels");
    let selector = LabelSelector::from_object(at(object, "/spec/selector"));
    if selector.is_empty() || !selector.matches_map(labels) {
        return Err(format!(
            "{kind} {name:?} does not select the pods of its own template"
        ));
    }
    let replicas = at(object, "/spec/replicas").filter(|replicas| !replicas.is_null());
    match replicas.map(Value::as_u64) {
        Some(None) => Err(format!("the replicas of {kind} {name:?} are no number of pods")),
        // The pods of a replica set are those of its Deployment.
        _ if kind == "ReplicaSet" => Ok(0),
        Some(Some(replicas)) => Ok(replicas),
        None => Ok(1),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The youngest moment an object speaks of.
fn newest(object: &Value) -> Option<Timestamp> {
    let conditions = at(object, "/status/conditions").and_then(Value::as_array);
    let changed = conditions
        .into_iter()
        .flatten()
        .map(|condition| text(condition, "/lastTransitionTime"));
    let all = changed.chain([text(object, "/metadata/creationTimestamp")]);
    all.filter_map(|moment| moment.parse().ok()).max()
}

#[cfg(test)]
mod tests;
