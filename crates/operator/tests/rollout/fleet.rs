//! A host cluster, member clusters and the delivery controllers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use mainstay_api::crd::delivery_definitions;
use mainstay_catalog::Catalog;
use mainstay_cluster::connect::{Fence, Meter};
use mainstay_cluster::definitions::istio_definitions;
use mainstay_harness::{ClusterOptions, SimulatedCluster};
use mainstay_operator::delivery::{Delivery, DeliveryOptions, MetricResult, MetricSource};
use mainstay_rollout::plan::MeasureRequest;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::connector::{FleetConnector, secret};
use crate::objects::{self, DEPLOYMENT, NAMESPACE};

/// Name of the controllers in traces and faults.
pub(crate) const CLIENT: &str = "mainstay";

/// Longest virtual time that a test waits for something.
const WAIT_TIMEOUT: Duration = Duration::from_mins(30);

/// A metric source with a value that tests set, and the number of queries.
#[derive(Clone, Default)]
pub(crate) struct FakeMetrics(pub(crate) Arc<Mutex<MetricResult>>, Arc<AtomicUsize>);

impl FakeMetrics {
    pub(crate) fn query_count(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl MetricSource for FakeMetrics {
    fn query<'a>(&'a self, _: &'a MeasureRequest) -> BoxFuture<'a, MetricResult> {
        let result = *self.0.lock().unwrap();
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { result })
    }
}

/// The clusters. The host has the empty name.
pub(crate) struct Fleet {
    pub(crate) clusters: BTreeMap<String, SimulatedCluster>,
    pub(crate) connector: FleetConnector,
    pub(crate) metrics: FakeMetrics,
    writes: Arc<AtomicUsize>,
    controllers: Option<JoinHandle<()>>,
}

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

impl Fleet {
    /// Creates a host and members with Secrets and Cluster objects, and starts the controllers.
    pub(crate) async fn start(members: &[&str]) -> Self {
        let mut fleet = Self::new(members).await;
        fleet.start_controllers();
        fleet
    }

    /// The same without controllers.
    pub(crate) async fn new(members: &[&str]) -> Self {
        let catalog = catalog();
        let mut clusters = BTreeMap::new();
        for name in std::iter::once(&"").chain(members) {
            clusters.insert((*name).to_owned(), new_cluster(&catalog, name.is_empty()).await);
        }
        let fleet = Self {
            clusters,
            connector: FleetConnector::default(),
            metrics: FakeMetrics::default(),
            writes: Arc::default(),
            controllers: None,
        };
        for name in members {
            fleet
                .connector
                .add(name, fleet.clusters[*name].client(CLIENT), "token-1");
            fleet
                .host()
                .create(&secret(NAMESPACE, name, "token-1"))
                .await
                .unwrap();
            fleet.host().create(&objects::cluster(name)).await.unwrap();
        }
        fleet
    }

    pub(crate) fn host(&self) -> &SimulatedCluster {
        &self.clusters[""]
    }

    pub(crate) fn start_controllers(&mut self) {
        let writes = self.writes.clone();
        let meter: Meter = Arc::new(move |verb, _| {
            let is_write = matches!(verb, "create" | "update" | "patch" | "delete");
            writes.fetch_add(usize::from(is_write), Ordering::Relaxed);
        });
        let delivery = Delivery {
            client: self.host().client(CLIENT),
            fence: Fence::open(),
            meter,
            clock: self.host().clock(),
            identity: CLIENT.into(),
            observer: Arc::new(()),
            options: DeliveryOptions {
                connector: Arc::new(self.connector.clone()),
                metrics: Arc::new(self.metrics.clone()),
                max_concurrent: 5,
            },
        };
        self.controllers = Some(tokio::spawn(delivery.run()));
    }

    /// Ends the controllers in the middle of whatever they do.
    pub(crate) fn kill_controllers(&mut self) {
        if let Some(task) = self.controllers.take() {
            task.abort();
        }
    }

    /// Restarts the controllers if a fault has crashed them.
    pub(crate) fn restart_if_crashed(&mut self) {
        let is_crashed =
            |cluster: &SimulatedCluster| cluster.sim().with(|state| state.faults.has_crashed(CLIENT));
        if !self.clusters.values().any(is_crashed) {
            return;
        }
        self.kill_controllers();
        for cluster in self.clusters.values() {
            cluster.sim().with(|state| state.faults.restart_client(CLIENT));
        }
        self.start_controllers();
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        let end = tokio::time::Instant::now() + WAIT_TIMEOUT;
        while !condition(self) {
            if tokio::time::Instant::now() >= end {
                let status = self.stored("applicationdeployments.delivery.mainstay.dev", DEPLOYMENT);
                panic!(
                    "not reached: {what}\n{}",
                    serde_json::to_string_pretty(&status).unwrap()
                );
            }
            self.sleep(Duration::from_millis(500)).await;
            self.restart_if_crashed();
        }
    }

    /// Waits until the phase of the deployment is this one, for its current generation.
    pub(crate) async fn until_phase(&mut self, phase: &str) {
        self.until(phase, |fleet| {
            let object = fleet.deployment();
            object["status"]["phase"] == phase
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await;
    }

    /// Waits until nothing was written for two minutes.
    pub(crate) async fn until_idle(&mut self) {
        for _ in 0..60 {
            let before = self.writes();
            for _ in 0..120 {
                self.sleep(Duration::from_secs(1)).await;
                self.restart_if_crashed();
            }
            if self.writes() == before {
                return;
            }
        }
        panic!("the controllers never stop writing");
    }

    /// Returns an object of the host cluster from its store.
    pub(crate) fn stored(&self, table: &str, name: &str) -> Value {
        self.host()
            .stored_object(table, NAMESPACE, name)
            .unwrap_or_default()
    }

    pub(crate) fn deployment(&self) -> Value {
        self.stored("applicationdeployments.delivery.mainstay.dev", DEPLOYMENT)
    }

    /// Returns an object of a cluster.
    pub(crate) fn object(&self, cluster: &str, table: &str, name: &str) -> Option<Value> {
        self.clusters[cluster].stored_object(table, NAMESPACE, name)
    }

    /// Returns replicas and available replicas of a Deployment.
    pub(crate) fn replicas(&self, cluster: &str, name: &str) -> Option<(u64, u64)> {
        let object = self.object(cluster, "deployments.apps", name)?;
        let number = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        Some((number("/spec/replicas"), number("/status/availableReplicas")))
    }

    /// Creates an object in the host cluster.
    pub(crate) async fn create(&self, object: &Value) {
        self.host().create(object).await.unwrap();
    }

    /// Replaces the spec of an object of the host cluster.
    pub(crate) async fn set_spec(&self, plural: &str, object: &Value) {
        let path = objects::path(plural, object["metadata"]["name"].as_str().unwrap());
        let mut live = self.host().get(&path).await.unwrap().unwrap();
        live["spec"] = object["spec"].clone();
        self.host().replace(&path, &live).await.unwrap();
    }

    /// Creates an Application with two revisions, `example-app-v1` and `example-app-v2`.
    pub(crate) async fn record_two_revisions(&mut self) {
        self.create(&objects::application("registry/app:1")).await;
        self.until_revision("example-app-v1").await;
        self.set_spec("applications", &objects::application("registry/app:2"))
            .await;
        self.until_revision("example-app-v2").await;
    }

    async fn until_revision(&mut self, name: &str) {
        self.until(name, |fleet| {
            !fleet
                .stored("applicationrevisions.delivery.mainstay.dev", name)
                .is_null()
        })
        .await;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_controllers();
    }
}

/// Kinds of Istio that routes need.
const ROUTE_KINDS: [&str; 2] = ["VirtualService", "DestinationRule"];

async fn new_cluster(catalog: &Arc<Catalog>, is_host: bool) -> SimulatedCluster {
    let options = ClusterOptions {
        inject: false,
        ..ClusterOptions::default()
    };
    let cluster = SimulatedCluster::from_objects(catalog.clone(), &options, Vec::new()).unwrap();
    let version = &catalog.installable()[0].version.clone();
    let istio = istio_definitions(catalog, version).unwrap();
    let routes = istio.iter().filter(|definition| {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        ROUTE_KINDS.contains(&kind)
    });
    for definition in routes {
        cluster.create(definition).await.unwrap();
    }
    if is_host {
        for definition in delivery_definitions() {
            cluster.create(&definition).await.unwrap();
        }
    }
    cluster
        .create_namespace(NAMESPACE, serde_json::json!({}))
        .await
        .unwrap();
    cluster
}
