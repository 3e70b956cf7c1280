//! A real istiod behind the pods of its rendered chart: a pod in a labelled namespace comes out of the real
//! webhook injected.

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
use serde_json::{Value, json};

use crate::kubelet::until;

pub(crate) const TEST_CASES: &[TestCase] = test_cases!["istiod::it_injects" => both_versions()];

const HOME: &str = "istio-system";

async fn both_versions() {
    futures::join!(it_injects("1.28.2"), it_injects("1.29.1"));
}

async fn it_injects(version: &str) {
    built_peer(&format!("pilot-discovery-{version}")).unwrap_or_else(|error| panic!("{error}"));
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let options = KubeletOptions {
        backing: Some(Arc::new(Istiods::new(&cluster).unwrap())),
        ..KubeletOptions::default()
    };
    let _kubelet = Kubelet::start(&cluster, options).await.unwrap();
    let client = cluster.client("admin").unwrap();
    make_namespace(&client, json!({"name": HOME})).await;
    for chart in ["base", "istiod"] {
        apply(&client, &rendered(version, chart)).await;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), HOME);
    until("istiod is available", async || {
        let status = deployments
            .get("istiod")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        status.available_replicas == Some(1)
    })
    .await;
    make_namespace(
        &client,
        json!({"name": "shop", "labels": {"istio-injection": "enabled"}}),
    )
    .await;
    let pod = injected(&client).await;
    println!("istiod {version} injected {}", images(&pod).join(", "));
    assert_eq!(pod.annotations()["istio.io/rev"], "default");
    assert!(
        images(&pod)
            .iter()
            .any(|image| image.ends_with(&format!("/proxyv2:{version}")))
    );
}

fn rendered(version: &str, chart: &str) -> Vec<Value> {
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.resolve(version).unwrap();
    let files = catalog.chart(&version, Flavour::Installer, chart).unwrap();
    let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
    let mut request = Request::new(Dialect::Helm4);
    chart.clone_into(&mut request.render.release.name);
    HOME.clone_into(&mut request.render.release.namespace);
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

async fn make_namespace(client: &Client, metadata: Value) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
}

/// Server-side apply of everything, in order.
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
                let namespace = object.namespace().unwrap_or_else(|| HOME.to_owned());
                Api::namespaced_with(client.clone(), &namespace, &resource)
            }
        };
        let applied = api
            .patch(&object.name_any(), &params, &Patch::Apply(&object))
            .await;
        applied.unwrap_or_else(|error| panic!("{} {}: {error}", types.kind, object.name_any()));
    }
}

/// The webhook rejects pods until the API server has found its endpoint; then it must change them.
async fn injected(client: &Client) -> Pod {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "shop");
    let pod =
        json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    until("the webhook lets a pod pass", async || {
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
