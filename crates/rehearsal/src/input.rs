//! What a rehearsal is made from: takes objects of a cluster, keeps those that matter, refuses what no cluster could hold. Never a Secret.

mod kinds;
mod read;
mod trim;

use std::collections::BTreeSet;
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
        let read = mainstay_sim::snapshot::read_path_trimmed(path, trim::trim);
        let objects = read.map_err(|source| RehearsalError::Snapshot {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        Self::of_trimmed(format!("snapshot {}", path.display()), objects)
    }

    /// Objects from wherever; a kind of which there are none may have been left out.
    pub fn of_objects(source: String, mut objects: Vec<Value>) -> Result<Self, RehearsalError> {
        objects.iter_mut().for_each(trim::trim);
        Self::of_trimmed(source, objects)
    }

    fn of_trimmed(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let mut input = Self::sorted(source, objects)?;
        let absent = KINDS
            .iter()
            .filter(|kind| kind.expected && input.of_kind(kind.kind).len() == 0);
        let why = "there is none in the snapshot".to_owned();
        input.missing = absent.map(|kind| (kind.kind, why.clone())).collect();
        Ok(input)
    }

    /// Objects of known kinds, each once, in a fixed order.
    fn sorted(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let (mut kept, mut foreign) = (Vec::with_capacity(objects.len()), BTreeSet::new());
        let (mut taken, mut pods) = (None, 0_u64);
        for (at, object) in objects.into_iter().enumerate() {
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
            taken = taken.max(newest(&object));
            let place = |at| text(&object, at).to_owned();
            let key = (rank, place("/metadata/namespace"), place("/metadata/name"));
            kept.push((key, object));
        }
        // Snapshots are nearly sorted, and of two objects in one place the later counts.
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        kept.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Ok(Self {
            source,
            objects: kept.into_iter().map(|(_, object)| object).collect(),
            missing: Vec::new(),
            foreign_webhooks: foreign.into_iter().collect(),
            taken,
        })
    }

    /// Objects of a kind. They are beside one another, so that the others are not even touched.
    pub(crate) fn of_kind(&self, kind: &str) -> std::slice::Iter<'_, Value> {
        let rank = KINDS.iter().position(|known| known.kind == kind);
        let before = |rank: usize| {
            self.objects
                .partition_point(|object| kinds::rank(object).is_some_and(|of| of < rank))
        };
        let found = rank.and_then(|rank| self.objects.get(before(rank)..before(rank + 1)));
        found.unwrap_or_default().iter()
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
