//! The simulated cluster: controllers, our definitions, and requests on behalf of a user.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Operator, Options as OperatorOptions};
use mainstay_sim::auth::User;
use mainstay_sim::clock::Instant;
use mainstay_sim::{Cluster, Options as SimOptions, snapshot};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::injector::AdmitAll;
use crate::time::VirtualTime;
use crate::{ClusterOptions, HarnessError, Injectors, OPERATOR, OPERATOR_NAMESPACE, RunningOperator, USER};

/// A simulated cluster in virtual time.
pub struct SimulatedCluster {
    sim: Cluster,
    catalog: Arc<Catalog>,
    time: VirtualTime,
    user: Client,
    leader_elect: bool,
    max_concurrent: usize,
    driver: JoinHandle<()>,
}

impl std::fmt::Debug for SimulatedCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimulatedCluster({})", self.now())
    }
}

impl Drop for SimulatedCluster {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl SimulatedCluster {
    /// Creates a cluster and runs `scenario` on it. Creates a single-threaded runtime with a paused clock.
    pub fn run<T, F: Future<Output = Result<T, E>>, E: From<HarnessError>>(
        catalog: Arc<Catalog>,
        options: &ClusterOptions,
        scenario: impl FnOnce(Self) -> F,
    ) -> Result<T, E> {
        paused_runtime()?.block_on(async {
            let cluster = Self::new(catalog, options).await?;
            scenario(cluster).await
        })
    }

    /// Creates a cluster with nodes, controllers, our definitions and the operator's namespace. Must be
    /// called on a runtime with a paused clock.
    pub async fn new(catalog: Arc<Catalog>, options: &ClusterOptions) -> Result<Self, HarnessError> {
        let cluster = Self::start(new_sim(options), catalog, options);
        for definition in mainstay_cluster::definitions::own_definitions(&cluster.catalog)? {
            cluster.create(&definition).await?;
        }
        cluster.create_namespace(OPERATOR_NAMESPACE, json!({})).await?;
        Ok(cluster)
    }

    /// Creates a cluster that contains only the given objects of another cluster. Must be called on a
    /// runtime with a paused clock.
    pub fn from_objects(
        catalog: Arc<Catalog>,
        options: &ClusterOptions,
        objects: Vec<Value>,
    ) -> Result<Self, HarnessError> {
        let sim = new_sim(options);
        let skipped = sim.with(|state| snapshot::load(state, objects)).skipped;
        if !skipped.is_empty() {
            return Err(HarnessError::NotLoaded(skipped));
        }
        Ok(Self::start(sim, catalog, options))
    }

    fn start(sim: Cluster, catalog: Arc<Catalog>, options: &ClusterOptions) -> Self {
        if options.inject {
            sim.add_controller(Box::new(Injectors::default()));
        }
        if options.admit_unserved {
            sim.set_webhook_transport(Arc::new(AdmitAll));
        }
        sim.run_workloads(options.nodes);
        let time = VirtualTime::new(sim.clone(), options.speed);
        let driver = tokio::spawn(time.clone().drive());
        Self {
            user: time.client(sim.connect(USER)),
            sim,
            catalog,
            time,
            leader_elect: options.leader_elect,
            max_concurrent: options.max_concurrent,
            driver,
        }
    }

    /// Returns the simulator, for direct access to its store, scripts and faults.
    #[must_use]
    pub fn sim(&self) -> &Cluster {
        &self.sim
    }

    /// Returns the catalog that operators install from.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns a client with administrator rights. Traces and fault rules identify it by `name`.
    #[must_use]
    pub fn client(&self, name: &str) -> Client {
        self.time.client(self.sim.connect(name))
    }

    /// Returns a client with the rights of `user`.
    #[must_use]
    pub fn client_as(&self, name: &str, user: User) -> Client {
        self.time.client(self.sim.connect_as(name, user))
    }

    /// Returns the current virtual time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Returns the virtual clock for use by operators.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.time.clock()
    }

    /// Sleeps for a duration of virtual time.
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until `condition` holds, which is checked at every `interval` of virtual time. Returns false
    /// after `timeout`.
    pub async fn wait_until(
        &self,
        timeout: Duration,
        interval: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> bool {
        let end = tokio::time::Instant::now() + timeout;
        loop {
            if condition(self) {
                return true;
            }
            if tokio::time::Instant::now() >= end {
                return false;
            }
            self.sleep(interval).await;
        }
    }

    /// Starts an operator. Its identity, leader election and concurrency are those of the cluster's
    /// options.
    #[must_use]
    pub fn start_operator(&self, settings: Settings, options: OperatorOptions) -> RunningOperator {
        let options = OperatorOptions {
            identity: OPERATOR.into(),
            leader_elect: self.leader_elect,
            max_concurrent: self.max_concurrent,
            ..options
        };
        self.start_operator_with(self.client(OPERATOR), settings, options)
    }

    /// Starts an operator that uses `client`. The harness sets only its namespace.
    #[must_use]
    pub fn start_operator_with(
        &self,
        client: Client,
        settings: Settings,
        options: OperatorOptions,
    ) -> RunningOperator {
        RunningOperator::start(Operator {
            client,
            catalog: self.catalog.clone(),
            settings: Settings {
                operator_namespace: OPERATOR_NAMESPACE.into(),
                ..settings
            },
            options: OperatorOptions {
                namespace: OPERATOR_NAMESPACE.into(),
                ..options
            },
            clock: self.clock(),
        })
    }

    /// Creates an object as [`USER`](crate::USER).
    pub async fn create(&self, object: &Value) -> Result<Value, HarnessError> {
        let path = self.collection_path(object)?;
        self.call("POST", &path, "application/json", Some(object)).await
    }

    /// Creates a namespace unless it exists.
    pub async fn create_namespace(&self, name: &str, labels: Value) -> Result<(), HarnessError> {
        if self.get(&format!("/api/v1/namespaces/{name}")).await?.is_some() {
            return Ok(());
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.create(&namespace).await.map(|_| ())
    }

    /// Changes an object with a merge patch.
    pub async fn merge_patch(&self, path: &str, change: &Value) -> Result<Value, HarnessError> {
        self.call("PATCH", path, "application/merge-patch+json", Some(change))
            .await
    }

    /// Replaces an object.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, HarnessError> {
        self.call("PUT", path, "application/json", Some(object)).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str) -> Result<(), HarnessError> {
        self.call("DELETE", path, "application/json", None)
            .await
            .map(|_| ())
    }

    /// Returns an object or a list, or `None` if it does not exist.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, HarnessError> {
        match self.call("GET", path, "application/json", None).await {
            Ok(object) => Ok(Some(object)),
            Err(HarnessError::Rejected { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns an object directly from the store, without an API call. `table` is `deployments.apps` or
    /// similar; `namespace` is empty for cluster-scoped objects.
    #[must_use]
    pub fn stored_object(&self, table: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = mainstay_sim::object::key(namespace, name);
        self.sim
            .with(|state| state.store.get(table, &key).map(|object| object.value()))
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, HarnessError> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(bytes)
            .map_err(kube::Error::HttpError);
        let response = match request {
            Ok(request) => self.user.request(request).await,
            Err(error) => Err(error),
        };
        response.map_err(|error| HarnessError::from_call(format!("{method} {path}"), error))
    }

    /// Returns the API path of the collection that `object` belongs to.
    fn collection_path(&self, object: &Value) -> Result<String, HarnessError> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let plural = self.sim.with(|state| {
            let resource = state.resources.find_kind(version, kind)?;
            Some(resource.plural.to_string())
        });
        let plural = plural.ok_or_else(|| HarnessError::UnknownKind(format!("{version} {kind}")))?;
        let root = if version.contains('/') { "/apis" } else { "/api" };
        Ok(match text("/metadata/namespace") {
            "" => format!("{root}/{version}/{plural}"),
            namespace => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        })
    }
}

/// Creates a single-threaded runtime with a paused clock.
pub(crate) fn paused_runtime() -> Result<Runtime, HarnessError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(HarnessError::Runtime)
}

fn new_sim(options: &ClusterOptions) -> Cluster {
    Cluster::new(SimOptions {
        seed: options.seed,
        start: Instant::from_micros(options.start.as_microsecond()),
        trace: options.trace,
        events: options.events,
        ..SimOptions::default()
    })
}
