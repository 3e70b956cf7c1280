//! Input of a rehearsal: keeps relevant objects and rejects objects that an API server would reject. Never
//! contains a Secret.

mod kinds;
mod read;
mod trim;

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use crate::error::{InvalidObject, RehearsalError};
pub use kinds::{InputKind, KINDS};
pub use read::read_cluster;

/// Maximum number of pods. Limits memory.
const MAX_PODS: u64 = 500_000;

/// Cause of a kind that is missing in a snapshot.
pub(crate) const MISSING_IN_SNAPSHOT: &str = "not in the snapshot";

/// Objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Description of the input's origin.
    pub source: String,
    /// Objects, sorted by kind in the order of [`KINDS`], namespace and name.
    pub objects: Vec<Value>,
    /// Kinds that could not be read, with the cause.
    pub missing: Vec<(&'static str, String)>,
    /// Names of other vendors' mutating webhook configurations, which are not simulated.
    pub foreign_webhooks: Vec<String>,
    /// Time of capture: the latest timestamp in the input.
    pub taken: Option<Timestamp>,
}

impl Input {
    /// Reads a file or directory written by `kubectl get -A -o yaml`.
    pub fn from_path(path: &Path) -> Result<Self, RehearsalError> {
        let read = mainstay_sim::snapshot::read_path_trimmed(path, trim::trim);
        let objects = read.map_err(|error| RehearsalError::Snapshot(Box::new(error)))?;
        Self::from_trimmed(format!("snapshot {}", path.display()), objects)
    }

    /// Parses the output of `kubectl get -A -o yaml`. `source` describes its origin.
    pub fn from_text(source: String, text: &str) -> Result<Self, RehearsalError> {
        let read = mainstay_sim::snapshot::parse_trimmed(text, trim::trim);
        let objects = read.map_err(|error| RehearsalError::Snapshot(Box::new(error)))?;
        Self::from_trimmed(source, objects)
    }

    /// Creates an input from objects. Kinds without objects count as missing.
    pub fn from_objects(source: String, mut objects: Vec<Value>) -> Result<Self, RehearsalError> {
        objects.iter_mut().for_each(trim::trim);
        Self::from_trimmed(source, objects)
    }

    fn from_trimmed(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let mut input = Self::sorted(source, objects)?;
        let absent = KINDS
            .iter()
            .filter(|kind| kind.expected && input.of_kind(kind.kind).len() == 0);
        let why = MISSING_IN_SNAPSHOT.to_owned();
        input.missing = absent.map(|kind| (kind.kind, why.clone())).collect();
        Ok(input)
    }

    /// Keeps objects of known kinds without duplicates, and sorts them.
    fn sorted(source: String, objects: Vec<Value>) -> Result<Self, RehearsalError> {
        let (mut kept, mut foreign) = (Vec::with_capacity(objects.len()), BTreeSet::new());
        let (mut taken, mut pods) = (None, 0_u64);
        for (at, object) in objects.into_iter().enumerate() {
            let invalid = |defect| RehearsalError::Object {
                number: at + 1,
                defect,
            };
            validate_object(&object).map_err(invalid)?;
            let Some(rank) = kinds::rank(&object) else {
                continue;
            };
            pods += validate_workload(&object).map_err(invalid)?;
            if pods > MAX_PODS {
                return Err(invalid(InvalidObject::TooManyPods { max: MAX_PODS }));
            }
            if !kinds::is_relevant(&object) {
                if text(&object, "/kind") == kinds::WEBHOOKS {
                    foreign.insert(text(&object, "/metadata/name").to_owned());
                }
                continue;
            }
            taken = taken.max(latest_timestamp(&object));
            let field = |path| text(&object, path).to_owned();
            let key = (rank, field("/metadata/namespace"), field("/metadata/name"));
            kept.push((key, object));
        }
        // Snapshots are nearly sorted. If two objects have the same key, the later one is kept.
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

    /// Inserts objects of known kinds at their positions in the order.
    pub(crate) fn add(&mut self, objects: Vec<Value>) {
        self.objects.extend(objects);
        self.objects.sort_by_cached_key(|object| {
            let field = |path| text(object, path).to_owned();
            (
                kinds::rank(object),
                field("/metadata/namespace"),
                field("/metadata/name"),
            )
        });
    }

    /// Returns the objects of a kind. They are contiguous, so that other objects are not visited.
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
