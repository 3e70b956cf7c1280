//! Removes nulls, empty lists and empty dictionaries. Upstream reads values into typed structs and writes
//! them again, which drops exactly these, so an empty list of the user does not override the list of a
//! profile.

use mainstay_api::Values;
use serde_json::Value;

/// Keys whose values are dictionaries. All other maps are structs, which are kept even if they are empty.
const DICTIONARIES: [&str; 25] = [
    "annotations",
    "customTags",
    "daemonSetLabels",
    "defaultNodeSelector",
    "deploymentLabels",
    "env",
    "includeAdditionalHeadersInCheck",
    "injectedAnnotations",
    "labels",
    "limits",
    "matchLabels",
    "meshNetworks",
    "nodeSelector",
    "options",
    "podAnnotations",
    "podLabels",
    "proxyMetadata",
    "requests",
    "runtimeValues",
    "serviceAccountAnnotations",
    "serviceAnnotations",
    "templates",
    "to",
    "userAnnotations",
    "volumeAttributes",
];

/// Keys with arbitrary content, which is not changed.
const RAW: [&str; 2] = ["experimental", "gatewayClasses"];

/// Removes empty values. Values come from parsers with a depth limit, so recursion is safe.
pub(super) fn remove_empty(values: &mut Values) {
    values.retain(|key, value| {
        if RAW.contains(&key.as_str()) {
            return true;
        }
        remove_empty_in(value);
        !is_empty(key, value)
    });
}

fn remove_empty_in(value: &mut Value) {
    match value {
        Value::Object(map) => remove_empty(map),
        Value::Array(items) => items.iter_mut().for_each(remove_empty_in),
        _ => {}
    }
}

fn is_empty(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && DICTIONARIES.contains(&key),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    fn check(before: &str, after: &str) {
        let mut values = map(before);
        remove_empty(&mut values);
        assert_eq!(to_json(&values), after, "{before}");
    }

    #[test]
    fn empty_values_are_removed() {
        check("{}", "{}");
        check(r#"{"pilot":{"tolerations":[]}}"#, r#"{"pilot":{}}"#);
        check(r#"{"pilot":{"env":{}}}"#, r#"{"pilot":{}}"#);
        check(r#"{"pilot":null}"#, "{}");
        check(
            r#"{"meshConfig":{"extensionProviders":[{"name":"a","x":{"headers":[]}}]}}"#,
            r#"{"meshConfig":{"extensionProviders":[{"name":"a","x":{}}]}}"#,
        );
    }

    #[test]
    fn other_values_are_kept() {
        for text in [
            r#"{"pilot":{}}"#,
            r#"{"pilot":{"autoscaleEnabled":false,"replicaCount":0,"tag":""}}"#,
            r#"{"global":{"proxy":{}}}"#,
            r#"{"experimental":{"list":[],"map":{},"none":null}}"#,
            r#"{"gatewayClasses":{"istio":{"deployment":{"metadata":{"labels":{}}}}}}"#,
        ] {
            check(text, text);
        }
    }

    fn dictionaries(schema: &Value, found: &mut std::collections::BTreeSet<String>) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            if inner.get("additionalProperties").is_some() {
                found.insert(key.clone());
            }
            dictionaries(inner, found);
            dictionaries(&inner["items"], found);
            dictionaries(&inner["additionalProperties"], found);
        }
    }

    #[test]
    fn dictionaries_equal_those_of_the_definitions() {
        let names = mainstay_api::crd::VersionNames {
            all: &["v1.29.1"],
            concrete: &["v1.29.1"],
            ambient: &["v1.29.1"],
            default: "v1.29.1",
        };
        let mut found = std::collections::BTreeSet::new();
        for definition in mainstay_api::crd::definitions(&names) {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            dictionaries(&schema["properties"]["spec"]["properties"]["values"], &mut found);
        }
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, DICTIONARIES);
    }
}
