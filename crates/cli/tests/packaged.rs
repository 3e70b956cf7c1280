//! The packaged chart and the image's binary on a real API server: Helm installs the operator, a mesh becomes
//! healthy, workloads migrate to a new revision, and nothing is left after `helm uninstall` except [`KEPT`].
//! Requires root, so that the operator runs as the image's user.
//!
//! `cargo xtask prove first-hour` runs it with the files of `cargo xtask dist`, whose directory is
//! `MAINSTAY_DIST`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::image::{Image, ImagePods};
use mainstay_testkit::inventory::inventory;
use mainstay_testkit::istiod::Istiods;
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions, PodBackend, PodProcessFuture};
use mainstay_testkit::suite::{self, TestCase};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const NAMESPACE: &str = "sail-operator";
const TIMEOUT: &str = "--timeout=300s";

const PEERS: [&str; 7] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "helm4",
    "pilot-discovery-1.28.2",
    "pilot-discovery-1.29.1",
];

fn main() -> ExitCode {
    if std::env::var_os("MAINSTAY_DIST").is_none() {
        println!("error: MAINSTAY_DIST names no directory with the files of `cargo xtask dist`");
        return ExitCode::FAILURE;
    }
    let case = TestCase {
        name: "the_released_operator_installs_upgrades_and_leaves",
        start: || Box::pin(run_scenario()),
    };
    suite::main_as_root(&PEERS, &[case])
}

const MESH: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec:
  version: v1.28.2
  namespace: istio-system
  updateStrategy:
    type: RevisionBased
    updateWorkloads: true
    workloadMigration: {strategy: Batched, batched: {batchSize: 3}}
    inactiveRevisionDeletionGracePeriodSeconds: 0
";

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: app, image: example.test/cart}]}
";

/// Objects that may remain, as `kind namespace/name`; `*` stands for any text.
const KEPT: &[&str] = &[
    // Definitions: meshes are not deleted with the operator.
    "CustomResourceDefinition /*.istio.io",
    "CustomResourceDefinition /*.sailoperator.io",
    "APIService /*.istio.io",
    "APIService /*.sailoperator.io",
    // The operator's Lease, which the Sail Operator also keeps.
    "Lease sail-operator/sail-operator-lock",
    // Objects of this test, and their derived objects.
    "Namespace /sail-operator",
    "Namespace /istio-system",
    "Namespace /shop",
    "Deployment shop/cart",
    "ReplicaSet shop/cart-*",
    "Pod shop/cart-*",
    // Objects of every namespace.
    "ServiceAccount */default",
    "ConfigMap */kube-root-ca.crt",
    // Objects that istiod creates: its certificate authority, and locks.
    "ConfigMap */istio-ca-root-cert",
    "ConfigMap */istio-ca-crl",
    "Secret istio-system/istio-ca-secret",
    "ConfigMap istio-system/istio-ip-autoallocate",
    "ConfigMap istio-system/istio-*-election",
    "ConfigMap istio-system/istio-*leader",
    "Lease istio-system/istio-*",
];

/// Maximum time until derived objects are deleted.
const DEADLINE: Duration = Duration::from_mins(2);

const UPGRADE: &str = r#"{"spec":{"version":"v1.29.1"}}"#;

async fn run_scenario() {
    let stage = Stage::start().await;
    let before = stage.inventory().await;
    let mut steps = Steps::default();
    let chart = stage.file(".tgz");
    let repository = format!("image.repository={}", stage.repository);
    let tag = format!("image.tag={}", stage.tag);
    let install = [
        "install",
        "mainstay",
        &chart,
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set",
        &repository,
        "--set",
        &tag,
        "--wait",
        "--timeout",
        "5m",
    ];
    stage.helm(&install).await;
    stage.check_user();
    steps.done("operator ready");
    stage.apply(MESH).await;
    stage
        .wait("--for=jsonpath={.status.state}=Healthy", "istio/default")
        .await;
    steps.done("mesh healthy");
    stage
        .wait("--for=condition=Reconciled", "istiorevisiontag/default")
        .await;
    stage.apply(SHOP).await;
    stage
        .kubectl(&["rollout", "status", "deployment/cart", "-n", "shop", TIMEOUT])
        .await;
    assert_eq!(stage.revisions().await, ["default-v1-28-2"; 2]);
    steps.done("workload injected");
    stage
        .kubectl(&["patch", "istio", "default", "--type=merge", "-p", UPGRADE])
        .await;
    stage.wait("--for=delete", "istiorevision/default-v1-28-2").await;
    stage
        .wait("--for=jsonpath={.status.state}=Healthy", "istio/default")
        .await;
    assert_eq!(stage.revisions().await, ["default-v1-29-1"; 2]);
    steps.done("migrated, old revision pruned");
    // Waits for the revision and its tag, too: the operator must remove them before it is removed itself.
    stage
        .kubectl(&["delete", "istio,istiorevisiontag,istiorevision", "--all", TIMEOUT])
        .await;
    stage
        .helm(&["uninstall", "mainstay", "-n", NAMESPACE, "--wait"])
        .await;
    let after = stage.wait_for_deletion(&before).await;
    steps.done("uninstalled");
    let kept: Vec<&String> = after.difference(&before).collect();
    // An entry without an object would hide a later defect.
    let unused: Vec<&&str> = KEPT
        .iter()
        .filter(|entry| !kept.iter().any(|it| is_entry(entry, it)))
        .collect();
    assert!(unused.is_empty(), "not left behind: {unused:#?}\n{kept:#?}");
    println!(
        "first-hour cluster: {}; {} objects of all kinds before, {} after, of which {} may remain",
        steps.0.join(", "),
        before.len(),
        after.len(),
        kept.len()
    );
}

/// Completed steps with their durations.
struct Steps(Vec<String>, Instant);

impl Default for Steps {
    fn default() -> Self {
        Self(Vec::new(), Instant::now())
    }
}

impl Steps {
    fn done(&mut self, step: &str) {
        self.0
            .push(format!("{step} {:.1} s", self.1.elapsed().as_secs_f64()));
        self.1 = Instant::now();
    }
}

/// A cluster whose operator pods run the image's binary and whose istiods are real.
struct Stage {
    files: PathBuf,
    repository: String,
    tag: String,
    cluster: Cluster,
    _kubelet: Kubelet,
    _image: tempfile::TempDir,
}

struct Backends(ImagePods, Istiods);

impl PodBackend for Backends {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        self.0
            .create_process(pod, ip)
            .or_else(|| self.1.create_process(pod, ip))
    }
}

impl Stage {
    async fn start() -> Self {
        let files = PathBuf::from(std::env::var_os("MAINSTAY_DIST").unwrap());
        let scratch = tempfile::tempdir().unwrap();
        let image = unpack(&find(&files, "-image-amd64.tar"), scratch.path()).await;
        let (repository, tag) = image.reference.rsplit_once(':').unwrap();
        let (repository, tag) = (repository.to_owned(), tag.to_owned());
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let backends = Backends(
            ImagePods::new(&cluster, image).unwrap(),
            Istiods::new(&cluster).unwrap(),
        );
        let options = KubeletOptions {
            backend: Some(Arc::new(backends)),
            ..KubeletOptions::default()
        };
        let kubelet = Kubelet::start(&cluster, options).await.unwrap();
        Self {
            files,
            repository,
            tag,
            cluster,
            _kubelet: kubelet,
            _image: scratch,
        }
    }

    fn file(&self, ending: &str) -> String {
        find(&self.files, ending).display().to_string()
    }

    async fn helm(&self, arguments: &[&str]) -> String {
        self.run("helm4", arguments, "").await
    }

    async fn kubectl(&self, arguments: &[&str]) -> String {
        self.run("kubectl", arguments, "").await
    }

    async fn apply(&self, objects: &str) {
        self.run("kubectl", &["apply", "-f", "-"], objects).await;
    }

    async fn wait(&self, condition: &str, object: &str) {
        self.kubectl(&["wait", condition, object, TIMEOUT]).await;
    }

    /// Runs a peer as administrator; a failure prints the logs of the cluster's processes.
    async fn run(&self, peer: &str, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new(built_peer(peer).unwrap())
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig("admin"))
            .env("HOME", self.cluster.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        assert!(
            output.status.success(),
            "{peer} {arguments:?}: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            self.logs()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the last log lines of each process of the image.
    fn logs(&self) -> String {
        let pods = std::fs::read_dir(self.cluster.directory().join("images"));
        let logs = pods.into_iter().flatten().flatten().map(|pod| {
            let text = std::fs::read_to_string(pod.path().join("log")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(20).collect();
            lines
                .into_iter()
                .rev()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        });
        logs.collect()
    }

    /// Returns the revisions that injected the proxies of the shop.
    async fn revisions(&self) -> Vec<String> {
        let path = "jsonpath={.items[?(@.status.phase==\"Running\")].metadata.annotations.istio\\.io/rev}";
        let text = self.kubectl(&["get", "pods", "-n", "shop", "-o", path]).await;
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    /// Returns all objects of all kinds except Events, as `version kind namespace/name`.
    async fn inventory(&self) -> BTreeSet<String> {
        let client = self.cluster.client("admin").unwrap();
        inventory(&client, &["Event"]).await.unwrap()
    }

    /// Waits until all new objects except [`KEPT`] are deleted; returns the inventory.
    async fn wait_for_deletion(&self, before: &BTreeSet<String>) -> BTreeSet<String> {
        let begin = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        loop {
            let after = self.inventory().await;
            let new = after.difference(before);
            let left: Vec<&String> = new.filter(|object| !may_remain(object)).collect();
            if left.is_empty() {
                return after;
            }
            assert!(begin.elapsed() < DEADLINE, "{left:#?}");
            ticks.tick().await;
        }
    }

    /// Checks that the processes of the image run as its user, in a root directory that the user cannot
    /// write.
    fn check_user(&self) {
        let images = self.cluster.directory().join("images");
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut found = 0;
        for process in processes {
            let root = std::fs::read_link(process.path().join("root")).unwrap_or_default();
            if !root.starts_with(&images) {
                continue;
            }
            found += 1;
            let status = std::fs::read_to_string(process.path().join("status")).unwrap();
            for field in [
                "Uid:\t65532\t65532\t65532\t65532",
                "Gid:\t65532\t65532\t65532\t65532",
            ] {
                assert!(status.contains(field), "{status}");
            }
            let directory = std::fs::metadata(&root).unwrap();
            assert_eq!(
                (directory.uid(), directory.mode() & 0o022),
                (0, 0),
                "{}",
                root.display()
            );
        }
        assert!(found > 0, "no process of the image");
    }
}

/// Whether an object of the inventory is one of [`KEPT`].
fn may_remain(object: &str) -> bool {
    KEPT.iter().any(|entry| is_entry(entry, object))
}

/// Whether an entry of [`KEPT`] describes an object of the inventory.
fn is_entry(entry: &str, object: &str) -> bool {
    let object = object.split_once(' ').map_or(object, |(_, object)| object);
    match entry.split_once('*') {
        None => entry == object,
        Some((start, end)) => {
            let rest = object.strip_prefix(start);
            rest.is_some_and(|rest| rest.ends_with(end))
        }
    }
}

/// Returns the file of the release with this ending; the chart is the only `.tgz`.
fn find(directory: &Path, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut found = files.filter(|path| path.display().to_string().ends_with(ending));
    found
        .next()
        .unwrap_or_else(|| panic!("no file ends with {ending}"))
}

/// Unpacks an image archive with one layer.
async fn unpack(archive: &Path, directory: &Path) -> Image {
    let (blobs, root) = (directory.join("archive"), directory.join("root"));
    extract(archive, &blobs).await;
    let read =
        |path: &str| -> Value { serde_json::from_slice(&std::fs::read(blobs.join(path)).unwrap()).unwrap() };
    let manifest = read("manifest.json");
    let config = read(manifest[0]["Config"].as_str().unwrap());
    extract(&blobs.join(manifest[0]["Layers"][0].as_str().unwrap()), &root).await;
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    Image {
        reference: manifest[0]["RepoTags"][0].as_str().unwrap().to_owned(),
        root,
        entrypoint: texts(&config["config"]["Entrypoint"]).remove(0),
        environment: texts(&config["config"]["Env"]),
        user: config["config"]["User"].as_str().unwrap().to_owned(),
    }
}

async fn extract(archive: &Path, directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    let mut command = Command::new("tar");
    command.arg("-xf").arg(archive).arg("-C").arg(directory);
    assert!(command.status().await.unwrap().success());
}
