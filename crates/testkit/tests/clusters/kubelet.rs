//! Tests the simulated kubelet with a real API server: pods follow their scripts or are run as real
//! processes.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use mainstay_sim::script::Script;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions, PodBackend, PodProcess, PodProcessFuture, Probe};
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;
use serde_json::{Value, json};
use tokio::process::Command;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases![
    "kubelet::pods_follow_their_scripts" => pods_follow_their_scripts(),
    "kubelet::a_pod_runs_as_a_process" => a_pod_runs_as_a_process(),
];

const TIMEOUT: Duration = Duration::from_secs(30);

/// Polls until the condition holds. Panics after the timeout.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let result = tokio::time::timeout(TIMEOUT, wait).await;
    assert!(result.is_ok(), "not within {TIMEOUT:?}: {what}");
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    let labels = json!({"app": name});
    let spec = json!({
        "replicas": replicas, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 5, "containers": [{"name": "c", "image": "web:1"}],
        }},
    });
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}})
}

async fn available(client: &Client, name: &str) -> i32 {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let status = deployments.get(name).await.unwrap().status.unwrap_or_default();
    status.available_replicas.unwrap_or(0)
}

async fn pods(client: &Client, app: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let list = pods
        .list(&ListParams::default().labels(&format!("app={app}")))
        .await;
    list.unwrap().items
}

fn waiting_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    status.state.as_ref()?.waiting.as_ref()?.reason.clone()
}

async fn pods_follow_their_scripts() {
    let mut cluster = Cluster::start(Options::default()).await.unwrap();
    let kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
    let client = cluster.client("admin").unwrap();
    kubelet.set_script("default", "never", Script::never_ready());
    kubelet.set_script("default", "crash", Script::crash_loop(Duration::from_millis(300)));
    kubelet.set_script("default", "image", Script::image_pull_error());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    for (name, replicas) in [("web", 3), ("never", 1), ("crash", 1), ("image", 1)] {
        deployments
            .create(&PostParams::default(), &deployment(name, replicas))
            .await
            .unwrap();
    }
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::default_namespaced(client.clone());
    let web = serde_json::from_value(service("web")).unwrap();
    services.create(&PostParams::default(), &web).await.unwrap();
    wait_until("three pods are available", async || {
        available(&client, "web").await == 3
    })
    .await;
    wait_until("a crashing pod backs off", async || {
        let pods = pods(&client, "crash").await;
        pods.first().and_then(waiting_reason).as_deref() == Some("CrashLoopBackOff")
    })
    .await;
    wait_until("a pod backs off from pulling its image", async || {
        let pods = pods(&client, "image").await;
        pods.first().and_then(waiting_reason).as_deref() == Some("ImagePullBackOff")
    })
    .await;
    wait_until("a pod runs", async || {
        let pods = pods(&client, "never").await;
        let phase = pods.first().and_then(|pod| pod.status.as_ref()?.phase.clone());
        phase.as_deref() == Some("Running")
    })
    .await;
    assert_eq!(available(&client, "never").await, 0);
    pods_are_spread_and_have_endpoints(&client).await;
    the_kubelet_survives_an_api_server_restart(&mut cluster, &client).await;
}

/// Every pod has its own address and is scheduled to the node with the fewest pods. The Service has
/// an endpoint per pod.
async fn pods_are_spread_and_have_endpoints(client: &Client) {
    let all: Api<Pod> = Api::default_namespaced(client.clone());
    let mut loads =
        std::collections::BTreeMap::from(["node-0", "node-1", "node-2"].map(|node| (node.to_owned(), 0)));
    for pod in all.list(&ListParams::default()).await.unwrap() {
        *loads.entry(pod.spec.unwrap().node_name.unwrap()).or_default() += 1;
    }
    let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
    assert!(loads.len() == 3 && most - least <= 1, "{loads:?}");
    let found = pods(client, "web").await;
    let addresses: std::collections::BTreeSet<_> = found
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.pod_ip.clone())
        .collect();
    assert_eq!(addresses.len(), 3);
    let slices: Api<EndpointSlice> = Api::default_namespaced(client.clone());
    wait_until("the Service has three endpoints", async || {
        let slices = slices.list(&ListParams::default()).await.unwrap();
        let all = slices
            .items
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten());
        all.filter(|endpoint| {
            endpoint
                .conditions
                .as_ref()
                .is_some_and(|it| it.ready == Some(true))
        })
        .count()
            == 3
    })
    .await;
}

async fn the_kubelet_survives_an_api_server_restart(cluster: &mut Cluster, client: &Client) {
    cluster.start_api_server().await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let scale = Patch::Merge(json!({"spec": {"replicas": 0}}));
    deployments
        .patch_scale("web", &PatchParams::default(), &scale)
        .await
        .unwrap();
    wait_until("all pods have stopped", async || {
        pods(client, "web").await.is_empty()
    })
    .await;
}

/// Runs pods labeled `run: server` as this program with [`SERVER_FLAG`].
struct Servers;

/// Argument with which this program runs as a server.
pub(crate) const SERVER_FLAG: &str = "--server";

/// Responds to every request with 200.
pub(crate) fn serve(address: &str) {
    let listener = TcpListener::bind(address).unwrap();
    for mut stream in listener.incoming().flatten() {
        let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.0 200 OK\r\n\r\n");
    }
}

impl PodBackend for Servers {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        pod.pointer("/metadata/labels/run").filter(|it| *it == "server")?;
        let address: SocketAddr = format!("{ip}:8080").parse().unwrap();
        Some(Box::pin(async move {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.arg(SERVER_FLAG).arg(address.to_string());
            Ok(PodProcess::process(
                command,
                Probe::Http(address, "/ready".to_owned()),
            ))
        }))
    }
}

async fn a_pod_runs_as_a_process() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let options = KubeletOptions {
        backend: Some(Arc::new(Servers)),
        ..KubeletOptions::default()
    };
    let _kubelet = Kubelet::start(&cluster, options).await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(cluster.client("admin").unwrap());
    let pod = json!({
        "metadata": {"name": "server", "labels": {"run": "server"}},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": [{"name": "c", "image": "server:1"}]},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    api.create(&PostParams::default(), &pod).await.unwrap();
    wait_until("the process is ready", async || {
        is_ready(&api.get("server").await.unwrap())
    })
    .await;
    let ip = api.get("server").await.unwrap().status.unwrap().pod_ip.unwrap();
    let address: SocketAddr = format!("{ip}:8080").parse().unwrap();
    TcpStream::connect(address).unwrap();
    api.delete("server", &DeleteParams::default()).await.unwrap();
    wait_until("the pod is deleted", async || {
        api.get_opt("server").await.unwrap().is_none()
    })
    .await;
    TcpStream::connect(address).unwrap_err();
}

/// Whether the pod has the condition `Ready` with status true.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone());
    conditions
        .unwrap_or_default()
        .into_iter()
        .any(|one| one.type_ == "Ready" && one.status == "True")
}
