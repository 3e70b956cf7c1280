//! A simulated or real cluster, and runs of the binary against it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_harness::Injectors;
use mainstay_sim::auth::User;
use mainstay_sim::script::Script;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_testkit::cluster::{Audit, Cluster, Options};
use mainstay_testkit::inventory::inventory;
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use serde_json::{Value, json};

/// Maximum time to reach a state on a busy machine.
const DEADLINE: Duration = Duration::from_mins(3);

/// Kinds whose objects controllers create and delete, excluded from the inventory.
const DERIVED: &[&str] = &[
    "Event",
    "Pod",
    "ReplicaSet",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Lease",
    "IPAddress",
];

/// Names that the simulator may record for the binary.
pub(crate) const CLIENTS: [&str; 2] = ["mainstay", "unnamed"];

enum Running {
    Simulated {
        cluster: mainstay_sim::Cluster,
        _server: Box<Server>,
    },
    Real {
        cluster: Box<Cluster>,
        kubelet: Kubelet,
    },
}

/// A cluster with its kubeconfig.
pub(crate) struct Host {
    server: Running,
    directory: tempfile::TempDir,
}

/// Numbers of requests of the binary, and on a real cluster also of the tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

impl Requests {
    /// Returns the requests since an earlier count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
        }
    }
}

/// Result of one run of the binary.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Host {
    /// A simulated cluster with istiods that inject.
    pub(crate) async fn simulated() -> Self {
        let cluster = mainstay_sim::Cluster::default();
        cluster.add_controller(Box::new(Injectors::default()));
        cluster.run_workloads(1);
        let options = ServeOptions {
            speed: 20.0,
            ..ServeOptions::default()
        };
        let server = Server::start(&cluster, &options).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        server
            .write_kubeconfig(User::admin(), &directory.path().join("kubeconfig"))
            .unwrap();
        server
            .write_kubeconfig(
                User::named("guest", &["system:authenticated"]),
                &directory.path().join("guest"),
            )
            .unwrap();
        let host = Self {
            server: Running::Simulated {
                cluster,
                _server: Box::new(server),
            },
            directory,
        };
        host.prepare().await;
        host
    }

    /// A real API server with controllers and a simulated kubelet, without any istiod.
    pub(crate) async fn real() -> Self {
        Self::with_options(Options::default()).await
    }

    /// Same as [`Self::real`], with an audit log.
    pub(crate) async fn audited() -> Self {
        let options = Options {
            audit: true,
            ..Options::default()
        };
        Self::with_options(options).await
    }

    async fn with_options(options: Options) -> Self {
        let cluster = Cluster::start(options).await.unwrap();
        let options = KubeletOptions {
            nodes: 1,
            backend: None,
        };
        let kubelet = Kubelet::start(&cluster, options).await.unwrap();
        let host = Self {
            directory: tempfile::tempdir().unwrap(),
            server: Running::Real {
                cluster: Box::new(cluster),
                kubelet,
            },
        };
        host.prepare().await;
        host
    }

    /// Creates the namespace and waits for its default objects, so that the inventory before contains them.
    async fn prepare(&self) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}});
        self.send("POST", "/api/v1/namespaces", Some(&namespace)).await;
        self.until("the namespace's own objects", async || {
            let account = self
                .send(
                    "GET",
                    "/api/v1/namespaces/istio-system/serviceaccounts/default",
                    None,
                )
                .await;
            account["kind"] == "ServiceAccount" || matches!(self.server, Running::Simulated { .. })
        })
        .await;
    }

    /// Returns the kind of server, for counts.
    pub(crate) fn kind(&self) -> &'static str {
        match self.server {
            Running::Simulated { .. } => "simulated",
            Running::Real { .. } => "real",
        }
    }

    pub(crate) fn simulator(&self) -> &mainstay_sim::Cluster {
        match &self.server {
            Running::Simulated { cluster, .. } => cluster,
            Running::Real { .. } => panic!("not simulated"),
        }
    }

    /// The audit log of a real cluster.
    pub(crate) fn audit(&self) -> Audit {
        match &self.server {
            Running::Real { cluster, .. } => cluster.audit(),
            Running::Simulated { .. } => panic!("not real"),
        }
    }

    /// Returns the requests up to now; a real cluster needs an audit log.
    pub(crate) fn requests(&self) -> Requests {
        match &self.server {
            Running::Simulated { cluster, .. } => cluster.with(|state| {
                let counts = CLIENTS.map(|client| state.faults.counts(client));
                let writes = counts.iter().map(|count| count.writes).sum();
                let requests: u64 = counts.iter().map(|count| count.requests).sum();
                Requests {
                    reads: requests - writes,
                    writes,
                }
            }),
            Running::Real { cluster, .. } => {
                let count = cluster.audit().counts().unwrap()["admin"];
                Requests {
                    reads: count.reads as u64,
                    writes: count.writes as u64,
                }
            }
        }
    }

    /// Sets how pods of a workload in `istio-system` behave.
    pub(crate) fn set_script(&self, workload: &str, script: Script) {
        match &self.server {
            Running::Simulated { cluster, .. } => {
                cluster.with(|state| state.scripts.add_workload("istio-system", workload, script));
            }
            Running::Real { kubelet, .. } => kubelet.set_script("istio-system", workload, script),
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match &self.server {
            Running::Simulated { .. } => self.directory.path().join("kubeconfig"),
            Running::Real { cluster, .. } => cluster.kubeconfig("admin"),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .env("XDG_DATA_HOME", self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Runs the binary.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(arguments)).await
    }

    /// Runs the binary, which must succeed; returns its output.
    pub(crate) async fn ok(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments).await;
        assert_eq!(outcome.code, 0, "{arguments:?}: {outcome:#?}");
        outcome.stdout
    }

    pub(crate) fn client(&self) -> Client {
        match &self.server {
            Running::Simulated { cluster, .. } => Client::new(cluster.connect("test"), "default"),
            Running::Real { cluster, .. } => cluster.client("admin").unwrap(),
        }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let text = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let format = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format);
        let response = self
            .client()
            .send(request.body(Body::from(text)).unwrap())
            .await
            .unwrap();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Returns all objects except those that controllers create, as `version kind namespace/name`.
    pub(crate) async fn inventory(&self) -> BTreeSet<String> {
        let begin = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        loop {
            match inventory(&self.client(), DERIVED).await {
                // The API server initializes the storage of a new kind.
                Err(kube::Error::Api(status)) if status.code == 429 && begin.elapsed() < DEADLINE => {
                    ticks.tick().await;
                }
                result => return result.unwrap(),
            }
        }
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let begin = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while !condition().await {
            assert!(begin.elapsed() < DEADLINE, "not reached: {what}");
            ticks.tick().await;
        }
    }

    /// Waits until no pod in `istio-system` has the label `app` with this value.
    pub(crate) async fn until_no_pods(&self, app: &str) {
        let path = format!("/api/v1/namespaces/istio-system/pods?labelSelector=app%3D{app}");
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        let begin = tokio::time::Instant::now();
        while self.send("GET", &path, None).await["items"] != json!([]) {
            assert!(begin.elapsed() < DEADLINE, "pods of {app} are left");
            ticks.tick().await;
        }
    }

    /// Waits until the cluster has exactly these objects.
    pub(crate) async fn until_inventory(&self, expected: &BTreeSet<String>) {
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        let begin = tokio::time::Instant::now();
        loop {
            let found = self.inventory().await;
            if found == *expected {
                return;
            }
            let extra: Vec<_> = found.difference(expected).collect();
            let lost: Vec<_> = expected.difference(&found).collect();
            assert!(
                begin.elapsed() < DEADLINE,
                "left behind: {extra:#?}, lost: {lost:#?}"
            );
            ticks.tick().await;
        }
    }
}

pub(crate) async fn outcome(mut command: Command) -> Outcome {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}
