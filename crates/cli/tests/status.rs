//! `mainstay status`, `revision` and `crds install` as processes against a served simulator: output, byte for
//! byte, and exit codes. `BLESS=1` writes the expected output.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

#[path = "support/request.rs"]
mod request;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kube::Client;
use mainstay_catalog::Catalog;
use mainstay_sim::Cluster;
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_yaml::{Budget, parse, to_json};
use serde_json::{Value, json};

/// Evaluation time.
const NOW: &str = "--at=2026-11-15T12:00:10Z";

/// A served cluster and kubeconfigs for it.
struct Host {
    cluster: Cluster,
    _server: Server,
    directory: tempfile::TempDir,
}

impl Host {
    async fn start() -> Self {
        let cluster = Cluster::default();
        let options = ServeOptions {
            speed: 0.0,
            ..ServeOptions::default()
        };
        let server = Server::start(&cluster, &options).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        server
            .write_kubeconfig(User::admin(), &directory.path().join("admin"))
            .unwrap();
        server
            .write_kubeconfig(
                User::named("restricted", &[]),
                &directory.path().join("restricted"),
            )
            .unwrap();
        server
            .write_kubeconfig(User::named("guest", &[]), &directory.path().join("guest"))
            .unwrap();
        Self {
            cluster,
            _server: server,
            directory,
        }
    }

    /// Runs the binary as `user`; returns exit code, stdout and stderr as one text.
    async fn run(&self, user: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.directory.path().join(user));
        command
            .env_remove("KUBECONFIG")
            .env("XDG_DATA_HOME", self.directory.path());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let directory = self.directory.path().display().to_string();
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .unwrap()
                .replace(&directory, "DIR")
        };
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let error = if err.is_empty() {
            String::new()
        } else {
            format!("--- stderr\n{err}")
        };
        format!(
            "$ mainstay {}\n{out}{error}--- exit {}\n",
            arguments.join(" "),
            output.status.code().unwrap()
        )
    }

    /// Creates the objects of a fixture, including their status.
    async fn make(&self, fixture: &str) {
        let client = Client::new(self.cluster.connect("fixture"), "default");
        let mut made = BTreeMap::<(String, String), String>::new();
        for mut object in documents(fixture) {
            let status = object.as_object_mut().unwrap().remove("status");
            for owner in object["metadata"]["ownerReferences"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                let key = (
                    owner["kind"].as_str().unwrap().to_owned(),
                    owner["name"].as_str().unwrap().to_owned(),
                );
                owner["uid"] = json!(made[&key]);
            }
            let path = collection_path(&object);
            let mut stored = call(&client, "POST", &path, &object).await;
            let (kind, name) = (
                object["kind"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap(),
            );
            made.insert(
                (kind.to_owned(), name.to_owned()),
                stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            );
            if let Some(status) = status {
                stored["status"] = status;
                call(&client, "PUT", &format!("{path}/{name}/status"), &stored).await;
            }
        }
    }
}

/// Sends a request that must succeed.
async fn call(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let response = request::call(client, method, path, body).await;
    response.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

fn documents(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(directory().join(file)).unwrap();
    let read = |document: &str| -> Value {
        let value = parse(document.as_bytes(), &Budget::default()).unwrap();
        serde_json::from_str(&to_json(&value).unwrap()).unwrap()
    };
    text.split("\n---\n").map(read).collect()
}

fn collection_path(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap();
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{api_version}/{plural}"),
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/status")
}

/// Compares the output with the stored file.
fn check(name: &str, printed: &str) {
    let path = directory().join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        printed == expected,
        "{name}: printed\n{printed}\nexpected\n{expected}"
    );
}

/// Fails if this build embeds no charts.
fn require_charts() {
    let installable = Catalog::embedded().unwrap().installable();
    assert!(!installable.is_empty(), "run `cargo xtask charts` first");
}

#[tokio::test]
async fn definitions_are_installed_once() {
    require_charts();
    let host = Host::start().await;
    check(
        "status-without-definitions",
        &host.run("admin", &["status", NOW]).await,
    );
    check("crds-forbidden", &host.run("guest", &["crds", "install"]).await);
    check(
        "crds-ours",
        &host.run("admin", &["crds", "install", "--only=mainstay"]).await,
    );
    check("crds-all", &host.run("admin", &["crds", "install"]).await);
    check("crds-again", &host.run("admin", &["crds", "install"]).await);
    check("status-empty", &host.run("admin", &["status", NOW]).await);
    check("list-empty", &host.run("admin", &["revision", "list", NOW]).await);
    check("status-forbidden", &host.run("guest", &["status", NOW]).await);
}

#[tokio::test]
async fn a_mesh_is_reported_as_the_operator_sees_it() {
    require_charts();
    let host = Host::start().await;
    host.run("admin", &["crds", "install", "--only=mainstay"]).await;
    host.make("mesh.yaml").await;
    for (name, arguments) in [
        ("status", &["status", NOW][..]),
        ("status-wide", &["status", "-o", "wide", NOW]),
        ("status-json", &["status", "-o", "json", NOW]),
        ("status-color", &["status", "--color=always", NOW]),
        ("status-later", &["status", "--at=2026-11-15T13:00:00Z"]),
        ("list", &["revision", "list", NOW]),
        ("list-wide", &["revision", "list", "-o", "wide", NOW]),
        ("list-yaml", &["revision", "list", "-o", "yaml", NOW]),
        ("describe", &["revision", "describe", "mesh-v1-29-1", NOW]),
        ("describe-old", &["revision", "describe", "mesh-v1-27-9", NOW]),
        (
            "describe-json",
            &["revision", "describe", "mesh-v1-28-2", "-o", "json", NOW],
        ),
        ("describe-unknown", &["revision", "describe", "nope", NOW]),
        ("describe-tag", &["revision", "describe", "stable", NOW]),
    ] {
        check(name, &host.run("admin", arguments).await);
    }
    let client = Client::new(host.cluster.connect("fixture"), "default");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/istio-system/leases/sail-operator-lock";
    let mut stopped = call(&client, "GET", lease, &Value::Null).await;
    stopped["spec"]["holderIdentity"] = json!("");
    call(&client, "PUT", lease, &stopped).await;
    check("status-stopped", &host.run("admin", &["status", NOW]).await);
    check(
        "status-restricted",
        &host.run("restricted", &["status", NOW]).await,
    );
}

#[tokio::test]
async fn control_planes_that_no_operator_manages_are_reported() {
    require_charts();
    let host = Host::start().await;
    host.make("unmanaged.yaml").await;
    for (name, arguments) in [
        ("unmanaged", &["status", NOW][..]),
        ("unmanaged-json", &["status", "-o", "json", NOW]),
        ("unmanaged-list", &["revision", "list", NOW]),
        ("unmanaged-migration", &["migration", "plan", NOW]),
        (
            "unmanaged-migration-default",
            &["migration", "plan", "default", NOW],
        ),
        (
            "unmanaged-migration-canary",
            &["migration", "plan", "canary", "--to", "v1.29.1", NOW],
        ),
        (
            "unmanaged-migration-json",
            &["migration", "plan", "default", "-o", "json", NOW],
        ),
        ("unmanaged-migration-unknown", &["migration", "plan", "nope", NOW]),
        ("unmanaged-describe", &["revision", "describe", "canary", NOW]),
        (
            "unmanaged-describe-json",
            &["revision", "describe", "default", "-o", "json", NOW],
        ),
        (
            "unmanaged-describe-unknown",
            &["revision", "describe", "nope", NOW],
        ),
    ] {
        check(name, &host.run("admin", arguments).await);
    }
}

#[tokio::test]
async fn a_migration_is_planned_reported_paused_and_retried() {
    require_charts();
    let host = Host::start().await;
    host.run("admin", &["crds", "install", "--only=mainstay"]).await;
    check(
        "migration-none",
        &host.run("admin", &["migration", "status", NOW]).await,
    );
    host.make("migration.yaml").await;
    let failing = host.run("admin", &["status", NOW]).await;
    assert!(failing.ends_with("--- exit 2\n"), "{failing}");
    check("status-migrating-failed", &failing);
    for (name, arguments) in [
        ("migration-plan", &["migration", "plan", NOW][..]),
        (
            "migration-plan-json",
            &["migration", "plan", "mesh", "-o", "json", NOW],
        ),
        (
            "migration-plan-other",
            &["migration", "plan", "--to", "v1.28.2", "--ready-after", "1m", NOW],
        ),
        (
            "migration-plan-unknown",
            &["migration", "plan", "--to", "v9.9.9", NOW],
        ),
        ("migration-status", &["migration", "status", NOW]),
        (
            "migration-status-yaml",
            &["migration", "status", "-o", "yaml", NOW],
        ),
        ("migration-unknown", &["migration", "status", "nope", NOW]),
        ("migration-pause", &["migration", "pause"]),
        ("migration-pause-again", &["migration", "pause", "mesh"]),
        ("migration-plan-paused", &["migration", "plan", NOW]),
        ("migration-resume", &["migration", "resume"]),
        (
            "migration-retry-wrong",
            &["migration", "retry", "--workload", "shop/cart", NOW],
        ),
        ("migration-retry", &["migration", "retry", NOW]),
        ("migration-plan-after", &["migration", "plan", NOW]),
    ] {
        check(name, &host.run("admin", arguments).await);
    }
    // Versions with and without `v` are equivalent.
    let mut plans = Vec::new();
    for version in ["1.28.2", "v1.28.2"] {
        let text = host
            .run("admin", &["migration", "plan", "--to", version, NOW])
            .await;
        plans.push(text.split_once('\n').unwrap().1.to_owned());
    }
    assert_eq!(plans[0], plans[1]);
    let client = Client::new(host.cluster.connect("fixture"), "default");
    let web = "/apis/apps/v1/namespaces/silent/deployments/web";
    let stored = call(&client, "GET", web, &Value::Null).await;
    assert_eq!(
        stored["metadata"]["annotations"]["sailoperator.io/migration"],
        "retry"
    );
}

/// A migration without failures is no problem. Its operator runs without leader election.
#[tokio::test]
async fn a_healthy_migration_is_no_problem() {
    require_charts();
    let host = Host::start().await;
    host.run("admin", &["crds", "install", "--only=mainstay"]).await;
    host.make("migration.yaml").await;
    let client = Client::new(host.cluster.connect("fixture"), "default");
    let path = "/apis/sailoperator.io/v1/istios/mesh";
    let mut istio = call(&client, "GET", path, &Value::Null).await;
    let migration = istio["status"]["workloadMigration"].as_object_mut().unwrap();
    assert!(migration.remove("failedWorkloads").is_some() && migration.remove("failures").is_some());
    call(&client, "PUT", &format!("{path}/status"), &istio).await;
    let migrating = host.run("admin", &["status", NOW]).await;
    assert!(migrating.ends_with("--- exit 0\n"), "{migrating}");
    check("status-migrating", &migrating);
}

/// A watched page is printed again only when something changes.
#[tokio::test]
async fn a_watched_page_follows_the_cluster() {
    require_charts();
    let host = Host::start().await;
    host.run("admin", &["crds", "install", "--only=mainstay"]).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(["status", "--watch", "--at=2026-11-15T13:00:00Z", "--kubeconfig"])
        .arg(host.directory.path().join("admin"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (send, mut pages) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        // Here the last line of a page with problems is the hint about the operator.
        let mut page = Vec::new();
        while let Some(Ok(line)) = lines.next() {
            let last = line.contains("hint: install the operator") || line == "No problems found.";
            page.push(line);
            if last && send.send(std::mem::take(&mut page)).is_err() {
                return;
            }
        }
    });
    let first = pages.recv().await.unwrap();
    assert!(
        first.contains(&"No Istio or IstioRevision found.".to_owned()),
        "{first:?}"
    );
    host.make("mesh.yaml").await;
    let second = loop {
        let page = pages.recv().await.unwrap();
        if page.iter().any(|line| line.starts_with("Istio old")) {
            break page;
        }
    };
    assert!(
        !second.iter().any(|line| line.starts_with("No Istio")),
        "{second:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn an_unreachable_cluster_is_reported() {
    let host = Host::start().await;
    let missing = host.run("missing", &["status", NOW]).await;
    assert!(missing.contains("--- exit 1"), "{missing}");
    assert!(missing.contains("--- stderr\nError: "), "{missing}");
    let context = host.run("admin", &["status", "--context=other", NOW]).await;
    check("unknown-context", &context);
}
