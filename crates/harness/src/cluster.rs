//! The simulated cluster: controllers, our definitions, and requests as a user sends them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, Options as OperatorOptions, run};
use mainstay_sim::clock::Instant;
use mainstay_sim::{Cluster, Options as SimOptions};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::time::VirtualTime;
use crate::{ClusterOptions, HarnessError, Injectors, OPERATOR, OPERATOR_NAMESPACE, RunningOperator, USER};

/// A simulated cluster in virtual time.
pub struct SimulatedCluster {
    sim: Cluster,
    catalog: Arc<Catalog>,
    time: VirtualTime,
    user: Client,
    leader_elect: bool,
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
    /// Creates a cluster and runs `scenario` on it, on a single-threaded runtime with a paused clock.
    pub fn run<T, F: Future<Output = Result<T, E>>, E: From<HarnessError>>(
        catalog: Arc<Catalog>,
        options: &ClusterOptions,
        scenario: impl FnOnce(Self) -> F,
    ) -> Result<T, E> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .map_err(HarnessError::Runtime)?;
        runtime.block_on(async {
            let cluster = Self::new(catalog, options).await?;
            scenario(cluster).await
        })
    }

    /// Creates a cluster with nodes, controllers, our definitions and the operator's namespace. Must be called on a
    /// runtime whose clock is paused.
    pub async fn new(catalog: Arc<Catalog>, options: &ClusterOptions) -> Result<Self, HarnessError> {
        let sim = Cluster::new(SimOptions {
            seed: options.seed,
            start: Instant::from_micros(options.start.as_microsecond()),
            trace: options.trace,
            events: options.events,
            ..SimOptions::default()
        });
        sim.add_controller(Box::new(Injectors::default()));
        sim.run_workloads(options.nodes);
        let time = VirtualTime::new(sim.clone(), options.speed);
        let driver = tokio::spawn(time.clone().drive());
        let cluster = Self {
            user: time.client(sim.connect(USER)),
            sim,
            catalog,
            time,
            leader_elect: options.leader_elect,
            driver,
        };
        for definition in mainstay_cluster::definitions::own_definitions(&cluster.catalog)? {
            cluster.create(&definition).await?;
        }
        cluster.create_namespace(OPERATOR_NAMESPACE, json!({})).await?;
        Ok(cluster)
    }

    /// The simulator, for direct access to its store, scripts and faults.
    #[must_use]
    pub fn sim(&self) -> &Cluster {
        &self.sim
    }

    /// The catalog that operators install from.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns a client with administrator rights; traces and faults know it by `name`.
    #[must_use]
    pub fn client(&self, name: &str) -> Client {
        self.time.client(self.sim.connect(name))
    }

    /// The current virtual time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// The virtual clock, as operators use it.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.time.clock()
    }

    /// Lets virtual time pass.
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Lets virtual time pass until `condition` holds, checked every `interval`. Returns false after `timeout`.
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

    /// Starts an operator. `identity`, `namespace` and `leader_elect` are set by the harness.
    #[must_use]
    pub fn start_operator(&self, settings: Settings, options: OperatorOptions) -> RunningOperator {
        let settings = Settings {
            operator_namespace: OPERATOR_NAMESPACE.into(),
            ..settings
        };
        let options = OperatorOptions {
            identity: OPERATOR.into(),
            namespace: OPERATOR_NAMESPACE.into(),
            leader_elect: self.leader_elect,
            ..options
        };
        let (stop, stopped) = oneshot::channel();
        let (client, catalog, clock) = (self.client(OPERATOR), self.catalog.clone(), self.time.clock());
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            run(client, catalog, settings, options, clock, stopped).await
        });
        RunningOperator { stop, task }
    }

    /// Creates an object as the user.
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

    /// Changes an object by a merge patch.
    pub async fn merge_patch(&self, path: &str, patch: &Value) -> Result<Value, HarnessError> {
        self.call("PATCH", path, "application/merge-patch+json", Some(patch))
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

    /// Returns an object directly from the store, without an API call. `table` is `deployments.apps` or similar;
    /// `namespace` is empty for cluster-scoped objects.
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
