//! `HTTPRoute`s on a real API server with the definitions of Gateway API. A real istiod accepts the routes.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use mainstay_cluster::definitions;
use mainstay_testkit::built_peer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::gateway_api::gateway_api_definitions;
use crate::golden::{check_golden, golden_text_in_any_namespace};
use crate::objects::{DEPLOYMENT, gateway_deployment};
use crate::servers::{HOST, Server};
use crate::test_namespace::{DEPLOYMENTS, TestNamespace, V1, V2};

/// API path of the group of `HTTPRoute`s.
const GROUP: &str = "apis/gateway.networking.k8s.io/v1";
/// Time without an istiod, in which the rollout must wait.
const OUTAGE: Duration = Duration::from_secs(8);

/// An istiod as a process with administrator rights. It is killed when dropped.
struct Istiod {
    _process: Child,
}

impl Istiod {
    fn start(kubeconfig: &Path, directory: &Path) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(directory.join("log"))
            .unwrap();
        let mut command = Command::new(built_peer("pilot-discovery-1.29.1").unwrap());
        command
            // istiod writes certificates to paths relative to the working directory.
            .current_dir(directory)
            .arg("discovery")
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .args(["--domain", "cluster.local", "--ctrlz_port", "0"]);
        for listener in ["https", "secureGRPC", "grpc", "http", "monitoring"] {
            command.args([format!("--{listener}Addr"), "127.0.0.1:0".to_owned()]);
        }
        let process = command
            .env_clear()
            .envs([
                ("HOME", directory.as_os_str()),
                ("KUBECONFIG", kubeconfig.as_os_str()),
                ("POD_NAME", "istiod-0".as_ref()),
                ("POD_NAMESPACE", "istio-system".as_ref()),
                ("PILOT_CERT_PROVIDER", "istiod".as_ref()),
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { _process: process }
    }
}

async fn install_gateway_api(host: &Server) {
    let definitions = gateway_api_definitions();
    definitions::install(&host.client, &definitions, |_, _| {})
        .await
        .unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}});
    host.post("/api/v1/namespaces", &namespace).await;
}

async fn stored_route(test: &TestNamespace) -> Option<Value> {
    test.object(HOST, GROUP, "httproutes", DEPLOYMENT).await
}

/// Returns the weights of the route by Service.
async fn weights(test: &TestNamespace) -> Vec<(String, u64)> {
    let route = stored_route(test).await.unwrap_or_default();
    let backends = route["spec"]["rules"][0]["backendRefs"].as_array().cloned();
    let weight = |backend: Value| {
        let name = backend["name"].as_str().unwrap().to_owned();
        (name, backend["weight"].as_u64().unwrap())
    };
    backends.into_iter().flatten().map(weight).collect()
}

async fn change_weights(test: &TestNamespace, weights: &[(&str, u32)]) {
    let deployment = gateway_deployment(test.namespace, weights);
    test.set_spec(DEPLOYMENTS, &deployment).await;
}

/// Runs a rollout from one revision to the other with an even split in between. istiod is killed before the
/// last change: the old pods must be kept until another istiod has accepted the route.
pub(crate) async fn istiod_accepts_http_routes() {
    let test = TestNamespace::new("gateway").await;
    let host = test.servers.get(HOST);
    install_gateway_api(host).await;
    let directory = TempDir::new().unwrap();
    let kubeconfig = host.cluster.lock().await.kubeconfig("tester");
    let istiod = Istiod::start(&kubeconfig, directory.path());
    test.start_operator();
    test.record_two_revisions().await;
    test.create(DEPLOYMENTS, gateway_deployment(test.namespace, &[(V1, 100)]))
        .await;
    test.until_phase("Healthy").await;
    let controller = stored_route(&test).await.unwrap()["status"]["parents"][0]["controllerName"].clone();

    change_weights(&test, &[(V1, 50), (V2, 50)]).await;
    test.until_phase("Healthy").await;
    assert_eq!(weights(&test).await, [(V1.to_owned(), 50), (V2.to_owned(), 50)]);
    let route = stored_route(&test).await.unwrap();
    check_golden("gateway-server", &golden_text_in_any_namespace("host", route));

    drop(istiod);
    change_weights(&test, &[(V2, 100)]).await;
    let all = [(V2.to_owned(), 100)];
    test.until("all traffic is on v2", async |test| {
        (weights(test).await == all).then_some(())
    })
    .await;
    tokio::time::sleep(OUTAGE).await;
    assert_eq!(
        test.replicas(HOST, V1).await,
        Some((2, 2)),
        "pods are kept until the route is accepted"
    );
    let _istiod = Istiod::start(&kubeconfig, directory.path());
    test.until_phase("Healthy").await;
    test.until("v1 is removed", async |test| {
        test.replicas(HOST, V1).await.is_none().then_some(())
    })
    .await;
    test.delete(DEPLOYMENTS, DEPLOYMENT).await;
    test.until_deleted().await;
    assert_eq!(stored_route(&test).await, None);
    test.end().await;
    println!(
        "servers gateway: HTTPRoute as on the simulator, accepted by {controller}; pods kept for {} s without an istiod",
        OUTAGE.as_secs()
    );
}
