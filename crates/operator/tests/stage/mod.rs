//! A simulated cluster with our definitions, and operators that run on it. Time passes only when nothing else can happen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, OperatorError, Options, run};
use mainstay_sim::fault::RequestCounts;
use mainstay_sim::{Cluster, Options as SimOptions};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const TICK: Duration = Duration::from_millis(100);

/// A cluster to play on.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    user: Client,
    catalog: Arc<Catalog>,
    time: JoinHandle<()>,
}

/// An operator that runs.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), OperatorError>>,
}

impl Running {
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }

    /// Waits until it gives up.
    pub(crate) async fn failure(self) -> OperatorError {
        self.task.await.unwrap().unwrap_err()
    }

    /// Kills it in the middle of whatever it does.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

pub(crate) fn istio(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": name},
        "spec": {"namespace": "istio-system"},
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut object["spec"], spec) {
        all.extend(more);
    }
    object
}

impl Stage {
    pub(crate) async fn new() -> Self {
        // Shown when a test fails, or with --nocapture.
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_ansi(false)
            .without_time()
            .try_init();
        let cluster = Cluster::new(SimOptions::default());
        cluster.run_workloads(2);
        let moving = cluster.clone();
        let time = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                moving.advance(TICK);
            }
        });
        let stage = Self {
            user: Client::new(cluster.connect("user"), "default"),
            catalog: Arc::new(Catalog::embedded().unwrap()),
            cluster,
            time,
        };
        for definition in mainstay_cluster::definitions::own_definitions(&stage.catalog).unwrap() {
            stage.create(&definition).await;
        }
        for name in ["istio-system", "sail-operator", "istio-cni", "ztunnel"] {
            stage
                .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await;
        }
        stage
    }

    /// Starts an operator that leads without asking; faults and traces know it by this name.
    pub(crate) fn start(&self, client: &str) -> Running {
        self.start_with(
            client,
            Options {
                leader_elect: false,
                ..Options::default()
            },
        )
    }

    /// Starts an operator.
    pub(crate) fn start_with(&self, client: &str, options: Options) -> Running {
        let settings = Settings {
            operator_namespace: "sail-operator".into(),
            ..Settings::default()
        };
        let options = Options {
            identity: client.to_owned(),
            inspect: Some(Arc::new(|snapshot, plan| {
                let broken = mainstay_check::check(snapshot, plan);
                assert!(broken.is_empty(), "{broken:?}");
            })),
            ..options
        };
        let (stop, stopped) = oneshot::channel();
        let cluster = self.cluster.clone();
        let clock = Clock::new(move || Timestamp::from_microsecond(cluster.now().as_micros()).unwrap());
        let client = Client::new(self.cluster.connect(client), "default");
        let catalog = self.catalog.clone();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            run(client, catalog, settings, options, clock, stopped).await
        });
        Running { stop, task }
    }

    /// Lets so many seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Lets time pass until something holds.
    pub(crate) async fn until(&self, seconds: u64, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..seconds * 10 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(TICK).await;
        }
        panic!("not {what} after {seconds} s:\n{}", self.cluster.trace());
    }

    /// `status.state` of one of our objects.
    pub(crate) fn state(&self, plural: &str, name: &str) -> String {
        let object = self.cluster.with(|state| {
            let resource = state.resources.preferred("sailoperator.io", plural)?.clone();
            let object = state
                .store
                .get(&resource.table, &mainstay_sim::object::key("", name))?;
            Some(object.value().clone())
        });
        let state =
            object.and_then(|object| object.pointer("/status/state")?.as_str().map(ToOwned::to_owned));
        state.unwrap_or_default()
    }

    pub(crate) async fn create(&self, object: &Value) {
        let path = folder(object);
        let answer = self.call("POST", &path, "application/json", Some(object)).await;
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.call("DELETE", path, "application/json", None).await.unwrap();
    }

    pub(crate) async fn merge(&self, path: &str, change: &Value) {
        self.call("PATCH", path, "application/merge-patch+json", Some(change))
            .await
            .unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.call("GET", path, "application/json", None).await.ok()
    }

    pub(crate) async fn exists(&self, path: &str) -> bool {
        self.get(path).await.is_some()
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        format: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format);
        self.user.request(request.body(bytes).unwrap()).await
    }

    /// What a client called so far.
    pub(crate) fn calls(&self, client: &str) -> RequestCounts {
        self.cluster.with(|state| state.faults.counts(client))
    }

    /// The lines of the trace about a client, watches left out.
    pub(crate) fn trace_of(&self, client: &str) -> String {
        let trace = self.cluster.trace();
        let lines = trace
            .lines()
            .filter(|line| line.contains(client) && !line.contains("watch"));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn writes_since(&self, _: u64) -> String {
        let trace = self.cluster.trace();
        let writes = ["POST", "PATCH", "PUT", "DELETE"];
        let lines: Vec<_> = trace
            .lines()
            .filter(|line| writes.iter().any(|verb| line.contains(verb)))
            .collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.time.abort();
    }
}

fn folder(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let plural = format!("{}s", text("/kind").to_lowercase());
    let root = match text("/apiVersion") {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    match text("/metadata/namespace") {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    }
}
