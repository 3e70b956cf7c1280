//! Tests for the detection of settings on both platforms.

use kube::api::{DynamicObject, PostParams};
use kube::{Api, ResourceExt as _};
use mainstay_mesh::TlsVersion;
use mainstay_sim::{Cluster, Options};
use serde_json::json;

use super::*;
use crate::testing::client;

fn crd(group: &str, kind: &str, plural: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

async fn create(client: &Client, resource: &kube::api::ApiResource, object: serde_json::Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn crd_resource() -> kube::api::ApiResource {
    let kind = kube::api::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    kube::api::ApiResource::from_gvk(&kind)
}

/// Creates a cluster that is detected as `OpenShift`, with this TLS configuration.
async fn openshift(spec: serde_json::Value) -> (Cluster, Client) {
    let cluster = Cluster::new(Options::default());
    let client = client(&cluster, "admin");
    create(
        &client,
        &crd_resource(),
        crd(
            "operator.openshift.io",
            "OpenShiftAPIServer",
            "openshiftapiservers",
        ),
    )
    .await;
    create(
        &client,
        &crd_resource(),
        crd("config.openshift.io", "APIServer", "apiservers"),
    )
    .await;
    cluster.advance(Duration::from_secs(5));
    let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"}, "spec": spec});
    create(&client, &tls::api_resource(), object).await;
    (cluster, client)
}

#[tokio::test(start_paused = true)]
async fn plain_kubernetes_has_no_tls_profile() {
    let cluster = Cluster::new(Options::default());
    let inputs = Inputs {
        operator_namespace: "ops".into(),
        fips: true,
        ..Inputs::default()
    };
    let found = detect(&client(&cluster, "operator"), inputs).await.unwrap();
    let settings = found.settings;
    assert_eq!(
        (settings.platform, settings.tls, found.tls),
        (Platform::Kubernetes, None, None)
    );
    assert_eq!(
        (settings.operator_namespace.as_str(), settings.fips),
        ("ops", true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_given_platform_is_not_detected() {
    let (_cluster, client) = openshift(json!({})).await;
    let given = Inputs {
        platform: Some(Platform::Kubernetes),
        ..Inputs::default()
    };
    let found = detect(&client, given).await.unwrap();
    assert_eq!(found.settings.platform, Platform::Kubernetes);
    let found = detect(&client, Inputs::default()).await.unwrap();
    assert_eq!(found.settings.platform, Platform::OpenShift);
}

#[tokio::test(start_paused = true)]
async fn openshift_configures_tls() {
    let strict = json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Modern", "modern": {}}});
    let (_cluster, client) = openshift(strict).await;
    let found = detect(&client, Inputs::default()).await.unwrap();
    assert_eq!(found.settings.platform, Platform::OpenShift);
    assert_eq!(found.settings.tls.unwrap().min_version, Some(TlsVersion::V1_3));

    let (_cluster, client) = openshift(json!({})).await;
    let found = detect(&client, Inputs::default()).await.unwrap();
    assert_eq!(found.settings.tls, None);
    assert!(
        found.tls.is_some(),
        "the profile is watched, because the policy may change"
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_tls_profile_is_an_error() {
    let (_cluster, client) =
        openshift(json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Custom"}}))
            .await;
    let error = detect(&client, Inputs::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "unable to fetch TLS config");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_tls_profile_is_detected() {
    let strict =
        |kind: &str| json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": kind}});
    let (cluster, client) = openshift(strict("Modern")).await;
    let start = tls::fetch(&client).await.unwrap();
    let changed = tokio::spawn(tls::wait_for_change(
        crate::testing::client(&cluster, "operator"),
        start,
    ));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!changed.is_finished(), "unchanged");

    let api: Api<DynamicObject> = Api::all_with(client, &tls::api_resource());
    let mut object = api.get("cluster").await.unwrap();
    object.labels_mut().insert("a".into(), "b".into());
    object = api
        .replace("cluster", &PostParams::default(), &object)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!changed.is_finished(), "a label change is ignored");

    object.data["spec"] = strict("Old");
    api.replace("cluster", &PostParams::default(), &object)
        .await
        .unwrap();
    let why = changed.await.unwrap();
    assert_eq!(
        why,
        "TLS profile has changed, initiating shutdown to reload configuration"
    );
}

#[test]
fn the_namespace_is_read_from_the_environment_or_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namespace");
    let check = |environment: Option<&str>, expected: &str| {
        let found = operator_namespace(environment.map(str::to_owned), &file);
        assert_eq!(
            found.unwrap_or_else(|error| error.to_string()),
            expected,
            "{environment:?}"
        );
    };
    let unknown = "can't determine namespace this operator is running in; if running outside of a pod, please set the POD_NAMESPACE environment variable";
    check(None, unknown);
    check(Some(""), unknown);
    check(Some("a"), "a");
    std::fs::write(&file, "from-file\n").unwrap();
    check(None, "from-file");
    check(Some("a"), "a");
    std::fs::write(&file, "").unwrap();
    check(None, unknown);
}

#[test]
fn vendor_defaults_are_empty_without_a_file() {
    assert_eq!(vendor_defaults(None).unwrap(), VendorDefaults::new());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("defaults.yaml");
    let check = |text: &str, expected: &str| {
        std::fs::write(&file, text).unwrap();
        let found = vendor_defaults(Some(&file)).map(|found| serde_json::to_string(&found).unwrap());
        let shown =
            found.unwrap_or_else(|error| error.to_string().replace(&file.display().to_string(), "FILE"));
        assert_eq!(shown, expected, "{text}");
    };
    check(
        "v1.29.1:\n  istio: {pilot: {replicas: 2}}\n",
        r#"{"v1.29.1":{"istio":{"pilot":{"replicas":2}}}}"#,
    );
    check("", "{}");
    check(
        "v1.29.1: {istio: [1]}",
        "failed to read vendor defaults FILE: vendor defaults for resource 'istio' (version 'v1.29.1') are not a map[string]any",
    );
    check(
        "- a",
        "failed to read vendor defaults FILE: expected versions with `istio` or `istiocni` below them",
    );
    let error = vendor_defaults(Some(&directory.path().join("none"))).unwrap_err();
    assert!(
        error.to_string().starts_with("failed to read vendor defaults "),
        "{error}"
    );
}
