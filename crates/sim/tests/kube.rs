//! kube's own client and runtime, unmodified, on the simulated API.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use mainstay_sim::Cluster;
use serde_json::json;

fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.connect("test"), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

#[tokio::test]
async fn the_client_creates_reads_changes_and_deletes() {
    let cluster = Cluster::default();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    let made = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    assert_eq!(made.data.unwrap()["k"], "1");
    let patch = json!({"data": {"k": "2", "l": "3"}});
    let changed = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_ne!(changed.resource_version(), made.metadata.resource_version);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let error = maps.get("a").await.unwrap_err().to_string();
    assert!(error.contains("configmaps \"a\" not found"), "{error}");
}

#[tokio::test]
async fn a_reflector_with_streaming_lists_follows_the_store() {
    let cluster = Cluster::default();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    for number in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number}"), "1"))
            .await
            .unwrap();
    }
    let (store, writer): (Store<ConfigMap>, _) = reflector::store();
    let stream = watcher(maps.clone(), watcher::Config::default().streaming_lists());
    let mut events = Box::pin(stream.default_backoff().reflect(writer).applied_objects());
    for _ in 0..5 {
        events.try_next().await.unwrap();
    }
    maps.create(&PostParams::default(), &config_map("late", "1"))
        .await
        .unwrap();
    let seen = events.try_next().await.unwrap().unwrap();
    assert_eq!(seen.name_any(), "late");
    assert_eq!(store.state().len(), 6);
}

#[tokio::test]
async fn a_reflector_with_pages_survives_a_compacted_history() {
    let cluster = Cluster::default();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&cluster));
    for number in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number}"), "1"))
            .await
            .unwrap();
    }
    let stream = watcher(maps.clone(), watcher::Config::default().page_size(2));
    let mut events = Box::pin(stream.applied_objects());
    for _ in 0..5 {
        events.try_next().await.unwrap();
    }
    maps.create(&PostParams::default(), &config_map("late", "1"))
        .await
        .unwrap();
    cluster.with(|state| state.store.compact(state.store.version()));
    let mut relisted = 0;
    while relisted < 6 {
        // The first item is the error that the watch was too far behind.
        if events.next().await.unwrap().is_ok() {
            relisted += 1;
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NoError {}

async fn reconcile(deployment: Arc<Deployment>, client: Arc<Client>) -> Result<Action, NoError> {
    let deployments: Api<Deployment> = Api::default_namespaced((*client).clone());
    let generation = deployment.metadata.generation;
    if deployment
        .status
        .as_ref()
        .and_then(|status| status.observed_generation)
        != generation
    {
        let patch = json!({"status": {"observedGeneration": generation}});
        let name = deployment.name_any();
        deployments
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_controller_reconciles_until_nothing_changes() {
    let cluster = Cluster::default();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&cluster));
    let config = watcher::Config::default().streaming_lists();
    let controller = Controller::new(deployments.clone(), config);
    let run = controller.run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(client(&cluster)),
    );
    let mut run = Box::pin(run);
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let mut reconciled = 0;
    while deployments
        .get("web")
        .await
        .unwrap()
        .status
        .unwrap()
        .observed_generation
        != Some(1)
    {
        run.next().await.unwrap().unwrap();
        reconciled += 1;
    }
    let scale = json!({"spec": {"replicas": 3}});
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&scale))
        .await
        .unwrap();
    while deployments
        .get("web")
        .await
        .unwrap()
        .status
        .unwrap()
        .observed_generation
        != Some(2)
    {
        run.next().await.unwrap().unwrap();
        reconciled += 1;
    }
    assert!(reconciled >= 2);
}
