//! The mesh without Istio in it: pods with networks, Services and names, ends in their order, and no way out.
//! Needs root.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails"
)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use mainstay_testkit::cluster;
use mainstay_testkit::mesh::{
    self, APP_IMAGE, APP_PORT, Load, Mesh, MeshOptions, READY, UPSTREAM, become_app, http,
};
use mainstay_testkit::suite::{self, TestCase};
use serde_json::{Value, json};

const TEST_CASES: &[TestCase] = &[TestCase {
    name: "mesh",
    start: || Box::pin(pods_services_and_ends()),
}];

fn main() -> ExitCode {
    if let Some(code) = become_app() {
        return code;
    }
    let peers = [cluster::PARTS.as_slice(), mesh::PARTS.as_slice()].concat();
    suite::main_as_root(&peers, TEST_CASES)
}

const TIMEOUT: Duration = Duration::from_secs(2);

struct Village {
    mesh: Mesh,
    pods: Api<Pod>,
    services: Api<Service>,
}

impl Village {
    async fn found() -> Self {
        let mesh = Mesh::start(MeshOptions::default())
            .await
            .unwrap_or_else(|error| panic!("{}", suite::error_chain(&error)));
        let client = mesh.cluster().client("admin").unwrap();
        Self {
            pods: Api::default_namespaced(client.clone()),
            services: Api::default_namespaced(client),
            mesh,
        }
    }

    async fn pod(&self, name: &str, upstream: Option<&str>) {
        let env: Vec<Value> = upstream
            .map(|host| json!({"name": UPSTREAM, "value": host}))
            .into_iter()
            .collect();
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 15, "containers": [{
                "name": "app", "image": APP_IMAGE, "env": env,
                "readinessProbe": {"httpGet": {"path": READY, "port": APP_PORT}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
            }]},
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn service(&self, name: &str) -> SocketAddr {
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": APP_PORT}]},
        });
        let service = serde_json::from_value(service).unwrap();
        self.services
            .create(&PostParams::default(), &service)
            .await
            .unwrap();
        self.mesh.address("default", name, 80).await.unwrap()
    }

    /// The response of an address, as soon as there is one.
    async fn response(&self, address: SocketAddr) -> String {
        let begin = Instant::now();
        loop {
            let asked = tokio::task::spawn_blocking(move || http::get(address, "/", TIMEOUT));
            match asked.await.unwrap() {
                Ok(reply) if reply.code == 200 => return reply.body,
                other if begin.elapsed() > Duration::from_secs(30) => {
                    panic!("{address}: {other:?}\n{}", self.trace().await)
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// How the pods are, and what they said last.
    async fn trace(&self) -> String {
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        let pods = pods.iter().map(|pod| {
            let status = serde_json::to_string(&pod.status).unwrap();
            format!("{}: {status}\n", pod.name_any())
        });
        pods.collect::<String>() + &self.mesh.log_tail("", 10)
    }
}

async fn pods_services_and_ends() {
    let village = Village::found().await;
    let (front, back) = (village.service("front").await, village.service("back").await);
    village.pod("back", None).await;
    village
        .pod("front", Some("back.default.svc.cluster.local:80"))
        .await;
    assert_eq!(village.response(back).await, "back");
    assert_eq!(
        village.response(front).await,
        "front > back",
        "by its name and its Service"
    );
    every_pod_has_its_own_loopback(&village).await;
    nothing_leaves(&village).await;
    a_pod_that_ends_is_left_in_peace(&village, back).await;
    a_killed_server_is_started_again(&village, front).await;
    println!("mesh: Services, names, networks, ends, restarts; nothing leaves");
}

async fn every_pod_has_its_own_loopback(village: &Village) {
    for (pod, said) in [("back", "back"), ("front", "front > back")] {
        let received = village.mesh.ask("default", pod, APP_PORT, "/").await.unwrap();
        assert_eq!(received, said);
    }
}

async fn nothing_leaves(village: &Village) {
    for (pod, address) in [("front", "192.0.2.1:443"), ("back", "1.1.1.1:53")] {
        let reached = village.mesh.dial("default", pod, address.parse().unwrap()).await;
        assert!(reached.is_err(), "{pod} reached {address}");
    }
}

/// During its preStop hook it serves new connections; then it is gone.
async fn a_pod_that_ends_is_left_in_peace(village: &Village, back: SocketAddr) {
    village.pod("spare", None).await;
    let spare = village.service("spare").await;
    village.response(spare).await;
    let ip = village
        .pods
        .get("spare")
        .await
        .unwrap()
        .status
        .unwrap()
        .pod_ip
        .unwrap();
    let address: SocketAddr = format!("{ip}:{APP_PORT}").parse().unwrap();
    let load = Load::start(back, 50);
    village
        .pods
        .delete("spare", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(
        village.response(address).await,
        "spare",
        "it waits before it ends"
    );
    let begin = Instant::now();
    while village.pods.get_opt("spare").await.unwrap().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let asked = tokio::task::spawn_blocking(move || http::get(address, "/", Duration::from_millis(300)));
    assert!(asked.await.unwrap().is_err(), "it is gone");
    let results = load.finish();
    assert_eq!(results.failures().count(), 0, "others do not notice");
    assert!(results.sent() > 20);
}

async fn a_killed_server_is_started_again(village: &Village, front: SocketAddr) {
    village.mesh.kill("default", "front", "app").unwrap();
    assert_eq!(village.response(front).await, "front > back");
    let pod = village.pods.get("front").await.unwrap();
    let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
    assert_eq!(restarts, 1);
}
