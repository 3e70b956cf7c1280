//! The test mesh: the old version with a gateway, four applications that call each other in a chain, and
//! the operator.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kube::Client;
use mainstay_api::crd::delivery_definitions;
use mainstay_catalog::Catalog;
use mainstay_cluster::definitions;
use mainstay_testkit::cluster::{Options, User};
use mainstay_testkit::http;
use mainstay_testkit::mesh::{Mesh, MeshOptions};
use serde_json::{Value, json};

use crate::fixtures::{self, APPS, GATEWAY, NEW_VERSION, OLD, OPERATOR, OPERATOR_NAMESPACE};
use crate::observer::PodObserver;
use crate::operator_process::OperatorProcess;

pub struct TestMesh {
    operator: Option<OperatorProcess>,
    pub mesh: Mesh,
    pub client: Client,
    /// Recorder of observations, which are made during every wait.
    pub observer: PodObserver,
    /// Time until the first response through the gateway.
    pub startup_time: Duration,
}

/// Returns our definitions, with those of application delivery, and the definitions of the newer Istio.
fn all_definitions() -> [Vec<Value>; 2] {
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.resolve(NEW_VERSION).unwrap();
    [
        [
            definitions::own_definitions(&catalog).unwrap(),
            delivery_definitions(),
        ]
        .concat(),
        definitions::istio_definitions(&catalog, &version).unwrap(),
    ]
}

pub const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";
const MERGE: &str = "application/merge-patch+json";
/// Interval of checks.
const INTERVAL: Duration = Duration::from_millis(200);

impl TestMesh {
    /// Starts a mesh of the old version with the gateway and the applications, and waits for the first
    /// response.
    pub async fn with_apps() -> Self {
        let begin = Instant::now();
        let mut mesh = Self::without_apps().await;
        mesh.create_apps().await;
        mesh.startup_time = begin.elapsed();
        mesh
    }

    /// Starts a mesh of the old version without applications.
    pub async fn without_apps() -> Self {
        let options = MeshOptions {
            cluster: Options {
                users: vec![
                    User::new("tester", "system:masters"),
                    // The roles below grant its permissions.
                    User::new(OPERATOR, "operators"),
                ],
                ..Options::default()
            },
            ..MeshOptions::default()
        };
        // The definitions are decoded while the server starts.
        let definitions = tokio::task::spawn_blocking(all_definitions);
        let mesh = Mesh::start(options)
            .await
            .unwrap_or_else(|error| panic!("{}", mainstay_gostd::error::chain(&error)));
        let client = mesh.cluster().client("tester").unwrap();
        let mut mesh = Self {
            operator: None,
            mesh,
            client,
            observer: PodObserver::new(),
            startup_time: Duration::ZERO,
        };
        mesh.note("control plane ready");
        mesh.install(definitions.await.unwrap()).await;
        mesh.note("definitions and operator");
        mesh.until_injecting().await;
        mesh
    }

    /// Installs the definitions, the operator and its mesh.
    async fn install(&mut self, [ours, istios]: [Vec<Value>; 2]) {
        for name in [OPERATOR_NAMESPACE, "istio-system"] {
            self.create(&fixtures::namespace(name, None)).await;
        }
        for role in fixtures::roles() {
            self.create(&role).await;
        }
        definitions::install(&self.client, &ours, |_, _| {})
            .await
            .unwrap();
        self.note("our definitions");
        self.start_operator();
        let envoy = self.mesh.envoy().display().to_string();
        let istio = fixtures::istio(&envoy);
        let (rest, ()) = tokio::join!(
            definitions::install(&self.client, &istios, |_, _| {}),
            self.create(&istio)
        );
        rest.unwrap();
    }

    /// Waits until istiod injects, and then requires mutual TLS.
    async fn until_injecting(&mut self) {
        self.until("the mesh is healthy", 120, async |mesh| {
            let istio = mesh.get(ISTIO).await?;
            (istio["status"]["state"] == "Healthy").then_some(())
        })
        .await;
        self.note("mesh healthy");
        self.until("the tags exist", 60, async |mesh| {
            for tag in ["default", "prod"] {
                let tag = mesh
                    .get(&format!("/apis/sailoperator.io/v1/istiorevisiontags/{tag}"))
                    .await?;
                (tag["status"]["istioRevision"] == OLD).then_some(())?;
            }
            Some(())
        })
        .await;
        self.create(&fixtures::strict_mtls()).await;
    }

    /// Creates the applications and the gateway.
    async fn create_apps(&mut self) {
        for app in APPS.iter().chain([&GATEWAY]) {
            self.create(&fixtures::namespace(app.namespace, app.label)).await;
        }
        let nexts = APPS.iter().skip(1).map(Some).chain([None]);
        for (app, next) in APPS.iter().zip(nexts) {
            for object in fixtures::app(app, next, &self.hold_file(app.name).display().to_string()) {
                self.create(&object).await;
            }
        }
        for object in fixtures::gateway_with_route() {
            self.create(&object).await;
        }
        self.until_responding().await;
    }

    /// Waits for a response through the gateway.
    pub async fn until_responding(&mut self) {
        let gateway = self
            .mesh
            .address(GATEWAY.namespace, GATEWAY.name, 80)
            .await
            .unwrap();
        let mut last = String::new();
        for _ in 0..600 {
            let response =
                tokio::task::spawn_blocking(move || http::get(gateway, "/", Duration::from_secs(1)));
            match response.await.unwrap() {
                Ok(reply) if reply.code == 200 => {
                    self.note(&format!("first response: {}", reply.body));
                    return;
                }
                Ok(reply) => last = format!("{} {}", reply.code, reply.body),
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(INTERVAL).await;
        }
        panic!(
            "no response through the gateway: {last}\n{}",
            self.description().await
        );
    }

    /// Returns the path of the file that keeps an application unready.
    pub fn hold_file(&self, name: &str) -> PathBuf {
        self.mesh.directory().join(format!("hold-{name}"))
    }

    pub fn start_operator(&mut self) {
        let kubeconfig = self.mesh.cluster().kubeconfig(OPERATOR);
        let log = self.mesh.directory().join("logs").join("operator.log");
        self.operator = Some(OperatorProcess::start(
            &self.mesh.own_program(),
            &kubeconfig,
            &log,
        ));
    }

    /// Kills the operator.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    /// Adds a note to the observations.
    pub fn note(&mut self, what: &str) {
        self.observer.note(what);
    }

    /// Waits until `check` returns a value, and records observations while waiting.
    pub async fn until<T>(
        &mut self,
        what: &str,
        seconds: u64,
        mut check: impl AsyncFnMut(&Self) -> Option<T>,
    ) -> T {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(found) = check(self).await {
                return found;
            }
            let sample = self.observer.sample(&self.mesh, &self.client).await;
            self.observer.record(sample);
            if let Some(operator) = &mut self.operator
                && operator.has_ended()
            {
                panic!("the operator ended\n{}", self.mesh.log_tail("operator", 40));
            }
            assert!(
                Instant::now() < end,
                "timeout after {seconds} s: {what}\n{}",
                self.description().await
            );
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Sleeps, and records observations while sleeping.
    pub async fn sleep(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.until("time passes", time.as_secs() + 60, async |_| {
            (Instant::now() >= end).then_some(())
        })
        .await;
    }

    /// Changes the version in the spec.
    pub async fn change_version(&mut self, version: &str) {
        self.note(&format!("version: {version}"));
        self.merge_patch(ISTIO, &json!({"spec": {"version": version}}))
            .await;
    }

    pub async fn migration(&self) -> Option<Value> {
        Some(self.get(ISTIO).await?["status"]["workloadMigration"].clone())
    }

    pub async fn create(&self, object: &Value) {
        let path = collection(object);
        let response = self.call("POST", &path, "application/json", Some(object)).await;
        assert!(response.is_ok(), "{path}: {response:?}");
    }

    pub async fn merge_patch(&self, path: &str, change: &Value) {
        let response = self.call("PATCH", path, MERGE, Some(change)).await;
        assert!(response.is_ok(), "{path}: {response:?}");
    }

    /// Sends a strategic merge patch, as `kubectl patch` does. Containers are merged by name.
    pub async fn strategic_merge_patch(&self, path: &str, change: &Value) {
        let response = self
            .call(
                "PATCH",
                path,
                "application/strategic-merge-patch+json",
                Some(change),
            )
            .await;
        assert!(response.is_ok(), "{path}: {response:?}");
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        self.call("GET", path, "application/json", None).await.ok()
    }

    /// Returns the objects of a collection.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        format: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = ::http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format);
        self.client.request(request.body(bytes).unwrap()).await
    }

    /// Copies all logs to the directory of proof results.
    pub fn keep_logs(&self) -> String {
        let directory = mainstay_testkit::repository_root().join("target/prove/traffic/logs");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        for log in std::fs::read_dir(self.mesh.directory().join("logs"))
            .unwrap()
            .flatten()
        {
            std::fs::copy(log.path(), directory.join(log.file_name())).unwrap();
        }
        directory.display().to_string()
    }

    /// Describes the state for a failure message.
    pub async fn description(&self) -> String {
        let mut description = format!("{}\n", self.observer.description());
        for pod in self.list("/api/v1/pods").await {
            let text = |path: &str| {
                pod.pointer(path)
                    .and_then(Value::as_str)
                    .unwrap_or("-")
                    .to_owned()
            };
            let conditions = pod["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True");
            let _ = writeln!(
                description,
                "pod {}/{} {} rev={} ready={ready} ip={}",
                text("/metadata/namespace"),
                text("/metadata/name"),
                text("/status/phase"),
                text("/metadata/annotations/istio.io~1rev"),
                text("/status/podIP"),
            );
        }
        let istio = self.get(ISTIO).await.unwrap_or_default();
        let _ = writeln!(description, "istio: {:#}", istio["status"]);
        description + &self.mesh.log_tail("", 12)
    }
}

/// Returns the collection path of an object.
fn collection(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind").to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) if kind != "gateway" => format!("{stem}ies"),
        _ => format!("{kind}s"),
    };
    let root = match text("/apiVersion") {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    match text("/metadata/namespace") {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    }
}
