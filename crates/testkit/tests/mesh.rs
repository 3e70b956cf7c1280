//! Tests the mesh without Istio: pod networks, Services, DNS names, graceful termination and isolation.
//! Requires root.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use mainstay_testkit::mesh::{
    self, APP_IMAGE, APP_PORT, Load, Mesh, MeshOptions, READY, UPSTREAM, become_app,
};
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::{cluster, http};
use serde_json::{Value, json};

const TEST_CASES: &[TestCase] = &[TestCase {
    name: "mesh",
    start: || Box::pin(pods_services_and_termination()),
}];

fn main() -> ExitCode {
    if let Some(code) = become_app() {
        return code;
    }
    let peers = [cluster::PARTS.as_slice(), mesh::PARTS.as_slice()].concat();
    suite::main_as_root(&peers, TEST_CASES)
}

const TIMEOUT: Duration = Duration::from_secs(2);

struct TestMesh {
    mesh: Mesh,
    pods: Api<Pod>,
    services: Api<Service>,
}

impl TestMesh {
    async fn start() -> Self {
        let mesh = Mesh::start(MeshOptions::default())
            .await
            .unwrap_or_else(|error| panic!("{}", mainstay_gostd::error::chain(&error)));
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

    /// Requests `/` until the status code is 200 and returns the body. Panics after 30 seconds.
    async fn response(&self, address: SocketAddr) -> String {
        let begin = Instant::now();
        loop {
            let response = tokio::task::spawn_blocking(move || http::get(address, "/", TIMEOUT));
            match response.await.unwrap() {
                Ok(reply) if reply.code == 200 => return reply.body,
                other if begin.elapsed() > Duration::from_secs(30) => {
                    panic!("{address}: {other:?}\n{}", self.diagnostics().await)
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Returns the status of all pods and the last lines of their logs.
    async fn diagnostics(&self) -> String {
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        let pods = pods.iter().map(|pod| {
            let status = serde_json::to_string(&pod.status).unwrap();
            format!("{}: {status}\n", pod.name_any())
        });
        pods.collect::<String>() + &self.mesh.log_tail("", 10)
    }
}

async fn pods_services_and_termination() {
    let mesh = TestMesh::start().await;
    let (front, back) = (mesh.service("front").await, mesh.service("back").await);
    mesh.pod("back", None).await;
    mesh.pod("front", Some("back.default.svc.cluster.local:80")).await;
    assert_eq!(mesh.response(back).await, "back");
    assert_eq!(
        mesh.response(front).await,
        "front > back",
        "through the DNS name and the Service of back"
    );
    every_pod_has_its_own_loopback(&mesh).await;
    no_connection_leaves_the_mesh(&mesh).await;
    a_deleted_pod_terminates_gracefully(&mesh, back).await;
    a_killed_container_is_restarted(&mesh, front).await;
    println!("mesh: Services, names, networks, termination, restarts and isolation checked");
}

async fn every_pod_has_its_own_loopback(mesh: &TestMesh) {
    for (pod, body) in [("back", "back"), ("front", "front > back")] {
        let received = mesh
            .mesh
            .get_from_pod("default", pod, APP_PORT, "/")
            .await
            .unwrap();
        assert_eq!(received, body);
    }
}

async fn no_connection_leaves_the_mesh(mesh: &TestMesh) {
    for (pod, address) in [("front", "192.0.2.1:443"), ("back", "1.1.1.1:53")] {
        let reached = mesh
            .mesh
            .connect_from_pod("default", pod, address.parse().unwrap())
            .await;
        assert!(reached.is_err(), "{pod} reached {address}");
    }
}

/// A deleted pod accepts new connections while its preStop hook runs. Afterwards it is unreachable.
async fn a_deleted_pod_terminates_gracefully(mesh: &TestMesh, back: SocketAddr) {
    mesh.pod("spare", None).await;
    let spare = mesh.service("spare").await;
    mesh.response(spare).await;
    let ip = mesh
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
    mesh.pods.delete("spare", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        mesh.response(address).await,
        "spare",
        "served during the preStop hook"
    );
    let begin = Instant::now();
    while mesh.pods.get_opt("spare").await.unwrap().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let response = tokio::task::spawn_blocking(move || http::get(address, "/", Duration::from_millis(300)));
    assert!(response.await.unwrap().is_err(), "the deleted pod is unreachable");
    let results = load.finish();
    assert_eq!(results.failures().count(), 0, "requests to other pods succeed");
    assert!(results.sent() > 20);
}

async fn a_killed_container_is_restarted(mesh: &TestMesh, front: SocketAddr) {
    mesh.mesh.kill("default", "front", "app").unwrap();
    assert_eq!(mesh.response(front).await, "front > back");
    let pod = mesh.pods.get("front").await.unwrap();
    let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
    assert_eq!(restarts, 1);
}
