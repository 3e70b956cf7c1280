//! A fleet: a host cluster, member clusters and the delivery controllers.

mod connector;
mod metrics;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::crd::delivery_definitions;
use mainstay_api::delivery::API_VERSION;
use mainstay_catalog::Catalog;
use mainstay_cluster::connect::{Fence, Meter};
use mainstay_cluster::definitions::istio_definitions;
use mainstay_operator::Clock;
use mainstay_operator::delivery::{Delivery, DeliveryOptions};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::paused_runtime;
use crate::{ClusterOptions, HarnessError, OPERATOR, SimulatedCluster};
pub use connector::{FleetConnector, UnansweredCall, cluster_secret};
pub use metrics::FixedMetrics;

/// Initial token of every member cluster.
pub const FIRST_TOKEN: &str = "token-1";

/// Istio kinds that routes require.
const ROUTE_KINDS: [&str; 2] = ["VirtualService", "DestinationRule"];

/// Settings of a [`Fleet`].
#[derive(Clone, Debug, Default)]
pub struct FleetOptions {
    /// Settings of each cluster.
    pub cluster: ClusterOptions,
    /// Namespace of the Cluster objects and their Secrets.
    pub namespace: String,
    /// Member clusters with the labels of their Cluster objects.
    pub members: Vec<(String, BTreeMap<String, String>)>,
    /// Definitions of the kinds of routes in every cluster. If empty, Istio's are installed.
    pub route_definitions: Vec<Value>,
    /// Difference between the clocks of consecutive clusters, beginning with the host.
    pub clock_offset: SignedDuration,
}

/// Several simulated clusters with the same virtual time, and the delivery controllers in the host cluster.
pub struct Fleet {
    /// All clusters by name. The name of the host cluster is empty.
    pub clusters: BTreeMap<String, Arc<SimulatedCluster>>,
    /// Connector through which the controllers access the members.
    pub connector: FleetConnector,
    /// Metric source that returns one value for all metrics.
    pub metrics: FixedMetrics,
    /// Difference between the clock of the controllers and that of the host. Takes effect when the
    /// controllers are started.
    pub controller_clock_offset: SignedDuration,
    host: Arc<SimulatedCluster>,
    namespace: String,
    writes: Arc<AtomicUsize>,
    controllers: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fleet({} clusters)", self.clusters.len())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_controllers();
    }
}

impl Fleet {
    /// Creates a fleet and runs `scenario` on it. Creates a single-threaded runtime with a paused clock.
    pub fn run<T, F: Future<Output = Result<T, E>>, E: From<HarnessError>>(
        catalog: &Arc<Catalog>,
        options: &FleetOptions,
        scenario: impl FnOnce(Self) -> F,
    ) -> Result<T, E> {
        paused_runtime()?.block_on(async {
            let fleet = Self::new(catalog, options).await?;
            scenario(fleet).await
        })
    }

    /// Creates a host cluster with the delivery kinds, and members with their Secrets and Cluster objects.
    /// Does not start the controllers. Must be called on a runtime with a paused clock.
    pub async fn new(catalog: &Arc<Catalog>, options: &FleetOptions) -> Result<Self, HarnessError> {
        let host = Arc::new(new_cluster(catalog, options, 0).await?);
        for definition in delivery_definitions() {
            host.create(&definition).await?;
        }
        // In members, the controllers create the namespace.
        host.create_namespace(&options.namespace, json!({})).await?;
        let mut fleet = Self {
            clusters: BTreeMap::from([(String::new(), host.clone())]),
            connector: FleetConnector::default(),
            metrics: FixedMetrics::default(),
            controller_clock_offset: SignedDuration::ZERO,
            host,
            namespace: options.namespace.clone(),
            writes: Arc::default(),
            controllers: None,
        };
        for (index, (name, labels)) in (1..).zip(&options.members) {
            let member = Arc::new(new_cluster(catalog, options, index).await?);
            fleet.connector.add(name, member.client(OPERATOR), FIRST_TOKEN);
            let secret = cluster_secret(&fleet.namespace, name, FIRST_TOKEN);
            fleet.host.create(&secret).await?;
            fleet
                .host
                .create(&cluster_object(&fleet.namespace, name, labels))
                .await?;
            fleet.clusters.insert(name.clone(), member);
        }
        Ok(fleet)
    }

    /// Returns the host cluster.
    #[must_use]
    pub fn host(&self) -> &SimulatedCluster {
        &self.host
    }

    /// Starts the delivery controllers, which run as a task on the current runtime.
    pub fn start_controllers(&mut self) {
        let writes = self.writes.clone();
        let meter: Meter = Arc::new(move |verb, _| {
            let is_write = matches!(verb, "create" | "update" | "patch" | "delete");
            writes.fetch_add(usize::from(is_write), Ordering::Relaxed);
        });
        let delivery = Delivery {
            client: self.host.client(OPERATOR),
            fence: Fence::open(),
            meter,
            clock: self.controller_clock(),
            identity: OPERATOR.into(),
            observer: Arc::new(()),
            options: DeliveryOptions {
                connector: Arc::new(self.connector.clone()),
                metrics: Arc::new(self.metrics.clone()),
                max_concurrent: mainstay_operator::DEFAULT_MAX_CONCURRENT_RECONCILES,
            },
        };
        self.controllers = Some(tokio::spawn(delivery.run()));
    }

    fn controller_clock(&self) -> Clock {
        let (clock, offset) = (self.host.clock(), self.controller_clock_offset);
        Clock::new(move || clock.now().saturating_add(offset).unwrap_or(Timestamp::MAX))
    }

    /// Aborts the controllers, even in the middle of a write.
    pub fn kill_controllers(&mut self) {
        if let Some(task) = self.controllers.take() {
            task.abort();
        }
    }

    /// Restarts the controllers if an injected fault has crashed them.
    pub fn restart_if_crashed(&mut self) {
        let is_crashed =
            |cluster: &Arc<SimulatedCluster>| cluster.sim().with(|state| state.faults.has_crashed(OPERATOR));
        if !self.clusters.values().any(is_crashed) {
            return;
        }
        self.kill_controllers();
        for cluster in self.clusters.values() {
            cluster.sim().with(|state| state.faults.restart_client(OPERATOR));
        }
        self.start_controllers();
    }

    /// Returns the number of writes by the controllers to all clusters.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// Sleeps for a duration of virtual time.
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Returns an object from the store of a cluster, or `None` if it does not exist.
    #[must_use]
    pub fn object(&self, cluster: &str, table: &str, name: &str) -> Option<Value> {
        self.clusters
            .get(cluster)?
            .stored_object(table, &self.namespace, name)
    }

    /// Returns the desired and the available replicas of a Deployment.
    #[must_use]
    pub fn replicas(&self, cluster: &str, name: &str) -> Option<(u64, u64)> {
        let object = self.object(cluster, "deployments.apps", name)?;
        let number = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        Some((number("/spec/replicas"), number("/status/availableReplicas")))
    }

    /// Returns the API path of a delivery object in the host cluster.
    #[must_use]
    pub fn path(&self, plural: &str, name: &str) -> String {
        format!(
            "/apis/{API_VERSION}/namespaces/{}/{plural}/{name}",
            self.namespace
        )
    }
}

fn cluster_object(namespace: &str, name: &str, labels: &BTreeMap<String, String>) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"kubeconfigSecretRef": {"name": format!("kubeconfig-{name}")}},
    })
}

/// Creates the cluster with this index, with the kinds that routes require.
async fn new_cluster(
    catalog: &Arc<Catalog>,
    options: &FleetOptions,
    index: i32,
) -> Result<SimulatedCluster, HarnessError> {
    let mut settings = options.cluster.clone();
    let offset = options.clock_offset.saturating_mul(index);
    settings.start = settings.start.saturating_add(offset).unwrap_or(settings.start);
    let cluster = SimulatedCluster::from_objects(catalog.clone(), &settings, Vec::new())?;
    if options.route_definitions.is_empty() {
        for definition in istio_route_definitions(catalog)? {
            cluster.create(&definition).await?;
        }
    }
    for definition in &options.route_definitions {
        cluster.create(definition).await?;
    }
    Ok(cluster)
}

/// Returns the definitions of [`ROUTE_KINDS`], or nothing if the catalog is empty.
fn istio_route_definitions(catalog: &Catalog) -> Result<Vec<Value>, HarnessError> {
    let Some(newest) = catalog.installable().into_iter().next() else {
        return Ok(Vec::new());
    };
    let mut definitions = istio_definitions(catalog, &newest.version)?;
    definitions.retain(|definition| {
        let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str);
        kind.is_some_and(|kind| ROUTE_KINDS.contains(&kind))
    });
    Ok(definitions)
}
