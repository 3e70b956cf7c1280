//! Checks that definitions are accepted and all their rules compile: the definitions of each available Istio
//! version and of the operator's chart.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use mainstay_sim::{Cluster, snapshot};
use serde_json::{Value, json};

/// Creates all definitions of a file in a new cluster. Returns the number of their rules.
async fn create_definitions(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let cluster = Cluster::default();
    let client = kube::Client::new(cluster.connect("definitions"), "default");
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let mut rules = 0;
    for document in snapshot::parse(&text).unwrap() {
        rules += count_rules(&document);
        let name = document.pointer("/metadata/name").unwrap().to_string();
        let definition: CustomResourceDefinition = serde_json::from_value(document).unwrap();
        let created = definitions.create(&PostParams::default(), &definition).await;
        let created = created.unwrap_or_else(|error| panic!("{} {name}: {error}", file.display()));
        let name = created.metadata.name.unwrap();
        let live = definitions.get(&name).await.unwrap();
        let conditions = live.status.unwrap().conditions.unwrap();
        assert!(
            conditions
                .iter()
                .any(|one| one.type_ == "Established" && one.status == "True"),
            "{name}"
        );
    }
    rules
}

fn count_rules(value: &Value) -> usize {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, below)| match below {
                Value::Array(rules) if key == "x-kubernetes-validations" => rules.len(),
                below => count_rules(below),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_rules).sum(),
        _ => 0,
    }
}

fn list_directory(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// Requires the charts: run `cargo xtask charts` first, as `cargo xtask test` does.
#[tokio::test]
async fn istio_definitions_of_every_version_are_accepted() {
    let resources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resources");
    let mut versions = 0;
    for version in list_directory(&resources) {
        let file = version.join("installer/charts/base/files/crd-all.gen.yaml");
        if file.exists() {
            assert!(create_definitions(&file).await > 100, "{}", file.display());
            versions += 1;
        }
    }
    assert!(versions > 0, "no charts in resources/: run `cargo xtask charts`");
}

#[tokio::test]
async fn definitions_of_the_operator_chart_are_accepted() {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/crds");
    let files = list_directory(&crds);
    assert_eq!(files.len(), 5, "{files:?}");
    for file in files {
        create_definitions(&file).await;
    }
}

#[tokio::test]
async fn invalid_definitions_are_rejected() {
    let wrong = r#"{"metadata": {"name": "a.b.c"}, "spec": {"group": "b.c", "scope": "Cluster", "names": {"plural": "a", "kind": "A"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
        {"type": "object", "x-kubernetes-validations": [{"rule": "self.nope"}]}}}]}}"#;
    let cluster = Cluster::default();
    let definitions: Api<CustomResourceDefinition> =
        Api::all(kube::Client::new(cluster.connect("definitions"), "default"));
    let error = definitions
        .create(&PostParams::default(), &serde_json::from_str(wrong).unwrap())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("undefined field 'nope'"), "{error}");
}

/// Creates a custom object with a scale subresource and returns the causes of its rejection.
async fn check_scaled(object: Value, expected: &[&str]) {
    let definition = json!({"metadata": {"name": "a.b.c"}, "spec": {"group": "b.c", "scope": "Cluster", "names": {"plural": "a", "kind": "A"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector"}}}]}});
    let cluster = Cluster::default();
    let client = kube::Client::new(cluster.connect("definitions"), "default");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_value(definition).unwrap();
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("b.c", "v1", "A"), "a");
    let objects: Api<DynamicObject> = Api::all_with(client, &kind);
    let object = DynamicObject::new("x", &kind).data(object);
    let found = match objects.create(&PostParams::default(), &object).await {
        Ok(_) => Vec::new(),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.unwrap().causes;
            assert!(!causes.is_empty(), "{}", status.message);
            causes
        }
        Err(error) => panic!("{error}"),
    };
    let found: Vec<String> = found
        .into_iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    assert_eq!(found, expected, "{:?}", object.data);
}

#[tokio::test]
async fn the_fields_of_the_scale_subresource_are_checked() {
    check_scaled(json!({"spec": {"replicas": 1}, "status": null}), &[]).await;
    check_scaled(
        json!({"spec": {"replicas": -1}, "status": {"replicas": 1u64 << 31, "selector": ["a", {"b": null}]}}),
        &[
            ".spec.replicas: Invalid value: -1: should be a non-negative integer",
            ".status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ".status.selector: Invalid value: \"\": .status.selector accessor error: [a map[b:<nil>]] is of the type []interface {}, expected string",
        ],
    )
    .await;
    check_scaled(
        json!({"spec": {"replicas": 1.5}, "status": {"replicas": {"b": "c"}}}),
        &[
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 1.5 is of the type float64, expected int64",
            ".status.replicas: Invalid value: 0: .status.replicas accessor error: map[b:c] is of the type map[string]interface {}, expected int64",
        ],
    )
    .await;
    let parent = "accessor error: 5.0000005e+06 is of the type float64, expected map[string]interface{}";
    check_scaled(
        json!({"spec": {}, "status": 5_000_000.5}),
        &[
            &format!(".status.replicas: Invalid value: 0: .status.replicas {parent}"),
            &format!(".status.selector: Invalid value: \"\": .status.selector {parent}"),
        ],
    )
    .await;
}
