//! Tests a real istiod process for the pods of its rendered chart: its webhook injects a sidecar into a pod
//! of a labeled namespace.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client, ResourceExt};
use mainstay_catalog::{Catalog, Flavour};
use mainstay_chart::{Dialect, File, RenderEnvironment, Request, load_files, template};
use mainstay_template::NoHost;
use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::istiod::Istiods;
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;
use serde_json::{Value, json};

use crate::kubelet::wait_until;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases!["istiod::injects_sidecars" => both_versions()];

const NAMESPACE: &str = "istio-system";

async fn both_versions() {
    futures::join!(injects_sidecars("1.28.2"), injects_sidecars("1.29.1"));
}

async fn injects_sidecars(version: &str) {
    built_peer(&format!("pilot-discovery-{version}")).unwrap_or_else(|error| panic!("{error}"));
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let options = KubeletOptions {
        backend: Some(Arc::new(Istiods::new(&cluster).unwrap())),
        ..KubeletOptions::default()
    };
    let _kubelet = Kubelet::start(&cluster, options).await.unwrap();
    let client = cluster.client("admin").unwrap();
    create_namespace(&client, json!({"name": NAMESPACE})).await;
    for chart in ["base", "istiod"] {
        apply(&client, &render(version, chart)).await;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    wait_until("istiod is available", async || {
        let status = deployments
            .get("istiod")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        status.available_replicas == Some(1)
    })
    .await;
    create_namespace(
        &client,
        json!({"name": "shop", "labels": {"istio-injection": "enabled"}}),
    )
    .await;
    let pod = create_injected_pod(&client).await;
    println!("istiod {version} injected {}", images(&pod).join(", "));
    assert_eq!(pod.annotations()["istio.io/rev"], "default");
    assert!(
        images(&pod)
            .iter()
            .any(|image| image.ends_with(&format!("/proxyv2:{version}")))
    );
}

fn render(version: &str, chart: &str) -> Vec<Value> {
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.resolve(version).unwrap();
    let files = catalog.chart(&version, Flavour::Installer, chart).unwrap();
    let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
    let mut request = Request::new(Dialect::Helm4);
    chart.clone_into(&mut request.render.release.name);
    NAMESPACE.clone_into(&mut request.render.release.namespace);
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    let text = template(&load_files(files, Dialect::Helm4).unwrap(), &request, environment)
        .unwrap()
        .text;
    mainstay_sim::snapshot::parse(&String::from_utf8(text).unwrap()).unwrap()
}

async fn create_namespace(client: &Client, metadata: Value) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
}

/// Applies all objects server-side, in order.
async fn apply(client: &Client, objects: &[Value]) {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let params = PatchParams::apply("mainstay").force();
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let types = object.types.clone().unwrap();
        let kind = GroupVersionKind::try_from(&types).unwrap();
        let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap();
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Cluster => Api::all_with(client.clone(), &resource),
            Scope::Namespaced => {
                let namespace = object.namespace().unwrap_or_else(|| NAMESPACE.to_owned());
                Api::namespaced_with(client.clone(), &namespace, &resource)
            }
        };
        let applied = api
            .patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await;
        applied.unwrap_or_else(|error| panic!("{} {}: {error}", types.kind, object.name_any()));
    }
}

/// Creates a pod and returns it as stored. Creation is retried, because pods are rejected until the API
/// server knows the endpoint of the webhook.
async fn create_injected_pod(client: &Client) -> Pod {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    let pod =
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    wait_until("the webhook admits a pod", async || {
        pods.create(&PostParams::default(), &pod).await.is_ok()
    })
    .await;
    pods.get("web").await.unwrap()
}

fn images(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.as_ref().unwrap();
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    all.filter(|container| container.name == "istio-proxy")
        .filter_map(|container| container.image.clone())
        .collect()
}
