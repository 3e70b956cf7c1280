//! Conversion of objects between API versions. Only kinds with several versions in one table are converted.

use serde_json::{Value, json};

use crate::resource::{Resource, Shape};
use crate::tree;

/// Fields of an Event that have different names in `v1` and `events.k8s.io/v1`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an object from the version of the resource to the stored version of its table.
#[must_use]
pub fn to_stored(resource: &Resource, mut value: Value) -> Value {
    if let Shape::Custom(custom) = &resource.shape {
        crate::crd::to_stored(custom, &mut value);
    }
    if resource.has_api_version(&resource.stored_as) {
        return value;
    }
    match (&*resource.group, &*resource.plural) {
        ("events.k8s.io", "events") => rename_fields(&mut value, EVENT_FIELDS.map(|(core, new)| (new, core))),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler_to_v2(&mut value),
        _ => {}
    }
    tree::set(&mut value, &["apiVersion"], &*resource.stored_as);
    value
}

/// Converts a stored object to the version of the resource.
#[must_use]
pub fn from_stored(resource: &Resource, mut value: Value) -> Value {
    if is_as_stored(resource) {
        return value;
    }
    match (&*resource.group, &*resource.plural) {
        ("events.k8s.io", "events") => rename_fields(&mut value, EVENT_FIELDS),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler_to_v1(&mut value),
        _ => {
            if let Shape::Custom(custom) = &resource.shape {
                crate::crd::from_stored(custom, &mut value);
            }
        }
    }
    tree::set(&mut value, &["apiVersion"], resource.api_version());
    value
}

/// Returns whether stored objects need no conversion.
#[must_use]
pub fn is_as_stored(resource: &Resource) -> bool {
    let changed = matches!(&resource.shape, Shape::Custom(custom) if !custom.as_stored);
    !changed && resource.has_api_version(&resource.stored_as)
}

fn rename_fields<const N: usize>(value: &mut Value, pairs: [(&str, &str); N]) {
    if let Some(map) = value.as_object_mut() {
        for (from, to) in pairs {
            if let Some(moved) = map.remove(from) {
                map.insert(to.to_owned(), moved);
            }
        }
    }
}

fn autoscaler_to_v2(value: &mut Value) {
    if let Some(target) = tree::remove(value, &["spec", "targetCPUUtilizationPercentage"]) {
        let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}]);
        tree::set(value, &["spec", "metrics"], metric);
    }
}

fn autoscaler_to_v1(value: &mut Value) {
    for field in ["currentMetrics", "conditions"] {
        tree::remove(value, &["status", field]);
    }
    let metrics = tree::remove(value, &["spec", "metrics"]);
    let cpu = metrics
        .iter()
        .flat_map(|list| tree::list(list, &[]))
        .find(|metric| tree::text(metric, &["resource", "name"]) == "cpu");
    if let Some(target) =
        cpu.and_then(|metric| tree::get(metric, &["resource", "target", "averageUtilization"]))
    {
        tree::set(value, &["spec", "targetCPUUtilizationPercentage"], target.clone());
    }
}
