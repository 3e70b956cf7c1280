//! Rehearses an upgrade of a real cluster: an API server with real controllers and pods, read by a user
//! with list permissions only. The audit log must contain no writes and no reads of Secrets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod support;

use std::process::ExitCode;
use std::time::Duration;

use http::{Method as Verb, Request};
use jiff::Timestamp;
use kube::Client;
use mainstay_api::crd::{VersionNames, definitions};
use mainstay_rehearsal::input::{KINDS, read_cluster};
use mainstay_rehearsal::report::{FindingKind, Method, Outcome};
use mainstay_rehearsal::{Report, rehearse};
use mainstay_testkit::cluster::{Cluster, Options, PARTS, User, WORKLOAD_CONTROLLERS};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::suite::{self, TestCase};
use serde_json::{Value, json};

use support::{OLD, batched, catalog, deployment, found, istio, service, upgrade};

const TEST_CASES: &[TestCase] = &[TestCase {
    name: "rehearsal::a_real_cluster_is_only_read",
    start: || Box::pin(a_real_cluster_is_only_read()),
}];

fn main() -> ExitCode {
    suite::main(&PARTS, TEST_CASES)
}

/// User with permission to list every kind that a rehearsal reads.
const READER: &str = "reader";
/// User with permission to list the same kinds, except pods.
const READER_WITHOUT_PODS: &str = "half-reader";
/// Flag of the API server: the webhooks of the mesh have no server in this test.
const NO_WEBHOOKS: &str = "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook";

async fn start() -> (Cluster, Kubelet) {
    let options = Options {
        controllers: WORKLOAD_CONTROLLERS.to_vec(),
        users: vec![
            User::new("admin", "system:masters"),
            User::new(READER, "people"),
            User::new(READER_WITHOUT_PODS, "people"),
        ],
        audit: true,
        api_server_flags: vec![NO_WEBHOOKS.to_owned()],
    };
    let cluster = Cluster::start(options).await.unwrap();
    let kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
    (cluster, kubelet)
}

async fn call(client: &Client, verb: Verb, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let request = Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes());
    client.request(request.unwrap()).await
}

/// Creates an object. Retries, because a newly registered kind is not served immediately.
async fn create(client: &Client, path: &str, object: &Value) {
    wait(path, async || {
        match call(client, Verb::POST, path, object).await {
            Err(kube::Error::Api(status)) if status.code == 429 => false,
            done => done.map(|_| true).unwrap(),
        }
    })
    .await;
}

async fn get(client: &Client, path: &str) -> Value {
    call(client, Verb::GET, path, &json!(null)).await.unwrap()
}

/// Waits until `is_reached` returns true. Panics after a minute.
async fn wait(what: &str, mut is_reached: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_reached().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not happen");
}

async fn define(client: &Client) {
    let names = VersionNames {
        all: &["v1.28.2", "v1.29.1"],
        concrete: &["v1.28.2", "v1.29.1"],
        ambient: &["v1.29.1"],
        default: "v1.29.1",
    };
    for definition in definitions(&names) {
        create(
            client,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        )
        .await;
    }
    for kind in KINDS.iter().filter(|kind| kind.api_version.starts_with("sail")) {
        let path = format!("/apis/{}/{}", kind.api_version, kind.plural);
        wait(&path, async || {
            call(client, Verb::GET, &path, &json!(null)).await.is_ok()
        })
        .await;
    }
}

/// Allows a user to list the kinds of a rehearsal cluster-wide, and nothing else.
async fn allow(client: &Client, user: &str, without: &str) {
    let rules: Vec<Value> = KINDS
        .iter()
        .filter(|kind| kind.plural != without)
        .map(|kind| {
            let group = kind.api_version.split_once('/').map_or("", |(group, _)| group);
            json!({"apiGroups": [group], "resources": [kind.plural], "verbs": ["list"]})
        })
        .collect();
    let path = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": rules});
    create(client, &format!("{path}/clusterroles"), &role).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    create(client, &format!("{path}/clusterrolebindings"), &binding).await;
}

async fn populate(client: &Client) {
    for (name, labels) in [
        ("istio-system", json!({})),
        ("shop", json!({"istio.io/rev": OLD})),
    ] {
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        create(client, "/api/v1/namespaces", &space).await;
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "canary"}});
    create(client, "/api/v1/namespaces/shop/secrets", &secret).await;
    create(
        client,
        "/apis/sailoperator.io/v1/istios",
        &istio(&batched(2, "10s")),
    )
    .await;
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    for (name, replicas, more) in [
        ("cart", 2, &json!({})),
        ("web", 3, &json!({})),
        ("alone", 1, &recreate),
    ] {
        create(
            client,
            "/apis/apps/v1/namespaces/shop/deployments",
            &deployment("shop", name, replicas, more),
        )
        .await;
        create(client, "/api/v1/namespaces/shop/services", &service("shop", name)).await;
    }
    wait("six ready pods", async || {
        let all = get(client, "/apis/apps/v1/namespaces/shop/deployments").await;
        let ready = all["items"].as_array().unwrap().iter();
        ready
            .filter_map(|item| item["status"]["readyReplicas"].as_i64())
            .sum::<i64>()
            == 6
    })
    .await;
}

/// Annotates pods as an istiod of the old revision would, because no istiod runs.
async fn inject(client: &Client) {
    let patch = json!({"metadata": {"annotations": {"istio.io/rev": OLD}}}).to_string();
    let pods = get(client, "/api/v1/namespaces/shop/pods").await;
    for pod in pods["items"].as_array().unwrap() {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let request = Request::patch(format!("/api/v1/namespaces/shop/pods/{name}"))
            .header("content-type", "application/merge-patch+json")
            .body(patch.clone().into_bytes());
        client.request::<Value>(request.unwrap()).await.unwrap();
    }
}

async fn rehearse_as(cluster: &Cluster, user: &str) -> Report {
    let client = cluster.client(user).unwrap();
    let input = read_cluster(&client, "a real cluster".into(), Timestamp::now()).await;
    rehearse_on_thread(input.unwrap()).await
}

/// Rehearses on another thread, because the embedded cluster needs its own runtime with a virtual clock.
async fn rehearse_on_thread(input: mainstay_rehearsal::Input) -> Report {
    let rehearsed = tokio::task::spawn_blocking(move || rehearse(&catalog(), input, &upgrade()));
    rehearsed.await.unwrap().unwrap()
}

/// Returns all objects that a migration would modify.
async fn state(client: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/apis/sailoperator.io/v1/istios",
        "/apis/sailoperator.io/v1/istiorevisions",
        "/api/v1/namespaces",
        "/apis/apps/v1/namespaces/shop/deployments",
        "/api/v1/namespaces/shop/pods",
    ] {
        all.push(get(client, path).await["items"].clone());
    }
    all
}

async fn a_real_cluster_is_only_read() {
    let (cluster, _kubelet) = start().await;
    let admin = cluster.client("admin").unwrap();
    define(&admin).await;
    allow(&admin, READER, "").await;
    allow(&admin, READER_WITHOUT_PODS, "pods").await;
    populate(&admin).await;
    inject(&admin).await;
    let before = state(&admin).await;
    let mut audit = cluster.audit();
    audit.reset().unwrap();
    let report = rehearse_as(&cluster, READER).await;
    let asked = audit.entries().unwrap();
    let asked: Vec<_> = asked.iter().filter(|entry| entry.user == READER).collect();
    assert_eq!(asked.len(), KINDS.len(), "a page per kind: {asked:#?}");
    for entry in &asked {
        assert_eq!((entry.verb.as_str(), entry.code), ("list", 200), "{entry:?}");
        assert!(!entry.uri.contains("secrets"), "{entry:?}");
    }
    assert_eq!(state(&admin).await, before, "the cluster was modified");
    assert_eq!(
        (report.outcome, report.method),
        (Outcome::Completed, Method::Embedded),
        "{:#?}",
        report.findings
    );
    assert_eq!((report.totals.migrated, report.totals.pods), (3, 6));
    assert_eq!(report.input.observed_readiness, 3, "real pods became ready");
    assert_eq!(
        found(&report, FindingKind::UpdateStrategy),
        ["Warning Deployment shop/alone: strategy Recreate stops all pods before the first new one starts"]
    );
    assert!(!serde_json::to_string(&report).unwrap().contains("canary"));

    let half = rehearse_as(&cluster, READER_WITHOUT_PODS).await;
    let missing = found(&half, FindingKind::MissingInput);
    let expected =
        "Info input: cannot read Pod: pods is forbidden: User \"half-reader\" cannot list resource \"pods\"";
    assert!(
        missing.iter().any(|text| text.starts_with(expected)),
        "{missing:#?}"
    );
    let writes = audit.entries().unwrap();
    let writes = writes
        .iter()
        .filter(|entry| entry.user == READER_WITHOUT_PODS && !entry.is_read());
    assert_eq!(writes.count(), 0);
}
