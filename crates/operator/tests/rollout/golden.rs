//! Golden files with objects of rollouts as YAML.

use std::path::Path;

use mainstay_yaml::{Budget, Numbers, parse_json, to_yaml_v3};
use serde_json::Value;

/// Fields that the server adds or that differ between runs.
const SERVER_FIELDS: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "clusterIP",
    "clusterIPs",
    "status",
];

fn without_server_fields(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !SERVER_FIELDS.contains(&key.as_str()));
            map.values_mut().for_each(without_server_fields);
        }
        Value::Array(list) => list.iter_mut().for_each(without_server_fields),
        _ => {}
    }
}

/// Returns an object of a cluster as YAML, without fields that the server adds.
pub(crate) fn golden_text(cluster: &str, mut object: Value) -> String {
    without_server_fields(&mut object);
    let value = parse_json(object.to_string(), Numbers::Exact, &Budget::default()).unwrap();
    format!("--- # cluster {cluster}\n{}", to_yaml_v3(&value).unwrap())
}

/// Returns an object as YAML without its namespace and without the hash, which depends on the namespace.
pub(crate) fn golden_text_in_any_namespace(cluster: &str, mut object: Value) -> String {
    let metadata = &mut object["metadata"];
    metadata.as_object_mut().unwrap().remove("namespace");
    metadata["annotations"]
        .as_object_mut()
        .unwrap()
        .remove("delivery.mainstay.dev/manifest-hash");
    golden_text(cluster, object)
}

/// Compares objects with a golden file, or writes the file if `BLESS` is set.
pub(crate) fn check_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/rollout/golden/{name}.yaml"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == found, "{name} differs from the golden file:\n{found}");
}
