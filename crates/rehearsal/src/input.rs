//! Input of a rehearsal: keeps relevant objects and rejects objects that an API server would reject. Never
//! contains a Secret.

mod kinds;
mod read;
mod stored;
mod trim;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use jiff::Timestamp;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use crate::error::{InvalidObject, RehearsalError};
pub use kinds::{InputKind, KINDS};
pub use read::read_cluster;
use stored::{Key, Reduced, StoredObject};

/// Maximum number of pods. Limits memory.
const MAX_PODS: u64 = 500_000;

/// Cause of a kind that is missing in a snapshot.
pub(crate) const MISSING_IN_SNAPSHOT: &str = "not in the snapshot";

/// Objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Description of the input's origin.
    pub source: String,
    /// Kinds that could not be read, with the cause.
    pub missing: Vec<(&'static str, String)>,
    /// Names of other vendors' mutating webhook configurations, which are not simulated.
    pub foreign_webhooks: Vec<String>,
    /// Time of capture: the latest timestamp in the input.
    pub taken: Option<Timestamp>,
    /// Objects, sorted by kind in the order of [`KINDS`], namespace and name.
    objects: Vec<StoredObject>,
    /// Number of discarded objects of each kind.
    discarded: [usize; KINDS.len()],
}

impl Input {
    /// Reads a file or directory written by `kubectl get -A -o yaml`.
    pub fn from_path(path: &Path) -> Result<Self, RehearsalError> {
        let read = mainstay_sim::snapshot::read_path_each(path, &Reduced::from_object);
        let objects = read.map_err(|error| RehearsalError::Snapshot(Box::new(error)))?;
        Self::from_snapshot(format!("snapshot {}", path.display()), objects)
    }

    /// Parses the output of `kubectl get -A -o yaml`. `source` describes its origin.
    pub fn from_text(source: String, text: &str) -> Result<Self, RehearsalError> {
        let read = mainstay_sim::snapshot::parse_each(text, &Reduced::from_object);
        let objects = read.map_err(|error| RehearsalError::Snapshot(Box::new(error)))?;
        Self::from_snapshot(source, objects)
    }

    /// Creates an input from objects. Kinds without objects count as missing.
    pub fn from_objects(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        Self::from_snapshot(source, objects.into_iter().map(Reduced::from_object).collect())
    }

    fn from_snapshot(
        source: String,
        objects: Vec<Result<Reduced, InvalidObject>>,
    ) -> Result<Self, RehearsalError> {
        let mut input = Self::sorted(source, objects)?;
        let absent = KINDS
            .iter()
            .filter(|kind| kind.expected && input.count(kind.kind) == 0);
        let why = MISSING_IN_SNAPSHOT.to_owned();
        input.missing = absent.map(|kind| (kind.kind, why.clone())).collect();
        Ok(input)
    }

    /// Keeps objects of known kinds without duplicates, and sorts them.
    fn sorted(source: String, objects: Vec<Result<Reduced, InvalidObject>>) -> Result<Self, RehearsalError> {
        let (mut kept, mut foreign) = (Vec::with_capacity(objects.len()), BTreeSet::new());
        let (mut taken, mut pods) = (None, 0_u64);
        for (at, object) in objects.into_iter().enumerate() {
            let invalid = |defect| RehearsalError::Object {
                number: at + 1,
                defect,
            };
            let object = object.map_err(invalid)?;
            pods += object.pods;
            if pods > MAX_PODS {
                return Err(invalid(InvalidObject::TooManyPods { max: MAX_PODS }));
            }
            taken = taken.max(object.latest);
            foreign.extend(object.foreign_webhook);
            kept.extend(object.stored);
        }
        // Snapshots are nearly sorted. If two objects have the same key, the later one is kept.
        kept.sort_by(|a, b| a.key.cmp(&b.key));
        kept.dedup_by(|later, earlier| {
            let same = later.key == earlier.key;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Ok(Self {
            source,
            objects: kept,
            foreign_webhooks: foreign.into_iter().collect(),
            taken,
            ..Self::default()
        })
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn object_count(&self) -> usize {
        self.objects.len() + self.discarded.iter().sum::<usize>()
    }

    /// Returns all objects in the order of [`KINDS`].
    pub(crate) fn all(&self) -> impl Iterator<Item = Value> {
        self.objects.iter().map(StoredObject::parse)
    }

    /// Inserts objects of known kinds at their positions in the order.
    pub(crate) fn add(&mut self, objects: &[Value]) {
        self.objects.extend(objects.iter().filter_map(StoredObject::new));
        self.objects.sort_by(|a, b| a.key.cmp(&b.key));
    }

    /// Removes the matching objects in a namespace, and those without a namespace.
    pub(crate) fn remove_in(&mut self, namespace: &str, is_removed: impl Fn(&Value) -> bool) {
        let is_there = |key: &Key| key.namespace.is_empty() || *key.namespace == *namespace;
        self.objects
            .retain(|object| !(is_there(&object.key) && is_removed(&object.parse())));
    }

    /// Discards the objects of a kind that is not read again. They still count.
    pub(crate) fn discard(&mut self, kind: &str) {
        let range = self.range_of(kind);
        if let Some(count) = rank_of(kind).and_then(|rank| self.discarded.get_mut(rank)) {
            *count += self.objects.drain(range).len();
        }
    }

    /// Returns the number of objects of a kind.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let discarded = rank_of(kind).and_then(|rank| self.discarded.get(rank));
        self.range_of(kind).len() + discarded.copied().unwrap_or_default()
    }

    /// Returns the objects of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = Value> + use<'_> {
        let found = self.objects.get(self.range_of(kind)).unwrap_or_default();
        found.iter().map(StoredObject::parse)
    }

    /// Returns the range of the objects of a kind. They are contiguous.
    fn range_of(&self, kind: &str) -> Range<usize> {
        let before = |rank: usize| self.objects.partition_point(|object| object.key.rank < rank);
        rank_of(kind).map_or(0..0, |rank| before(rank)..before(rank + 1))
    }
}

fn rank_of(kind: &str) -> Option<usize> {
    KINDS.iter().position(|known| known.kind == kind)
}

/// Returns the value at a path such as `/a/b/c`. Keys must not contain slashes, so that no unescaping is
/// needed: [`Value::pointer`] allocates twice per key, which dominates the cost of reading a large cluster.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('/').skip(1);
    keys.try_fold(object, |value, key| value.get(key))
}

/// Returns the string at a path, or an empty string if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// Rejects invalid names. Names become parts of paths.
fn validate_object(object: &Value) -> Result<(), InvalidObject> {
    if !object.is_object() {
        return Err(InvalidObject::NotAMap);
    }
    if text(object, "/kind").is_empty() || text(object, "/apiVersion").is_empty() {
        return Err(InvalidObject::NoKind);
    }
    let kind = text(object, "/kind").to_owned();
    let name = text(object, "/metadata/name");
    if name.is_empty() {
        return Err(InvalidObject::NoName { kind });
    }
    let is_plain = |text: &str, max_len: usize| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
        text.len() <= max_len && text.chars().all(allowed)
    };
    if !is_plain(name, 253) {
        let name = shortened(name);
        return Err(InvalidObject::Name { kind, name });
    }
    let namespace = text(object, "/metadata/namespace");
    if !is_plain(namespace, 63) {
        let name = name.to_owned();
        return Err(InvalidObject::Namespace { kind, name });
    }
    Ok(())
}

/// Rejects workloads that an API server would reject, and returns the number of pods of a workload.
fn validate_workload(object: &Value) -> Result<u64, InvalidObject> {
    let field = |path| text(object, path).to_owned();
    let (kind, name) = (field("/kind"), field("/metadata/name"));
    if !matches!(
        kind.as_str(),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet"
    ) {
        return Ok(0);
    }
    let labels = at(object, "/spec/template/metadata/labels");
    let selector = LabelSelector::from_object(at(object, "/spec/selector"));
    if selector.is_empty() || !selector.matches_map(labels) {
        return Err(InvalidObject::Selector { kind, name });
    }
    let replicas = at(object, "/spec/replicas").filter(|replicas| !replicas.is_null());
    match replicas.map(Value::as_u64) {
        Some(None) => Err(InvalidObject::Replicas { kind, name }),
        // The pods of a ReplicaSet are counted for its Deployment.
        _ if kind == "ReplicaSet" => Ok(0),
        Some(Some(replicas)) => Ok(replicas),
        None => Ok(1),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns the latest timestamp of an object.
fn latest_timestamp(object: &Value) -> Option<Timestamp> {
    let conditions = at(object, "/status/conditions").and_then(Value::as_array);
    let changed = conditions
        .into_iter()
        .flatten()
        .map(|condition| text(condition, "/lastTransitionTime"));
    let all = changed.chain([text(object, "/metadata/creationTimestamp")]);
    all.filter_map(|time| time.parse().ok()).max()
}

#[cfg(test)]
mod tests;
