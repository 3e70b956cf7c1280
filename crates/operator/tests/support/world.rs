//! The cluster of a scenario. Provides steps (create, patch, label, delete), reads, and waits for an
//! expected state.

mod end;
mod namespaces;
mod time;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, OPERATOR_NAMESPACE, RunningOperator, SimulatedCluster};
use mainstay_mesh::Settings;
use mainstay_operator::{Clock, DEFAULT_MAX_CONCURRENT_RECONCILES, Operator, Options};
use mainstay_sim::auth::User;
use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::calls;
use super::path::{MESH_KINDS, ObjectPath};
use super::plan_checks::PlanChecks;
use super::real_cluster::RealCluster;
pub use time::UnmetCondition;

/// Namespaces that exist in every world.
pub const NAMESPACES: [&str; 4] = ["istio-system", "istio-cni", "ztunnel", OPERATOR_NAMESPACE];

/// The cluster of a [`World`].
pub enum Backing {
    Sim(SimulatedCluster),
    Real(Arc<RealCluster>),
}

/// A cluster with an operator.
pub struct World {
    pub backing: Backing,
    client: Client,
    operator: RefCell<Option<RunningOperator>>,
    max_concurrent: usize,
    settings: RefCell<Settings>,
    /// Checks of the operator's plans.
    pub plan_checks: PlanChecks,
    namespaces: RefCell<Vec<String>>,
    serial: Cell<u64>,
    /// Serial number of this world on its server.
    number: u64,
}

impl World {
    /// Creates a simulated cluster with an operator.
    pub async fn simulated(options: &ClusterOptions) -> Self {
        let world = Self::without_operator(options).await;
        world.start_operator().await;
        world
    }

    /// Creates a simulated cluster with our definitions, but without an operator.
    pub async fn without_operator(options: &ClusterOptions) -> Self {
        let cluster = SimulatedCluster::new(catalog(), options).await.unwrap();
        let client = cluster.client("tester");
        let world = Self::new(Backing::Sim(cluster), client, options.max_concurrent);
        world.set_up().await;
        world
    }

    /// Creates a simulated cluster with these objects, without an operator.
    pub fn from_objects(options: &ClusterOptions, objects: Vec<Value>) -> Self {
        let cluster = SimulatedCluster::from_objects(catalog(), options, objects).unwrap();
        let client = cluster.client("tester");
        Self::new(Backing::Sim(cluster), client, options.max_concurrent)
    }

    /// Starts an operator on the real API server that the tests of this program share.
    pub async fn real() -> Self {
        Self::with_real_cluster(RealCluster::shared(false).await).await
    }

    /// Like [`World::real`], with real istiods that inject pods.
    pub async fn real_injecting() -> Self {
        Self::with_real_cluster(RealCluster::shared(true).await).await
    }

    async fn with_real_cluster(real: Arc<RealCluster>) -> Self {
        let client = real.client("tester");
        let world = Self::new(Backing::Real(real), client, max_concurrent_from_env());
        world.set_up().await;
        world.start_operator().await;
        world.delete_leftovers().await;
        world
    }

    fn new(backing: Backing, client: Client, max_concurrent: usize) -> Self {
        let number = match &backing {
            Backing::Sim(_) => 0,
            Backing::Real(real) => real.next_number(),
        };
        Self {
            number,
            backing,
            client,
            operator: RefCell::new(None),
            max_concurrent,
            settings: RefCell::new(Settings {
                operator_namespace: OPERATOR_NAMESPACE.into(),
                ..Settings::default()
            }),
            plan_checks: PlanChecks::default(),
            namespaces: RefCell::new(Vec::new()),
            serial: Cell::new(0),
        }
    }

    /// Creates our definitions and the namespaces, unless they exist.
    async fn set_up(&self) {
        for definition in super::fixtures::definitions() {
            let at = ObjectPath::from_object(&definition);
            if self.get(&at).await.is_none() {
                self.create(definition).await;
            }
        }
        for kind in MESH_KINDS {
            let at = ObjectPath::cluster_scoped(kind, "");
            self.until(&format!("{kind} is served"), async |world| {
                let (code, _) = world.call("GET", &at.collection(), "", None).await;
                (code == 200).then_some(()).ok_or(format!("code {code}"))
            })
            .await;
        }
        for name in NAMESPACES {
            if self
                .get(&ObjectPath::cluster_scoped("Namespace", name))
                .await
                .is_none()
            {
                self.create(super::fixtures::namespace(name, "")).await;
            }
        }
        for object in super::fixtures::roles(calls::OPERATOR, OPERATOR_NAMESPACE) {
            if self.get(&ObjectPath::from_object(&object)).await.is_none() {
                self.create(object).await;
            }
        }
    }

    // The operator.

    /// Starts the operator.
    #[allow(clippy::unused_async, reason = "called like every other step of a scenario")]
    pub async fn start_operator(&self) {
        let clock = match &self.backing {
            Backing::Sim(sim) => sim.clock(),
            Backing::Real(_) => Clock::system(),
        };
        self.start_operator_with_clock(self.operator_client(), clock);
    }

    /// Returns a client with the operator's permissions.
    pub fn operator_client(&self) -> Client {
        match &self.backing {
            Backing::Sim(sim) => operator_client(sim),
            Backing::Real(real) => real.client(calls::OPERATOR),
        }
    }

    /// Starts the operator with this client on a real server.
    pub fn start_operator_with(&self, client: Client) {
        self.start_operator_with_clock(client, Clock::system());
    }

    fn start_operator_with_clock(&self, client: Client, clock: Clock) {
        let settings = self.settings.borrow().clone();
        let options = Options {
            leader_elect: false,
            max_concurrent: self.max_concurrent,
            inspect: Some(self.plan_checks.inspector()),
            ..Options::default()
        };
        super::plan_checks::init_log();
        let operator = RunningOperator::start(Operator {
            client,
            catalog: catalog(),
            settings,
            options,
            clock,
        });
        let old = self.operator.replace(Some(operator));
        assert!(old.is_none(), "an operator is already running");
    }

    /// Stops the operator as SIGTERM does.
    pub async fn stop_operator(&self) {
        let running = self.operator.take();
        if let Some(running) = running {
            let _ = running.stop().await;
        }
    }

    /// Kills the operator as SIGKILL does.
    pub fn kill_operator(&self) {
        if let Some(running) = self.operator.take() {
            running.kill();
        }
    }

    /// Kills the operator and starts a new one.
    pub async fn restart_operator(&self) {
        self.kill_operator();
        self.start_operator().await;
    }

    /// Whether the operator has ended by itself.
    pub fn operator_ended(&self) -> bool {
        self.operator
            .borrow()
            .as_ref()
            .is_some_and(RunningOperator::has_ended)
    }

    /// Restarts the operator with other settings.
    pub async fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        self.stop_operator().await;
        change(&mut self.settings.borrow_mut());
        self.start_operator().await;
    }

    // Steps.

    /// Creates an object. Panics if the server rejects it.
    pub async fn create(&self, object: Value) -> Value {
        let at = ObjectPath::from_object(&object);
        self.try_create(object)
            .await
            .unwrap_or_else(|error| panic!("{at}: {error}"))
    }

    /// Creates an object, or returns the server's rejection.
    pub async fn try_create(&self, object: Value) -> Result<Value, Rejection> {
        let path = ObjectPath::from_object(&object).collection();
        check_accepted(self.call("POST", &path, "application/json", Some(object)).await)
    }

    /// Changes an object by a merge patch. Panics if the server rejects it.
    pub async fn patch(&self, at: &ObjectPath, patch: Value) -> Value {
        self.try_patch(at, patch)
            .await
            .unwrap_or_else(|error| panic!("{at}: {error}"))
    }

    /// Changes an object by a merge patch, or returns the server's rejection.
    pub async fn try_patch(&self, at: &ObjectPath, patch: Value) -> Result<Value, Rejection> {
        check_accepted(
            self.call("PATCH", &at.path(), "application/merge-patch+json", Some(patch))
                .await,
        )
    }

    /// Changes an object's status.
    pub async fn patch_status(&self, at: &ObjectPath, status: Value) -> Value {
        let path = format!("{}/status", at.path());
        let change = json!({"status": status});
        check_accepted(
            self.call("PATCH", &path, "application/merge-patch+json", Some(change))
                .await,
        )
        .unwrap_or_else(|error| panic!("{at}: {error}"))
    }

    /// Changes an object by a JSON patch.
    pub async fn edit(&self, at: &ObjectPath, patch: Value) -> Value {
        check_accepted(
            self.call("PATCH", &at.path(), "application/json-patch+json", Some(patch))
                .await,
        )
        .unwrap_or_else(|error| panic!("{at}: {error}"))
    }

    /// Deletes an object, if it exists.
    pub async fn delete(&self, at: &ObjectPath) {
        let (code, body) = self.call("DELETE", &at.path(), "", None).await;
        assert!(code < 300 || code == 404, "{at}: {body}");
    }

    /// Sets the behavior of the pods of a workload.
    pub fn set_script(&self, namespace: &str, workload: &str, script: Script) {
        match &self.backing {
            Backing::Sim(sim) => sim.sim().with(|state| {
                state.scripts.add_workload(namespace, workload, script);
            }),
            Backing::Real(real) => real.set_script(namespace, workload, script),
        }
    }

    // Reads.

    pub async fn get(&self, at: &ObjectPath) -> Option<Value> {
        match self.call("GET", &at.path(), "", None).await {
            (200, object) => Some(object),
            (404, _) => None,
            (code, body) => panic!("{at}: {code} {body}"),
        }
    }

    pub async fn list(&self, kind: &str, selector: &str) -> Vec<Value> {
        let path = format!(
            "{}?labelSelector={selector}",
            ObjectPath::cluster_scoped(kind, "").collection()
        );
        let (code, mut body) = self.call("GET", &path, "", None).await;
        assert_eq!(code, 200, "{path}: {body}");
        match body["items"].take() {
            Value::Array(items) => items,
            other => panic!("{path}: {other}"),
        }
    }

    /// Returns the client of the test.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether the cluster runs on wall-clock time.
    pub fn is_real(&self) -> bool {
        matches!(self.backing, Backing::Real(_))
    }

    /// Sends a request and returns status code and body.
    pub async fn call(&self, method: &str, path: &str, content: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let response = self
            .client
            .send(request.body(Body::from(bytes)).unwrap())
            .await
            .unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// Reads `MAINSTAY_MAX_CONCURRENT`, the maximum number of concurrent reconciles on real servers.
fn max_concurrent_from_env() -> usize {
    match std::env::var("MAINSTAY_MAX_CONCURRENT") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => DEFAULT_MAX_CONCURRENT_RECONCILES,
    }
}

fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::embedded().unwrap())
}

/// Returns options of a simulated cluster whose webhooks admit all objects.
pub fn plain_options() -> ClusterOptions {
    ClusterOptions {
        trace: true,
        inject: false,
        admit_unserved: true,
        ..ClusterOptions::default()
    }
}

/// Returns options of a simulated cluster whose istiods inject pods.
pub fn injecting_options() -> ClusterOptions {
    ClusterOptions {
        inject: true,
        ..plain_options()
    }
}

/// Returns a client with the permissions of the operator's roles.
pub fn operator_client(cluster: &SimulatedCluster) -> Client {
    cluster.client_as(calls::OPERATOR, User::named(calls::OPERATOR, &["operators"]))
}

/// Response of the server to a rejected request.
#[derive(Debug, thiserror::Error)]
#[error("{code} {message}")]
pub struct Rejection {
    pub code: u16,
    pub message: String,
}

fn check_accepted((code, body): (u16, Value)) -> Result<Value, Rejection> {
    if code < 300 {
        return Ok(body);
    }
    Err(Rejection {
        code,
        message: body["message"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Returns a list item with its kind, which the server omits.
pub fn with_kind(kind: &str, mut object: Value) -> Value {
    object["kind"] = kind.into();
    object
}

/// Whether an object has a condition, given as `Type=Status` or `Type=Status/Reason`.
pub fn has_condition(object: &Value, wanted: &str) -> bool {
    let (kind, rest) = wanted.split_once('=').unwrap();
    let (status, reason) = rest.split_once('/').unwrap_or((rest, ""));
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == kind
            && condition["status"] == status
            && (reason.is_empty() || condition["reason"] == reason)
    })
}

/// Summarizes the state and conditions of an object in one line.
pub fn summarize(object: &Value) -> String {
    let conditions: Vec<String> = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{}={}/{} {}",
                text("type"),
                text("status"),
                text("reason"),
                text("message")
            )
        })
        .collect();
    format!(
        "{} {} gen {} seen {} state {} deleting {} [{}]",
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
        object["metadata"]["generation"],
        object["status"]["observedGeneration"],
        object["status"]["state"],
        object["metadata"]["deletionTimestamp"],
        conditions.join("; ")
    )
}
