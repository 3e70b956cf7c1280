//! Runs the unmodified client and runtime of kube on the simulated API.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

#[path = "support/runtime.rs"]
mod runtime;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use mainstay_sim::Cluster;
use runtime::config_map;
use serde_json::json;

fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.connect("test"), "default")
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
        // The first item is the error that the version of the watch was compacted.
        if events.next().await.unwrap().is_ok() {
            relisted += 1;
        }
    }
}

#[tokio::test]
async fn a_rejected_service_releases_its_address() {
    let cluster = Cluster::default();
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::default_namespaced(client(&cluster));
    let service = |name: &str, port: i32| {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"ports": [{"port": port}]}}))
            .unwrap()
    };
    let first = services
        .create(&PostParams::default(), &service("a", 80))
        .await
        .unwrap();
    services
        .create(&PostParams::default(), &service("b", 0))
        .await
        .unwrap_err();
    let second = services
        .create(&PostParams::default(), &service("c", 80))
        .await
        .unwrap();
    let last = |service: &k8s_openapi::api::core::v1::Service| -> u8 {
        let ip = service.spec.as_ref().unwrap().cluster_ip.clone().unwrap();
        ip.rsplit('.').next().unwrap().parse().unwrap()
    };
    assert_eq!(last(&second), last(&first) + 1);
}

/// Defines a test that runs one function of the suite.
macro_rules! test {
    ($name:ident) => {
        #[tokio::test]
        async fn $name() {
            runtime::$name(client(&Cluster::default()), "default").await;
        }
    };
}
runtime::suite!(test);
