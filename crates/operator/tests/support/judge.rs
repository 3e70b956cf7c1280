//! Whether two runs ended alike: takes all objects of a cluster, gives them without what two runs may differ in.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a cluster came to, by kind and name.
pub struct End(BTreeMap<String, Value>);

/// Made and named by others, or told to people: their number and names depend on when things happened.
const NOT_COMPARED: [&str; 6] = ["Pod", "ReplicaSet", "EndpointSlice", "Event", "Lease", "Node"];

/// Keys whose values are moments, identities or drawn by lot, wherever they stand.
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

/// All objects, comparable.
pub fn masked(objects: Vec<Value>) -> End {
    let compared = objects
        .into_iter()
        .filter(|object| !NOT_COMPARED.contains(&object["kind"].as_str().unwrap_or_default()));
    End(compared
        .map(|mut object| {
            let name = super::at::At::of(&object).to_string();
            settled(&mut object);
            mask(&mut object);
            sort_managers(&mut object);
            join_status_managers(&mut object);
            (name, object)
        })
        .collect())
}

/// A generation may differ, whether it was seen may not; the number of batches may, whether the last one was reached may not.
fn settled(object: &mut Value) {
    let seen = object["status"]["observedGeneration"].clone();
    if !seen.is_null() {
        let settled = seen == object["metadata"]["generation"];
        object["status"]["settled"] = settled.into();
    }
    let batched = object["status"]["workloadMigration"]["batched"].clone();
    if !batched.is_null() {
        let over = batched["currentBatch"] == batched["totalBatches"];
        object["status"]["workloadMigration"]["batched"] = over.into();
    }
}

/// Of replica sets the hash is drawn from the template, in which the moment of a restart stands.
fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !MASKED.contains(&key.as_str()));
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, value)| (without_identity(key), value))
                .collect();
            if let Some(mark) = map.get_mut(MARK) {
                *mark = without_moment(mark);
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

/// What a migration remembers on a workload, but not when it did it, nor in which batch: whoever is held up goes later.
const MARK: &str = "sailoperator.io/migration";

fn without_moment(mark: &Value) -> Value {
    let mark: Value = serde_json::from_str(mark.as_str().unwrap_or_default()).unwrap_or_default();
    mark["revision"].clone()
}

/// Records of owners name them by identity.
fn without_identity(key: String) -> String {
    if key.starts_with("k:{\"uid\":") {
        "k:{uid}".into()
    } else {
        key
    }
}

/// Records are kept in the order of their times.
fn sort_managers(object: &mut Value) {
    let managers = object.pointer_mut("/metadata/managedFields");
    if let Some(Value::Array(managers)) = managers {
        managers.sort_by_key(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            (text("manager"), text("operation"), text("subresource"))
        });
    }
}

/// After a takeover a field of a status stays with whoever was there before until it changes: whose it is depends on what was
/// believed in between. That somebody holds it does not.
fn join_status_managers(object: &mut Value) {
    let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") else {
        return;
    };
    let is_status = |entry: &Value| entry["subresource"] == "status";
    let mut held = Value::Null;
    for entry in managers.iter().filter(|entry| is_status(entry)) {
        join(&mut held, &entry["fieldsV1"]);
    }
    managers.retain(|entry| !is_status(entry));
    object["heldOfStatus"] = held;
}

fn join(all: &mut Value, more: &Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                join(all.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (all, more) => *all = more.clone(),
    }
}

/// Conditions are found by their type: in which order they were told first is of no matter, and depends on what came first.
pub fn by_type(mut object: Value) -> Value {
    if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
        conditions.sort_by_key(|one| one["type"].as_str().unwrap_or_default().to_owned());
    }
    object
}

/// What a run died of.
pub fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_default()
        .lines()
        .take(12)
        .collect::<Vec<_>>()
        .join(" ¶ ")
}

impl End {
    /// The first object that differs, and where.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .find_map(|name| match (self.0.get(name), other.0.get(name)) {
                (Some(_), None) => Some(format!("{name} is missing")),
                (None, Some(_)) => Some(format!("{name} should not be there")),
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
        _ => Some(format!(": {} instead of {}", short(b), short(a))),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(160).collect()
}
