//! A simulated or real cluster with the controller.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_api::crd::istio_operator_definition;
use mainstay_catalog::Catalog;
use mainstay_cluster::admission::CONFIGURATION;
use mainstay_cluster::connect::{Fence, Meter, connect};
use mainstay_cluster::definitions;
use mainstay_harness::{ClusterOptions, SimulatedCluster};
use mainstay_operator::Clock;
use mainstay_operator::istio_operator::{IstioOperatorController, IstioOperatorOptions};
use mainstay_testkit::cluster::Cluster;
use mainstay_testkit::kubelet::Kubelet;
use mainstay_testkit::{built_peer, repository_root};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Name of the controller in traces and faults.
pub(crate) const CLIENT: &str = "mainstay";
/// Namespace of the resources and of the control plane.
pub(crate) const NAMESPACE: &str = "istio-system";
/// Maximum time to wait for a state, on a busy machine or in virtual time.
const WAIT_TIMEOUT: Duration = Duration::from_mins(8);
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Kinds that other controllers create and delete asynchronously.
const DERIVED_KINDS: [&str; 7] = [
    "Event",
    "Pod",
    "ReplicaSet",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Lease",
];

/// The cluster.
pub(crate) enum Backing {
    Simulated(Box<SimulatedCluster>),
    #[allow(dead_code, reason = "each test program uses a part")]
    Real(Box<Cluster>, Kubelet),
}

/// A cluster with the controller.
pub(crate) struct World {
    pub(crate) backing: Backing,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) options: IstioOperatorOptions,
    user: Client,
    /// Client of the controller, or `None` if the controller uses the client of an administrator.
    account: Option<Client>,
    writes: Arc<AtomicUsize>,
    controller: Option<JoinHandle<()>>,
}

pub(crate) fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

pub(crate) fn cluster_options() -> ClusterOptions {
    ClusterOptions {
        nodes: 1,
        ..ClusterOptions::default()
    }
}

/// Returns an `IstioOperator`.
pub(crate) fn operator(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "install.istio.io/v1alpha1",
        "kind": "IstioOperator",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

/// Returns the path of an `IstioOperator`.
pub(crate) fn operator_path(name: &str) -> String {
    format!("/apis/install.istio.io/v1alpha1/namespaces/{NAMESPACE}/istiooperators/{name}")
}

/// Returns the path of a namespaced object of the control plane.
pub(crate) fn path(api: &str, plural: &str, name: &str) -> String {
    format!("/{api}/namespaces/{NAMESPACE}/{plural}/{name}")
}

impl World {
    /// Creates a simulated cluster with the definition and a running controller.
    pub(crate) async fn simulated() -> Self {
        let mut world = Self::without_definition().await;
        world.install_definition().await;
        world.start();
        world
    }

    /// Creates a simulated cluster without the definition and the controller.
    pub(crate) async fn without_definition() -> Self {
        let cluster = SimulatedCluster::from_objects(catalog(), &cluster_options(), Vec::new()).unwrap();
        let world = Self::from_simulated(cluster);
        world.create(&namespace(NAMESPACE)).await.unwrap();
        world
    }

    /// Creates a world with this cluster and without a controller.
    pub(crate) fn from_simulated(cluster: SimulatedCluster) -> Self {
        Self {
            user: cluster.client("user"),
            catalog: cluster.catalog().clone(),
            backing: Backing::Simulated(Box::new(cluster)),
            options: IstioOperatorOptions::default(),
            account: None,
            writes: Arc::default(),
            controller: None,
        }
    }

    /// Creates a world with a real cluster, the definition and a running controller.
    #[allow(dead_code, reason = "each test program uses a part")]
    pub(crate) async fn real(cluster: Cluster, kubelet: Kubelet) -> Self {
        let mut world = Self::with_definition(cluster, kubelet).await;
        world.start();
        world
    }

    /// Creates a world with a real cluster and the operator's chart. The controller uses the service
    /// account of the chart, so that its roles and admission policies apply.
    #[allow(dead_code, reason = "each test program uses a part")]
    pub(crate) async fn real_with_chart(cluster: Cluster, kubelet: Kubelet) -> Self {
        let mut world = Self::real_with_idle_chart(cluster, kubelet).await;
        // The webhook of the chart is deleted, because no operator process serves it here.
        world.delete(&webhook_path()).await;
        world.start();
        world
    }

    /// Creates a world with a real cluster and the operator's chart, and without a running operator.
    #[allow(dead_code, reason = "each test program uses a part")]
    pub(crate) async fn real_with_idle_chart(cluster: Cluster, kubelet: Kubelet) -> Self {
        let account = install_chart(&cluster).await;
        let mut world = Self::with_definition(cluster, kubelet).await;
        world.account = Some(account);
        world
    }

    /// Creates a world with a real cluster and the definition, and without a controller.
    async fn with_definition(cluster: Cluster, kubelet: Kubelet) -> Self {
        let world = Self {
            user: cluster.client("admin").unwrap(),
            catalog: catalog(),
            backing: Backing::Real(Box::new(cluster), kubelet),
            options: IstioOperatorOptions::default(),
            account: None,
            writes: Arc::default(),
            controller: None,
        };
        world.create(&namespace(NAMESPACE)).await.unwrap();
        world.install_definition().await;
        world
    }

    pub(crate) async fn install_definition(&self) {
        let definition = istio_operator_definition();
        definitions::install(&self.user, &[definition], |_, _| {})
            .await
            .unwrap();
    }

    /// Returns the simulated cluster.
    pub(crate) fn simulator(&self) -> &SimulatedCluster {
        match &self.backing {
            Backing::Simulated(cluster) => cluster,
            Backing::Real(..) => panic!("no simulator"),
        }
    }

    pub(crate) fn client(&self, name: &str) -> Client {
        match (&self.backing, &self.account) {
            (Backing::Simulated(cluster), _) => cluster.client(name),
            (Backing::Real(..), Some(account)) if name == CLIENT => account.clone(),
            (Backing::Real(cluster, _), _) => cluster.client("admin").unwrap(),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        match &self.backing {
            Backing::Simulated(cluster) => cluster.clock(),
            Backing::Real(..) => Clock::system(),
        }
    }

    /// Starts the controller.
    pub(crate) fn start(&mut self) {
        let writes = self.writes.clone();
        let meter: Meter = Arc::new(move |verb, _| {
            let is_write = matches!(verb, "create" | "update" | "patch" | "delete");
            writes.fetch_add(usize::from(is_write), Ordering::Relaxed);
        });
        let controller = IstioOperatorController {
            client: self.client(CLIENT),
            catalog: self.catalog.clone(),
            fence: Fence::open(),
            meter,
            clock: self.clock(),
            identity: CLIENT.into(),
            observer: Arc::new(()),
            options: self.options.clone(),
        };
        self.controller = Some(tokio::spawn(controller.run()));
    }

    /// Kills the controller, possibly during a reconciliation.
    pub(crate) fn kill(&mut self) {
        if let Some(task) = self.controller.take() {
            task.abort();
        }
    }

    /// Restarts the controller if a fault has crashed it.
    pub(crate) fn restart_if_crashed(&mut self) {
        let Backing::Simulated(cluster) = &self.backing else {
            return;
        };
        if !cluster.sim().with(|state| state.faults.has_crashed(CLIENT)) {
            return;
        }
        cluster.sim().with(|state| state.faults.restart_client(CLIENT));
        self.kill();
        self.start();
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// Sleeps for this time, and restarts a crashed controller.
    pub(crate) async fn sleep(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(Duration::from_secs(1)).await;
            self.restart_if_crashed();
        }
    }

    /// Waits until the controller is idle.
    pub(crate) async fn until_idle(&mut self) {
        let window = match self.backing {
            Backing::Simulated(_) => Duration::from_secs(45),
            Backing::Real(..) => Duration::from_secs(8),
        };
        for _ in 0..60 {
            let before = self.writes();
            self.sleep(window).await;
            if self.writes() == before {
                return;
            }
        }
        panic!("the controller never stops writing");
    }

    /// Sends a request as a user.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, (u16, String)> {
        Self::send_as(&self.user, method, path, body).await
    }

    /// Sends a request with a client.
    pub(crate) async fn send_as(
        client: &Client,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, (u16, String)> {
        let content = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .unwrap();
        match client.request::<Value>(request).await {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => Err((status.code, status.message)),
            Err(error) => panic!("{method} {path}: {error:?}"),
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<Value, (u16, String)> {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace");
        let collection = match text("/kind") {
            "IstioOperator" => {
                format!("/apis/install.istio.io/v1alpha1/namespaces/{namespace}/istiooperators")
            }
            "Namespace" => "/api/v1/namespaces".to_owned(),
            "Pod" => format!("/api/v1/namespaces/{namespace}/pods"),
            "Sidecar" => format!("/apis/networking.istio.io/v1/namespaces/{namespace}/sidecars"),
            other => panic!("no path of {other}"),
        };
        self.send("POST", &collection, Some(object)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            match self.send("GET", path, None).await {
                Ok(object) => return Some(object),
                Err((404, _)) => return None,
                // A real server initializes the storage of new definitions.
                Err((429, _)) if Instant::now() < end => sleep(POLL_INTERVAL).await,
                Err((code, message)) => panic!("GET {path}: {code} {message}"),
            }
        }
    }

    pub(crate) async fn patch(&self, path: &str, change: Value) -> Value {
        self.send("PATCH", path, Some(&change)).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send("DELETE", path, None).await.unwrap();
    }

    /// Waits until a condition on an object holds. The condition receives `Value::Null` if the object does
    /// not exist.
    pub(crate) async fn until(
        &mut self,
        path: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let object = self.get(path).await.unwrap_or_default();
            if condition(&object) {
                return object;
            }
            assert!(
                Instant::now() < end,
                "not reached: {what} of {path}\n{}",
                serde_json::to_string_pretty(&object["status"]).unwrap()
            );
            sleep(POLL_INTERVAL).await;
            self.restart_if_crashed();
        }
    }

    /// Waits until a resource has this state, for its current generation.
    pub(crate) async fn until_state(&mut self, name: &str, state: &str) -> Value {
        self.until(&operator_path(name), state, |object| {
            object["status"]["status"] == state
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    pub(crate) async fn until_gone(&mut self, path: &str) {
        self.until(path, "no object", Value::is_null).await;
    }

    /// Returns the reasons of the events about a resource.
    pub(crate) async fn event_reasons(&self, name: &str) -> BTreeSet<String> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
        let list = self.get(&path).await.unwrap();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .filter(|item| item["regarding"]["name"] == name)
            .map(|item| item["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the names of all objects, except those that other controllers create.
    pub(crate) async fn inventory(&self) -> BTreeSet<String> {
        let mut versions = vec!["/api/v1".to_owned()];
        let groups = self.get("/apis").await.unwrap();
        for group in groups["groups"].as_array().unwrap() {
            let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
            versions.push(format!("/apis/{version}"));
        }
        let mut found = BTreeSet::new();
        for version in versions {
            let resources = self.get(&version).await.unwrap_or_default();
            for resource in resources["resources"].as_array().into_iter().flatten() {
                found.extend(self.list_object_names(&version, resource).await);
            }
        }
        found
    }

    async fn list_object_names(&self, version: &str, resource: &Value) -> Vec<String> {
        let (name, kind) = (
            resource["name"].as_str().unwrap(),
            resource["kind"].as_str().unwrap(),
        );
        let verbs = resource["verbs"].as_array();
        let can_list = verbs.is_some_and(|verbs| verbs.contains(&json!("list")));
        if name.contains('/') || !can_list || DERIVED_KINDS.contains(&kind) {
            return Vec::new();
        }
        let list = self.get(&format!("{version}/{name}")).await.unwrap_or_default();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let label = |item: &Value| {
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
            let name = item["metadata"]["name"].as_str().unwrap();
            format!("{version} {kind} {namespace}/{name}")
        };
        items.iter().map(label).collect()
    }

    /// Waits until the cluster has exactly these objects.
    pub(crate) async fn until_inventory(&self, expected: &BTreeSet<String>) {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let found = self.inventory().await;
            if found == *expected {
                return;
            }
            let extra: Vec<_> = found.difference(expected).collect();
            let lost: Vec<_> = expected.difference(&found).collect();
            assert!(Instant::now() < end, "left behind: {extra:#?}, lost: {lost:#?}");
            sleep(Duration::from_secs(1)).await;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the path of the webhook's configuration.
pub(crate) fn webhook_path() -> String {
    format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{CONFIGURATION}")
}

/// Namespace of the operator's chart.
pub(crate) const CHART_NAMESPACE: &str = "sail-operator";

/// Installs the operator's definitions and chart with the real Helm, and returns a client with the chart's
/// account.
#[allow(dead_code, reason = "each test program uses a part")]
async fn install_chart(cluster: &Cluster) -> Client {
    let admin = cluster.client("admin").unwrap();
    let own = definitions::own_definitions(&catalog()).unwrap();
    definitions::install(&admin, &own, |_, _| {}).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(built_peer("helm4").unwrap());
    command
        .args([
            "install",
            "mainstay",
            "--create-namespace",
            "--namespace",
            CHART_NAMESPACE,
        ])
        .args(["--set", "crds.install=false,istioOperator.enabled=true"])
        .arg(repository_root().join("deploy/chart"))
        .env("KUBECONFIG", cluster.kubeconfig("admin"));
    for directory in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(directory, home.path());
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(cluster.kubeconfig("admin")).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.unwrap();
    let groups = [
        "system:authenticated".to_owned(),
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{CHART_NAMESPACE}"),
    ];
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{CHART_NAMESPACE}:mainstay"));
    config.auth_info.impersonate_groups = Some(groups.into());
    connect(config).unwrap()
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns a pod with a connected proxy of a revision.
pub(crate) fn proxy(name: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": {"istio.io/rev": revision}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}
