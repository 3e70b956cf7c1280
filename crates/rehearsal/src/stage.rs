//! An embedded cluster with our definitions, an operator on it, and istiods that inject: takes objects as a user would send them, gives what
//! becomes of them. Time is virtual and passes only when nothing else can happen.
//!
//! ```text
//! Stage::play(options, |stage| async { stage.create(…); stage.start_operator(…); stage.pass(…) })
//! ```
//!
//! A [`Pace`] slows the virtual clock down to a multiple of the wall clock, for those who want to watch.

mod error;
mod injector;
mod time;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, OperatorError, Options as OperatorOptions, run};
use mainstay_sim::clock::Instant;
use mainstay_sim::{Cluster, Options as SimOptions};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use error::StageError;
pub use injector::Injectors;
pub(crate) use injector::revision_of;
pub use time::Pace;
use time::Time;

/// The namespace the operator believes to run in.
pub const OPERATOR_NAMESPACE: &str = "sail-operator";
/// The operator's name in traces.
pub const OPERATOR: &str = "mainstay";
/// The user's name in traces.
pub const USER: &str = "user";

/// What a stage is made of.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// What the clock shows at first.
    pub start: Timestamp,
    /// How many nodes pods are spread over.
    pub nodes: usize,
    /// How fast virtual time may pass.
    pub pace: Pace,
    /// Whether a line per call is kept.
    pub trace: bool,
    /// Whether controllers also write Event objects.
    pub events: bool,
    /// Whether operators hold a Lease, as those of real clusters do; otherwise they lead without asking.
    pub lease: bool,
}

impl Default for StageOptions {
    fn default() -> Self {
        let sim = SimOptions::default();
        Self {
            seed: sim.seed,
            start: Timestamp::from_microsecond(sim.start.as_micros()).unwrap_or(Timestamp::UNIX_EPOCH),
            nodes: 3,
            pace: Pace::Leaping,
            trace: false,
            events: false,
            lease: false,
        }
    }
}

/// The embedded cluster.
pub struct Stage {
    cluster: Cluster,
    catalog: Arc<Catalog>,
    time: Time,
    user: Client,
    lease: bool,
    driver: JoinHandle<()>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stage({})", self.now())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// An operator at work.
#[derive(Debug)]
pub struct Operator {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), OperatorError>>,
}

impl Operator {
    /// Stops it in good order.
    pub async fn stop(self) -> Result<(), StageError> {
        // One that has ended by itself hears nothing any more.
        let _ = self.stop.send(());
        match self.task.await {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(StageError::Vanished),
        }
    }
}

impl Stage {
    /// Makes a stage and plays on it, on a thread's own runtime whose clock is the stage's.
    pub fn play<T, F: Future<Output = Result<T, E>>, E: From<StageError>>(
        catalog: Arc<Catalog>,
        options: &StageOptions,
        play: impl FnOnce(Self) -> F,
    ) -> Result<T, E> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .map_err(StageError::Runtime)?;
        runtime.block_on(async {
            let stage = Self::new(catalog, options).await?;
            play(stage).await
        })
    }

    /// A cluster with nodes, controllers, our definitions, and the namespace the operator runs in. It wants a runtime whose clock is paused.
    pub async fn new(catalog: Arc<Catalog>, options: &StageOptions) -> Result<Self, StageError> {
        let cluster = Cluster::new(SimOptions {
            seed: options.seed,
            start: Instant::from_micros(options.start.as_microsecond()),
            trace: options.trace,
            events: options.events,
            ..SimOptions::default()
        });
        cluster.add_controller(Box::new(Injectors::default()));
        cluster.run_workloads(options.nodes);
        let time = Time::new(cluster.clone(), options.pace);
        let driver = tokio::spawn(time.clone().pass());
        let user = time.client(&cluster, USER);
        let stage = Self {
            cluster,
            catalog,
            time,
            user,
            lease: options.lease,
            driver,
        };
        for definition in mainstay_cluster::definitions::ours(&stage.catalog)? {
            stage.create(&definition).await?;
        }
        stage.create_namespace(OPERATOR_NAMESPACE, json!({})).await?;
        Ok(stage)
    }

    /// The cluster itself, for those who want to look behind the curtain.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The versions there are.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// A client by this name.
    #[must_use]
    pub fn client(&self, name: &str) -> Client {
        self.time.client(&self.cluster, name)
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// The same for an operator, or whoever wants to know it often.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.time.clock()
    }

    /// Lets virtual time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Lets virtual time pass until something holds; looks again every `step`, and gives up after `most`.
    pub async fn until(&self, most: Duration, step: Duration, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let end = tokio::time::Instant::now() + most;
        loop {
            if holds(self) {
                return true;
            }
            if tokio::time::Instant::now() >= end {
                return false;
            }
            self.pass(step).await;
        }
    }

    /// Starts an operator. Its `identity`, `namespace` and `leader_elect` are the stage's.
    #[must_use]
    pub fn start_operator(&self, settings: Settings, options: OperatorOptions) -> Operator {
        let settings = Settings {
            operator_namespace: OPERATOR_NAMESPACE.into(),
            ..settings
        };
        let options = OperatorOptions {
            identity: OPERATOR.into(),
            namespace: OPERATOR_NAMESPACE.into(),
            leader_elect: self.lease,
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
        Operator { stop, task }
    }

    /// Creates an object as a user would.
    pub async fn create(&self, object: &Value) -> Result<Value, StageError> {
        let path = self.path(object, "")?;
        self.call("POST", &path, "application/json", Some(object)).await
    }

    /// Creates a namespace; one that is there is left as it is.
    pub async fn create_namespace(&self, name: &str, labels: Value) -> Result<(), StageError> {
        if self.get(&format!("/api/v1/namespaces/{name}")).await?.is_some() {
            return Ok(());
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.create(&namespace).await.map(|_| ())
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, change: &Value) -> Result<Value, StageError> {
        self.call("PATCH", path, "application/merge-patch+json", Some(change))
            .await
    }

    /// Replaces an object.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, StageError> {
        self.call("PUT", path, "application/json", Some(object)).await
    }

    /// Deletes an object.
    pub async fn delete(&self, path: &str) -> Result<(), StageError> {
        self.call("DELETE", path, "application/json", None)
            .await
            .map(|_| ())
    }

    /// An object or a list; nothing if it is not there.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, StageError> {
        match self.call("GET", path, "application/json", None).await {
            Ok(object) => Ok(Some(object)),
            Err(StageError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An object straight from the store, at no cost: `table` as in `deployments.apps`, `namespace` empty for cluster-wide objects.
    #[must_use]
    pub fn peek(&self, table: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = mainstay_sim::object::key(namespace, name);
        self.cluster
            .with(|state| state.store.get(table, &key).map(|object| object.value()))
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        format: &str,
        body: Option<&Value>,
    ) -> Result<Value, StageError> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format)
            .body(bytes);
        let request = request.map_err(kube::Error::HttpError);
        let answer = match request {
            Ok(request) => self.user.request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| StageError::of(&format!("{method} {path}"), error))
    }

    /// Where an object's kind is served.
    fn path(&self, object: &Value, name: &str) -> Result<String, StageError> {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let plural = self.cluster.with(|state| {
            let resource = state.resources.find_kind(version, kind)?;
            Some(resource.plural.to_string())
        });
        let plural = plural.ok_or_else(|| StageError::Unknown(format!("{version} {kind}")))?;
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let tail = if name.is_empty() {
            String::new()
        } else {
            format!("/{name}")
        };
        Ok(match text("/metadata/namespace") {
            "" => format!("{root}/{version}/{plural}{tail}"),
            namespace => format!("{root}/{version}/namespaces/{namespace}/{plural}{tail}"),
        })
    }
}
