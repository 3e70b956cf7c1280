//! Tests the definitions. `tests/upstream` compares them with those of the Sail Operator.

use super::*;

fn names() -> VersionNames<'static> {
    VersionNames {
        all: &["v1.29-latest", "v1.29.1", "v1.28.2"],
        concrete: &["v1.29.1", "v1.28.2"],
        ambient: &["v1.29.1"],
        default: "v1.29.1",
    }
}

/// Collects the paths below `value` that accept any content.
fn open_paths(value: &Value, path: &str, out: &mut Vec<String>) {
    if value.get("x-kubernetes-preserve-unknown-fields").is_some() {
        out.push(path.to_owned());
    }
    if let Some(properties) = value.get("properties").and_then(Value::as_object) {
        for (name, field) in properties {
            open_paths(field, &format!("{path}.{name}"), out);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = value.get(key) {
            open_paths(inner, &format!("{path}[]"), out);
        }
    }
}

#[test]
fn every_referenced_type_is_defined() {
    for definition in definitions(&names()) {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let mut open = Vec::new();
            open_paths(&version["schema"]["openAPIV3Schema"], kind, &mut open);
            let expected: &[&str] = match kind {
                "Istio" | "IstioRevision" => &["spec.values.experimental", "spec.values.gatewayClasses"],
                _ => &[],
            };
            let expected: Vec<String> = expected.iter().map(|path| format!("{kind}.{path}")).collect();
            assert_eq!(open, expected);
        }
    }
}

#[test]
fn a_missing_spec_gets_the_defaults() {
    let istio = definitions(&names())
        .into_iter()
        .find(|one| one["spec"]["names"]["kind"] == "Istio")
        .unwrap();
    let spec = &istio["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let expected =
        json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": {"type": "InPlace"}});
    assert_eq!(spec["default"], expected);
    assert_eq!(
        spec["properties"]["version"]["enum"],
        json!(["v1.29-latest", "v1.29.1", "v1.28.2"])
    );
}
