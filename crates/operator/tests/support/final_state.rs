//! Compares the final states of two runs, except for fields that may differ.

use std::collections::BTreeMap;

use serde_json::Value;

/// The objects of a cluster by kind and name.
pub struct FinalState(BTreeMap<String, Value>);

/// Kinds whose number and names depend on timing.
const NOT_COMPARED: [&str; 7] = [
    "Pod",
    "ReplicaSet",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "Lease",
    "Node",
];

/// Keys of times, identities and random values.
const MASKED: [&str; 19] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastHeartbeatTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "nextBatchTime",
    "timestamp",
    "kubectl.kubernetes.io/restartedAt",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "observedGeneration",
    "generation",
];

/// Returns the objects without kinds and fields that may differ.
pub fn masked(objects: Vec<Value>) -> FinalState {
    let compared = objects
        .into_iter()
        .filter(|object| !NOT_COMPARED.contains(&object["kind"].as_str().unwrap_or_default()));
    FinalState(
        compared
            .map(|mut object| {
                let name = super::path::ObjectPath::from_object(&object).to_string();
                normalize_progress(&mut object);
                mask(&mut object);
                sort_managers(&mut object);
                join_status_managers(&mut object);
                (name, object)
            })
            .collect(),
    )
}

/// Replaces the observed generation by a flag whether it is the current generation, and batch numbers by a
/// flag whether the last batch was reached.
fn normalize_progress(object: &mut Value) {
    let observed = object["status"]["observedGeneration"].clone();
    if !observed.is_null() {
        let settled = observed == object["metadata"]["generation"];
        object["status"]["settled"] = settled.into();
    }
    let batched = object["status"]["workloadMigration"]["batched"].clone();
    if !batched.is_null() {
        let over = batched["currentBatch"] == batched["totalBatches"];
        object["status"]["workloadMigration"]["batched"] = over.into();
    }
}

/// Removes masked keys. Names of `ReplicaSets` contain a hash of the template, which contains the restart
/// time.
fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !MASKED.contains(&key.as_str()));
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, value)| (without_uid(key), value))
                .collect();
            if let Some(record) = map.get_mut(MIGRATION_RECORD) {
                *record = revision_of_record(record);
            }
            map.values_mut().for_each(mask);
        }
        Value::Array(list) => list.iter_mut().for_each(mask),
        Value::String(text) => {
            if let Some(rest) = text
                .strip_prefix("ReplicaSet \"")
                .and_then(|rest| rest.split_once('"'))
            {
                *text = format!("ReplicaSet{}", rest.1);
            }
        }
        _ => {}
    }
}

/// Annotation with the migration record of a workload. Its time and batch may differ.
const MIGRATION_RECORD: &str = "sailoperator.io/migration";

fn revision_of_record(record: &Value) -> Value {
    let record: Value = serde_json::from_str(record.as_str().unwrap_or_default()).unwrap_or_default();
    record["revision"].clone()
}

/// Removes UIDs from field keys of owner references.
fn without_uid(key: String) -> String {
    if key.starts_with("k:{\"uid\":") {
        "k:{uid}".into()
    } else {
        key
    }
}

/// Sorts managed fields, which the server orders by time.
fn sort_managers(object: &mut Value) {
    let managers = object.pointer_mut("/metadata/managedFields");
    if let Some(Value::Array(managers)) = managers {
        managers.sort_by_key(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            (text("manager"), text("operation"), text("subresource"))
        });
    }
}

/// Replaces the managers of the status by the set of owned fields. After a takeover, a field keeps its
/// previous manager until its value changes, which depends on timing.
fn join_status_managers(object: &mut Value) {
    let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") else {
        return;
    };
    let is_status = |entry: &Value| entry["subresource"] == "status";
    let mut owned = Value::Null;
    for entry in managers.iter().filter(|entry| is_status(entry)) {
        merge_fields(&mut owned, &entry["fieldsV1"]);
    }
    managers.retain(|entry| !is_status(entry));
    object["ownedStatusFields"] = owned;
}

fn merge_fields(all: &mut Value, more: &Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge_fields(all.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (all, more) => *all = more.clone(),
    }
}

/// Sorts conditions by type, because their order depends on timing.
pub fn with_sorted_conditions(mut object: Value) -> Value {
    if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
        conditions.sort_by_key(|one| one["type"].as_str().unwrap_or_default().to_owned());
    }
    object
}

/// Returns the message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_default()
        .lines()
        .take(12)
        .collect::<Vec<_>>()
        .join(" ¶ ")
}

impl FinalState {
    /// Returns a description of the first difference.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .find_map(|name| match (self.0.get(name), other.0.get(name)) {
                (Some(_), None) => Some(format!("{name} is missing")),
                (None, Some(_)) => Some(format!("{name} should not exist")),
                (Some(a), Some(b)) => first_difference(a, b).map(|at| format!("{name}{at}")),
                (None, None) => None,
            })
    }
}

fn first_difference(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                first_difference(a, b).map(|rest| format!("/{key}{rest}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(at, (a, b))| first_difference(a, b).map(|rest| format!("/{at}{rest}"))),
        _ if a == b => None,
        _ => Some(format!(": {} instead of {}", truncated(b), truncated(a))),
    }
}

fn truncated(value: &Value) -> String {
    value.to_string().chars().take(160).collect()
}
