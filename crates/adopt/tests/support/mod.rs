//! Helpers of tests: a real API server with the real Helm and istioctl, and the state of the objects that
//! they install.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use mainstay_adopt::Session;
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::definitions::{install, own_definitions};
use mainstay_cluster::kinds::{InstalledKind, installed_kinds};
use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Version of all charts.
pub(crate) const VERSION: &str = "1.29.1";
/// Namespace of the installations.
pub(crate) const NAMESPACE: &str = "istio-system";

/// A cluster with our definitions, and charts for the programs that install on it.
pub(crate) struct TestEnvironment {
    pub(crate) client: Client,
    cluster: Cluster,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) directory: TempDir,
    kubelet: Option<Kubelet>,
}

impl TestEnvironment {
    /// Starts a server without controllers, so that only the test writes objects.
    pub(crate) async fn start() -> Self {
        let options = Options {
            controllers: Vec::new(),
            ..Options::default()
        };
        Self::with_options(options).await
    }

    /// Starts a server with workload controllers and a simulated kubelet.
    pub(crate) async fn with_pods() -> Self {
        let mut environment = Self::with_options(Options::default()).await;
        let kubelet = Kubelet::start(&environment.cluster, KubeletOptions::default()).await;
        environment.kubelet = Some(kubelet.unwrap());
        environment
    }

    /// Waits until at least `workloads` Deployments and `DaemonSet`s exist, all are ready, and the
    /// controllers have observed all changes. Returns the names and UIDs of all pods and `ReplicaSet`s.
    pub(crate) async fn pods(&self, workloads: usize) -> BTreeMap<String, String> {
        let begin = std::time::Instant::now();
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(300));
        loop {
            ticks.tick().await;
            assert!(
                begin.elapsed() < std::time::Duration::from_mins(3),
                "the pods are not ready"
            );
            let mut all = self.list("apps", "v1", "Deployment", "deployments").await;
            all.extend(self.list("apps", "v1", "DaemonSet", "daemonsets").await);
            if all.len() < workloads || !all.iter().all(is_settled) {
                continue;
            }
            let mut found = BTreeMap::new();
            for (group, kind, plural) in [("", "Pod", "pods"), ("apps", "ReplicaSet", "replicasets")] {
                for object in self.list(group, "v1", kind, plural).await {
                    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
                    let name = format!("{kind} {}", text("/metadata/name"));
                    found.insert(name, text("/metadata/uid").to_owned());
                }
            }
            return found;
        }
    }

    async fn list(&self, group: &str, version: &str, kind: &str, plural: &str) -> Vec<Value> {
        let list = self
            .api(group, version, kind, plural)
            .list(&ListParams::default())
            .await;
        let items = list.unwrap().items.into_iter();
        items.map(|item| serde_json::to_value(item).unwrap()).collect()
    }

    async fn with_options(options: Options) -> Self {
        let cluster = Cluster::start(options).await.unwrap();
        let client = cluster.client_with_agent("admin", "mainstay").unwrap();
        let catalog = Arc::new(Catalog::embedded().unwrap());
        let definitions = own_definitions(&catalog).unwrap();
        install(&client, &definitions, |_, _| {}).await.unwrap();
        let environment = Self {
            client,
            cluster,
            catalog,
            directory: tempfile::tempdir().unwrap(),
            kubelet: None,
        };
        for name in [NAMESPACE, "istio-ingress", "sail-operator"] {
            environment.create_namespace(name).await;
        }
        environment.write_charts();
        environment
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let api: Api<DynamicObject> = self.api("", "v1", "Namespace", "namespaces");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Api::all_with(
            self.client.clone(),
            &ApiResource::from_gvk_with_plural(&gvk, plural),
        )
    }

    /// Returns the API of a kind in one namespace, or in the whole cluster if `namespace` is `None`.
    pub(crate) fn api_in(&self, kind: &InstalledKind, namespace: Option<&str>) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Writes the charts and profiles to a directory with the layout of upstream's repository.
    fn write_charts(&self) {
        const CHARTS: &[(&str, &str)] = &[
            ("base", "base"),
            ("istiod", "istio-control/istio-discovery"),
            ("istio-ingress", "gateways/istio-ingress"),
            ("istio-egress", "gateways/istio-egress"),
            ("cni", "istio-cni"),
            ("ztunnel", "ztunnel"),
            ("gateway", "gateway"),
        ];
        let version: Version = VERSION.parse().unwrap();
        for (chart, path) in CHARTS {
            let files = self.catalog.chart(&version, Flavour::Installer, chart).unwrap();
            let directory = self.directory.path().join("package/charts").join(path);
            write_files(&directory, &files);
        }
        for profile in self.catalog.profiles(&version, Flavour::Installer).unwrap() {
            let text = self
                .catalog
                .profile(&version, Flavour::Installer, &profile)
                .unwrap();
            let files = BTreeMap::from([(format!("{profile}.yaml"), text)]);
            write_files(&self.directory.path().join("package/profiles"), &files);
        }
    }

    pub(crate) fn chart(&self, path: &str) -> PathBuf {
        self.directory.path().join("package/charts").join(path)
    }

    pub(crate) fn package(&self) -> PathBuf {
        self.directory.path().join("package")
    }

    /// Creates a session for an operator in its default namespace.
    pub(crate) async fn session(&self) -> Session {
        let session = Session::new(self.client.clone(), self.catalog.clone(), "sail-operator").await;
        session.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the Helm of a generation (`helm3`, `helm4`, `helm4 --server-side=true`).
    pub(crate) fn helm(&self, generation: &str) -> Helm {
        let (peer, flag) = generation.split_once(' ').unwrap_or((generation, ""));
        let home = self.directory.path().join(peer);
        std::fs::create_dir_all(&home).unwrap();
        // Helm uses the name of its executable as field manager.
        let program = home.join("helm");
        let _ = std::fs::remove_file(&program);
        symlink(built_peer(peer).unwrap(), &program).unwrap();
        Helm {
            program,
            home,
            kubeconfig: self.cluster.kubeconfig("admin"),
            is_server_side: (peer == "helm4").then_some(!flag.is_empty()),
        }
    }

    /// Runs `istioctl install`. Without a kubelet, it applies all objects and then times out, which is
    /// accepted.
    pub(crate) fn istioctl_install(&self, arguments: &[&str]) {
        let mut command = Command::new(built_peer("istioctl").unwrap());
        command
            .args(["install", "-y", "--readiness-timeout=1s", "--manifests"])
            .arg(self.package())
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig("admin"));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_applied = output.status.success() || text.contains("timed out") || text.contains("not ready");
        assert!(is_applied, "{text}\n{}", String::from_utf8_lossy(&output.stdout));
    }

    /// Returns every object of the kinds in charts and Helm's Secrets, by identity.
    pub(crate) async fn state(&self) -> BTreeMap<String, Value> {
        let mut state = BTreeMap::new();
        let secret = [("", "v1", "Secret", "secrets")];
        let kinds = installed_kinds().map(|kind| (kind.group, kind.version, kind.kind, kind.plural));
        for (group, version, kind, plural) in kinds.chain(secret) {
            let Ok(list) = self
                .api(group, version, kind, plural)
                .list(&ListParams::default())
                .await
            else {
                continue;
            };
            for item in list.items {
                let mut object = serde_json::to_value(item).unwrap();
                object["kind"] = json!(kind);
                let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
                let name = format!(
                    "{kind} {}/{}",
                    text("/metadata/namespace"),
                    text("/metadata/name")
                );
                if is_installed(&object) {
                    state.insert(name, object);
                }
            }
        }
        state
    }
}

/// Whether all pods of a Deployment or `DaemonSet` are updated and ready, and its controller has observed its
/// last change.
fn is_settled(workload: &Value) -> bool {
    let (spec, status) = (&workload["spec"], &workload["status"]);
    let numbers = if spec["replicas"].is_number() {
        [
            &spec["replicas"],
            &status["updatedReplicas"],
            &status["readyReplicas"],
        ]
    } else {
        [
            &status["desiredNumberScheduled"],
            &status["updatedNumberScheduled"],
            &status["numberReady"],
        ]
    };
    let [wanted, updated, ready] = numbers.map(|number| number.as_u64().unwrap_or_default());
    status["observedGeneration"] == workload["metadata"]["generation"]
        && wanted > 0
        && updated == wanted
        && ready == wanted
}

/// Whether an object was installed by a test and is not part of the cluster itself.
fn is_installed(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap();
    let is_system = name.starts_with("system:") || name == "kube-root-ca.crt";
    !is_system && !name.starts_with("extension-apiserver") && object["metadata"]["labels"].is_object()
}

pub(crate) fn write_files(directory: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, data) in files {
        let file = directory.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, data).unwrap();
    }
}

/// A Helm binary that installs on the test cluster.
pub(crate) struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    is_server_side: Option<bool>,
}

impl Helm {
    /// Installs or upgrades a release in a namespace.
    pub(crate) fn run(&self, verb: &str, release: (&str, &str), chart: &Path, arguments: &[&str]) {
        let mut command = self.command(release.0);
        command.args([verb, release.1]).arg(chart).args(arguments);
        if let Some(is_server_side) = self.is_server_side {
            command.arg(format!("--server-side={is_server_side}"));
        }
        run_successfully(command);
    }

    pub(crate) fn uninstall(&self, namespace: &str, release: &str) -> Result<(), String> {
        let mut command = self.command(namespace);
        command.args(["uninstall", release]);
        let output = command.output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Returns the names of the releases that Helm finds.
    pub(crate) fn list(&self) -> Vec<String> {
        let mut command = self.command(NAMESPACE);
        command.args(["list", "-q", "-A"]);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn command(&self, namespace: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--namespace", namespace])
            .env("KUBECONFIG", &self.kubeconfig);
        for (name, place) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(name, self.home.join(place));
        }
        command
    }
}

fn run_successfully(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

/// Returns an object with the generation as its only metadata.
pub(crate) fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].clone();
    object["metadata"] = json!({"generation": generation});
    object
}

/// Returns an object without the fields that every write changes.
pub(crate) fn without_volatile_fields(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
    let entries = entries.map(std::mem::take).unwrap_or_default();
    // Order and times of managed fields depend on when they were written.
    let mut records: Vec<(String, String)> = entries
        .into_iter()
        .map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].to_string()))
        .collect();
    records.sort();
    object["metadata"]["managedFields"] = json!(records);
    object
}
