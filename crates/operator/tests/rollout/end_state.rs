//! The end state of a rollout in one cluster, normalized so that two runs can be compared.

use serde_json::Value;

use crate::final_state::{FinalState, masked, with_sorted_conditions};

/// Fields that contain times or depend on when a change was observed.
const TIME_FIELDS: [&str; 10] = [
    "startedAt",
    "progressedAt",
    "completedAt",
    "stepReachedAt",
    "idleSince",
    "lastContactTime",
    "progress",
    "source",
    "sourceTraffic",
    "managedFields",
];

/// Returns the objects of a cluster without definitions and time-dependent fields.
pub(crate) fn comparable_state(mut objects: Vec<Value>) -> FinalState {
    objects.iter_mut().for_each(without_times);
    objects.retain(|object| object["kind"] != "CustomResourceDefinition");
    masked(objects.into_iter().map(with_sorted_conditions).collect())
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !TIME_FIELDS.contains(&key.as_str()));
            map.values_mut().for_each(without_times);
        }
        Value::Array(list) => list.iter_mut().for_each(without_times),
        _ => {}
    }
}
