//! A namespace on the three servers with an operator process. Provides steps, reads, and waits for a state.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::end_state::comparable_state;
use crate::final_state::FinalState;
use crate::objects::{self, API, DEPLOYMENT};
use crate::process::Process;
use crate::servers::{HOST, MEMBERS, Servers};

/// Longest time that a test waits for a state.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
/// Interval of checks.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time without writes after which the controllers count as idle.
const IDLE_TIME: Duration = Duration::from_secs(3);
/// Time between two health probes of a cluster, in seconds.
const PROBE_PERIOD_SECONDS: u32 = 2;

pub(crate) const V1: &str = "example-app-v1";
pub(crate) const V2: &str = "example-app-v2";
pub(crate) const DEPLOYMENTS: &str = "applicationdeployments";

/// Collections of a namespace whose objects are compared.
const COMPARED: [&str; 6] = [
    "/apis/apps/v1/namespaces/NAMESPACE/deployments",
    "/api/v1/namespaces/NAMESPACE/services",
    "/apis/networking.istio.io/v1/namespaces/NAMESPACE/virtualservices",
    "/apis/delivery.mainstay.dev/v1alpha1/namespaces/NAMESPACE/applicationdeployments",
    "/apis/delivery.mainstay.dev/v1alpha1/namespaces/NAMESPACE/applicationrevisions",
    "/apis/delivery.mainstay.dev/v1alpha1/namespaces/NAMESPACE/resourceinventories",
];

pub(crate) struct TestNamespace {
    pub(crate) servers: Rc<Servers>,
    pub(crate) namespace: &'static str,
    operator: Cell<Option<Process>>,
}

impl TestNamespace {
    /// Creates the namespace with the Clusters `east` and `west`, and starts the operator.
    pub(crate) async fn start(namespace: &'static str) -> Self {
        let test = Self::new(namespace).await;
        for name in MEMBERS {
            test.add_cluster(name, name).await;
        }
        test.start_operator();
        test
    }

    /// Creates the namespace without Clusters and without an operator.
    pub(crate) async fn new(namespace: &'static str) -> Self {
        let servers = Servers::shared().await;
        let host = servers.get(HOST);
        if host
            .get(&format!("/api/v1/namespaces/{namespace}"))
            .await
            .is_none()
        {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            host.post("/api/v1/namespaces", &object).await;
        }
        Self {
            servers,
            namespace,
            operator: Cell::new(None),
        }
    }

    pub(crate) fn start_operator(&self) {
        self.start_operator_until(None);
    }

    fn start_operator_until(&self, crash: Option<(usize, usize)>) {
        let process = Process::start_with_delivery(self.servers.operator_kubeconfig(), crash);
        self.operator.set(Some(process));
    }

    /// Kills the operator with SIGKILL.
    pub(crate) fn kill_operator(&self) {
        self.operator.set(None);
    }

    /// Starts an operator that is killed at a write, given by its number and the index of the crash fault.
    /// Returns whether that happened before the rollout was complete.
    pub(crate) async fn run_operator_until_killed(&self, crash: (usize, usize)) -> bool {
        self.start_operator_until(Some(crash));
        let process = self.operator.take().unwrap();
        process.kill_at_last_write(self.until_phase("Healthy")).await
    }

    /// Deletes the deployment and the Clusters, so that the operator of the next test does not reconcile
    /// them.
    pub(crate) async fn end(self) {
        if self.ours(DEPLOYMENTS, DEPLOYMENT).await.is_some() {
            self.delete(DEPLOYMENTS, DEPLOYMENT).await;
        }
        self.until_deleted().await;
        let clusters = self.ours("clusters", "").await.unwrap_or_default();
        for cluster in clusters["items"].as_array().into_iter().flatten() {
            let name = cluster["metadata"]["name"].as_str().unwrap();
            self.delete("clusters", name).await;
        }
    }

    /// Waits until the deployment is deleted.
    pub(crate) async fn until_deleted(&self) {
        self.until("the deployment is deleted", async |test| {
            let deployment = test.ours(DEPLOYMENTS, DEPLOYMENT).await;
            deployment.is_none().then_some(())
        })
        .await;
    }

    // Objects.

    /// Creates the Secret and the Cluster object of a member.
    pub(crate) async fn add_cluster(&self, name: &str, member: &str) {
        let session = format!("{}-{name}", self.namespace);
        let kubeconfig = self.servers.get(member).member_kubeconfig(&session).await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": format!("kubeconfig-{name}"), "namespace": self.namespace},
            "data": {"config": STANDARD.encode(kubeconfig.to_string())},
        });
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        self.servers.get(HOST).post(&path, &secret).await;
        self.create("clusters", cluster(name)).await;
    }

    /// Replaces the kubeconfig of a member with one that contains the token of another session.
    pub(crate) async fn rotate_kubeconfig(&self, member: &str, session: &str) {
        let kubeconfig = self.servers.get(member).member_kubeconfig(session).await;
        let data = json!({"data": {"config": STANDARD.encode(kubeconfig.to_string())}});
        let path = format!(
            "/api/v1/namespaces/{}/secrets/kubeconfig-{member}",
            self.namespace
        );
        let host = self.servers.get(HOST);
        host.call("PATCH", &path, Some(&data)).await.unwrap();
    }

    /// Creates one of our objects in the host cluster.
    pub(crate) async fn create(&self, plural: &str, mut object: Value) {
        object["metadata"]["namespace"] = self.namespace.into();
        let path = self.path(plural, "");
        self.servers
            .get(HOST)
            .post(path.trim_end_matches('/'), &object)
            .await;
    }

    /// Replaces the spec of one of our objects.
    pub(crate) async fn set_spec(&self, plural: &str, object: &Value) {
        let path = self.path(plural, object["metadata"]["name"].as_str().unwrap());
        let host = self.servers.get(HOST);
        for _ in 0..20 {
            let mut live = host.get(&path).await.unwrap();
            live["spec"] = object["spec"].clone();
            match host.call("PUT", &path, Some(&live)).await {
                Ok(_) => return,
                // The operator has changed the object in the meantime. Retry.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("{path}: {error}"),
            }
        }
        panic!("{path}: conflicts");
    }

    pub(crate) async fn delete(&self, plural: &str, name: &str) {
        let host = self.servers.get(HOST);
        host.call("DELETE", &self.path(plural, name), None).await.unwrap();
    }

    /// Creates an Application with two revisions.
    pub(crate) async fn record_two_revisions(&self) {
        self.create("applications", objects::application("registry/app:1"))
            .await;
        self.until_revision(V1).await;
        self.set_spec("applications", &objects::application("registry/app:2"))
            .await;
        self.until_revision(V2).await;
    }

    async fn until_revision(&self, name: &str) {
        let path = self.path("applicationrevisions", name);
        self.until(name, async |test| test.servers.get(HOST).get(&path).await)
            .await;
    }

    fn path(&self, plural: &str, name: &str) -> String {
        format!("/apis/{API}/namespaces/{}/{plural}/{name}", self.namespace)
    }

    // Reads.

    pub(crate) async fn ours(&self, plural: &str, name: &str) -> Option<Value> {
        self.servers.get(HOST).get(&self.path(plural, name)).await
    }

    /// Returns an object of a cluster. `root` is the API path of its group and version.
    pub(crate) async fn object(&self, cluster: &str, root: &str, plural: &str, name: &str) -> Option<Value> {
        let path = format!("/{root}/namespaces/{}/{plural}/{name}", self.namespace);
        self.servers.get(cluster).get(&path).await
    }

    /// Returns replicas and available replicas of a revision, or `None` if its Deployment does not exist.
    pub(crate) async fn replicas(&self, cluster: &str, revision: &str) -> Option<(u64, u64)> {
        let name = format!("{revision}-testsvc");
        let object = self.object(cluster, "apis/apps/v1", "deployments", &name).await?;
        let number = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        Some((number("/spec/replicas"), number("/status/availableReplicas")))
    }

    /// Returns the weights of the route in a cluster, by Service.
    pub(crate) async fn weights(&self, cluster: &str) -> Vec<(String, u64)> {
        let root = "apis/networking.istio.io/v1";
        let route = self.object(cluster, root, "virtualservices", DEPLOYMENT).await;
        let route = route.unwrap_or_default();
        let routes = route["spec"]["http"][0]["route"].as_array().cloned();
        let one = |route: Value| {
            let host = route["destination"]["host"].as_str().unwrap().to_owned();
            (host, route["weight"].as_u64().unwrap())
        };
        routes.into_iter().flatten().map(one).collect()
    }

    /// Returns status and reason of a condition.
    pub(crate) async fn condition(&self, plural: &str, name: &str, kind: &str) -> String {
        let object = self.ours(plural, name).await.unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions
            .find(|condition| condition["type"] == kind)
            .unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", text("status"), text("reason"))
    }

    /// Returns the objects of all clusters in a form that can be compared.
    pub(crate) async fn end_state(&self) -> Vec<FinalState> {
        let mut states = Vec::new();
        for (_, server) in self.servers.iter() {
            let mut objects = Vec::new();
            for collection in COMPARED {
                let path = collection.replace("NAMESPACE", self.namespace);
                // Member clusters do not serve our kinds.
                let Some(list) = server.get(&path).await else {
                    continue;
                };
                let (kind, version) = (&list["kind"], &list["apiVersion"]);
                let items = list["items"].as_array().unwrap().iter().cloned();
                objects.extend(items.map(|mut item| {
                    item["kind"] = kind.as_str().unwrap().trim_end_matches("List").into();
                    item["apiVersion"] = version.clone();
                    item
                }));
            }
            states.push(comparable_state(objects));
        }
        states
    }

    // Waits.

    /// Waits until `check` returns a value, and returns the value.
    pub(crate) async fn until<T>(&self, what: &str, mut check: impl AsyncFnMut(&Self) -> Option<T>) -> T {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(found) = check(self).await {
                return found;
            }
            if Instant::now() >= end {
                let deployment = self.ours(DEPLOYMENTS, DEPLOYMENT).await.unwrap_or_default();
                panic!("not reached: {what}\n{:#}", deployment["status"]);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the phase of the deployment is this one, for its current generation.
    pub(crate) async fn until_phase(&self, phase: &str) {
        self.until(phase, async |test| {
            let object = test.ours(DEPLOYMENTS, DEPLOYMENT).await?;
            let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            (is_current && object["status"]["phase"] == phase).then_some(())
        })
        .await;
    }

    /// Waits until a revision has this many available replicas in a cluster.
    pub(crate) async fn until_replicas(&self, cluster: &str, revision: &str, replicas: u64) {
        let what = format!("{revision} has {replicas} replicas in cluster {cluster:?}");
        self.until(&what, async |test| {
            let found = test.replicas(cluster, revision).await;
            (found == Some((replicas, replicas))).then_some(())
        })
        .await;
    }

    /// Waits until a condition of one of our objects has this status and reason.
    pub(crate) async fn until_condition(&self, plural: &str, name: &str, expected: &str) {
        let what = format!("{name} is {expected}");
        self.until(&what, async |test| {
            (test.condition(plural, name, "Ready").await == expected).then_some(())
        })
        .await;
    }

    /// Waits until the operator is idle.
    pub(crate) async fn until_idle(&self) {
        let (mut count, mut since) = (self.servers.writes().len(), Instant::now());
        let begin = since;
        while since.elapsed() < IDLE_TIME {
            tokio::time::sleep(POLL_INTERVAL * 2).await;
            let now = self.servers.writes().len();
            if now != count {
                (count, since) = (now, Instant::now());
            }
            assert!(
                begin.elapsed() < WAIT_TIMEOUT,
                "the controllers never stop writing"
            );
        }
    }
}

/// Returns a Cluster that is probed often.
pub(crate) fn cluster(name: &str) -> Value {
    let mut cluster = objects::cluster(name);
    cluster["spec"]["probeIntervalSeconds"] = PROBE_PERIOD_SECONDS.into();
    cluster
}
