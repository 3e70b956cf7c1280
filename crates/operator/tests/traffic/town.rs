//! A town to upgrade: a mesh of the old version with a gateway, four applications behind each other, and the operator that made it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_cluster::definitions;
use mainstay_testkit::cluster::{Options, User};
use mainstay_testkit::mesh::{Mesh, MeshOptions, http};
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::made::{self, GATEWAY, NEW_VERSION, OLD, OPERATOR, OPERATOR_NAMESPACE, SHOPS};
use crate::witness::Witness;

pub struct Town {
    operator: Option<Actor>,
    pub mesh: Mesh,
    client: Client,
    /// What is looked at whenever somebody waits.
    pub witness: Witness,
    /// From nothing to the first answer through the gateway.
    pub came_up_in: Duration,
}

/// Ours, and those of the newer Istio.
fn all_definitions() -> [Vec<Value>; 2] {
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.resolve(NEW_VERSION).unwrap();
    [
        definitions::own_definitions(&catalog).unwrap(),
        definitions::istio_definitions(&catalog, &version).unwrap(),
    ]
}

pub const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";
const MERGE: &str = "application/merge-patch+json";
/// How often is looked whether what is waited for has come.
const GLANCE: Duration = Duration::from_millis(200);

impl Town {
    /// Everything on the old version, and the first request answered.
    pub async fn open() -> Self {
        let begin = Instant::now();
        let options = MeshOptions {
            cluster: Options {
                users: vec![
                    User::new("tester", "system:masters"),
                    // What it may do, the roles say that are made for it.
                    User::new(OPERATOR, "operators"),
                ],
                ..Options::default()
            },
            ..MeshOptions::default()
        };
        // Thirty definitions are read while the server starts.
        let definitions = tokio::task::spawn_blocking(all_definitions);
        let mesh = Mesh::start(options)
            .await
            .unwrap_or_else(|error| panic!("{}", mainstay_testkit::suite::error_chain(&error)));
        let client = mesh.cluster().client("tester").unwrap();
        let mut town = Self {
            operator: None,
            mesh,
            client,
            witness: Witness::new(),
            came_up_in: Duration::ZERO,
        };
        town.note("control plane ready");
        town.found(definitions.await.unwrap()).await;
        town.note("definitions and operator");
        town.settle().await;
        town.came_up_in = begin.elapsed();
        town
    }

    /// The definitions, the operator and its mesh.
    async fn found(&mut self, [ours, istios]: [Vec<Value>; 2]) {
        for name in [OPERATOR_NAMESPACE, "istio-system"] {
            self.create(&made::namespace(name, None)).await;
        }
        for role in made::roles() {
            self.create(&role).await;
        }
        definitions::install(&self.client, &ours, |_, _| {})
            .await
            .unwrap();
        self.note("our definitions");
        self.start_operator();
        let envoy = self.mesh.envoy().display().to_string();
        let istio = made::istio(&envoy);
        let (rest, ()) = tokio::join!(
            definitions::install(&self.client, &istios, |_, _| {}),
            self.create(&istio)
        );
        rest.unwrap();
    }

    /// Applications and the gateway move in once somebody can inject them.
    async fn settle(&mut self) {
        self.until("the mesh is healthy", 120, async |town| {
            let istio = town.get(ISTIO).await?;
            (istio["status"]["state"] == "Healthy").then_some(())
        })
        .await;
        self.note("mesh healthy");
        self.until("the tags are there", 60, async |town| {
            for tag in ["default", "prod"] {
                let tag = town
                    .get(&format!("/apis/sailoperator.io/v1/istiorevisiontags/{tag}"))
                    .await?;
                (tag["status"]["istioRevision"] == OLD).then_some(())?;
            }
            Some(())
        })
        .await;
        self.create(&made::strict()).await;
        for shop in SHOPS.iter().chain([&GATEWAY]) {
            self.create(&made::namespace(shop.namespace, shop.label)).await;
        }
        let nexts = SHOPS.iter().skip(1).map(Some).chain([None]);
        for (shop, next) in SHOPS.iter().zip(nexts) {
            for object in made::app(shop, next, &self.hold(shop.name).display().to_string()) {
                self.create(&object).await;
            }
        }
        for object in made::gateway() {
            self.create(&object).await;
        }
        self.until_answered().await;
    }

    /// A request goes all the way.
    async fn until_answered(&mut self) {
        let gateway = self
            .mesh
            .address(GATEWAY.namespace, GATEWAY.name, 80)
            .await
            .unwrap();
        let mut last = String::new();
        for _ in 0..600 {
            let asked = tokio::task::spawn_blocking(move || http::get(gateway, "/", Duration::from_secs(1)));
            match asked.await.unwrap() {
                Ok(reply) if reply.code == 200 => {
                    self.note(&format!("first answer: {}", reply.body));
                    return;
                }
                Ok(reply) => last = format!("{} {}", reply.code, reply.body),
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(GLANCE).await;
        }
        panic!("no answer through the gateway: {last}\n{}", self.story().await);
    }

    /// The file that keeps an application from coming up.
    pub fn hold(&self, name: &str) -> PathBuf {
        self.mesh.directory().join(format!("hold-{name}"))
    }

    pub fn start_operator(&mut self) {
        let kubeconfig = self.mesh.cluster().kubeconfig(OPERATOR);
        let log = self.mesh.directory().join("logs").join("operator.log");
        self.operator = Some(Actor::start(&self.mesh.own_program(), &kubeconfig, &log));
    }

    /// In the middle of whatever it does.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    /// What just happened, and when.
    pub fn note(&mut self, what: &str) {
        self.witness.note(what);
    }

    /// Looks until something has come; everything else that is watched is looked at, too.
    pub async fn until<T>(
        &mut self,
        what: &str,
        seconds: u64,
        mut look: impl AsyncFnMut(&Self) -> Option<T>,
    ) -> T {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(found) = look(self).await {
                return found;
            }
            let told = self.witness.look(&self.mesh, &self.client).await;
            self.witness.keep(told);
            if let Some(operator) = &mut self.operator
                && operator.has_ended()
            {
                panic!("the operator gave up\n{}", self.mesh.log_tail("operator", 40));
            }
            assert!(
                Instant::now() < end,
                "not after {seconds} s: {what}\n{}",
                self.story().await
            );
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Lets time pass, looking.
    pub async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.until("time passes", time.as_secs() + 60, async |_| {
            (Instant::now() >= end).then_some(())
        })
        .await;
    }

    /// Changes the version in the spec: all a user does.
    pub async fn change_version(&mut self, version: &str) {
        self.note(&format!("version: {version}"));
        self.merge(ISTIO, &json!({"spec": {"version": version}})).await;
    }

    pub async fn migration(&self) -> Option<Value> {
        Some(self.get(ISTIO).await?["status"]["workloadMigration"].clone())
    }

    pub async fn create(&self, object: &Value) {
        let path = collection(object);
        let answer = self.call("POST", &path, "application/json", Some(object)).await;
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }

    pub async fn merge(&self, path: &str, change: &Value) {
        let answer = self.call("PATCH", path, MERGE, Some(change)).await;
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }

    /// As `kubectl patch` does: containers by their names.
    pub async fn strategic(&self, path: &str, change: &Value) {
        let answer = self
            .call(
                "PATCH",
                path,
                "application/strategic-merge-patch+json",
                Some(change),
            )
            .await;
        assert!(answer.is_ok(), "{path}: {answer:?}");
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        self.call("GET", path, "application/json", None).await.ok()
    }

    /// The objects of a list.
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

    /// Copies all logs to where they outlive the mesh.
    pub fn keep_logs(&self) -> String {
        let folder = mainstay_testkit::repository_root().join("target/prove/traffic/logs");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for log in std::fs::read_dir(self.mesh.directory().join("logs"))
            .unwrap()
            .flatten()
        {
            std::fs::copy(log.path(), folder.join(log.file_name())).unwrap();
        }
        folder.display().to_string()
    }

    /// What is known when something went wrong.
    pub async fn story(&self) -> String {
        let mut story = format!("{}\n", self.witness.story());
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
                story,
                "pod {}/{} {} rev={} ready={ready} ip={}",
                text("/metadata/namespace"),
                text("/metadata/name"),
                text("/status/phase"),
                text("/metadata/annotations/istio.io~1rev"),
                text("/status/podIP"),
            );
        }
        let istio = self.get(ISTIO).await.unwrap_or_default();
        let _ = writeln!(story, "istio: {:#}", istio["status"]);
        story + &self.mesh.log_tail("", 12)
    }
}

/// Where objects of its kind are created.
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
