//! Tests the takeover of a mesh that is installed with Helm as by the Sail Operator: our operator starts,
//! and nothing restarts. The real `helm` installs the charts, and this program is its post-renderer.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use mainstay_catalog::{Catalog, Flavour};
use mainstay_sim::snapshot;
use mainstay_testkit::peer;
use mainstay_testkit::suite::TestCase;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::World;
use crate::support::calls;
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, INSTALLED_KINDS, ObjectPath};
use crate::support::world::Backing;

/// External programs that the test runs.
pub(crate) const PEERS: [&str; 1] = ["helm3"];

pub(crate) const TEST_CASES: &[TestCase] = &[TestCase {
    name: "takeover::a_takeover_restarts_nothing",
    start: || Box::pin(a_takeover_restarts_nothing()),
}];

/// Argument that runs this program as the post-renderer, with the owner as JSON.
const POST_RENDER: &str = "--post-render=";

/// Adds owner and label to every object, as the Sail Operator's post-renderer does. Returns false if the
/// argument is missing.
pub(crate) fn post_render() -> bool {
    let Some(owner) =
        std::env::args().find_map(|argument| argument.strip_prefix(POST_RENDER).map(str::to_owned))
    else {
        return false;
    };
    let owner: Value = serde_json::from_str(&owner).unwrap();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    for mut object in snapshot::parse(&text).unwrap() {
        object["metadata"]["ownerReferences"] = json!([owner]);
        object["metadata"]["labels"]["managed-by"] = "sail-operator".into();
        println!("---\n{object}");
    }
    true
}

async fn a_takeover_restarts_nothing() {
    let world = World::real().await;
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world.settle().await;
    world.stop_operator().await;
    remove_installed(&world).await;
    let revision = world.get(&path::revision("default")).await.unwrap();
    install(
        &world,
        "istiod",
        "istio-system",
        &revision,
        revision["spec"]["values"].clone(),
    )
    .await;
    let mut values = revision["spec"]["values"].clone();
    values["defaultRevision"] = "default".into();
    install(&world, "base", "sail-operator", &revision, values).await;
    let istiod = ObjectPath::namespaced("Deployment", "istio-system", "istiod");
    world
        .until_object(&istiod, "is ready again", |object| {
            object["status"]["readyReplicas"] == 1
        })
        .await;
    let before = identities(&world).await;
    let mark = world.mark();
    world.start_operator().await;
    world.settle().await;
    let seen = world.calls(&mark);
    let writes = calls::writes(&seen);
    let deployments = writes.iter().filter(|line| line.contains("/deployments")).count();
    let after = identities(&world).await;
    println!(
        "takeover: {deployments} writes to Deployments, {} in all, {} objects with the same identity and version, pods untouched: {}",
        writes.len(),
        after.len(),
        before == after
    );
    assert_eq!(writes, [""; 0]);
    assert_eq!(before, after);
    world.until_state(&path::istio("default"), "Healthy").await;
    let secrets = world.list("Secret", "owner=helm").await;
    assert_eq!(secrets.len(), 2, "the release Secrets of Helm are kept");
    for mut secret in secrets {
        secret["kind"] = "Secret".into();
        world.delete(&ObjectPath::from_object(&secret)).await;
    }
    world.end().await;
}

/// Deletes the installed objects and the operator's inventories.
async fn remove_installed(world: &World) {
    for selector in ["managed-by=sail-operator", "applyset.kubernetes.io/id"] {
        for kind in INSTALLED_KINDS {
            for mut object in world.list(kind, selector).await {
                object["kind"] = kind.into();
                let at = ObjectPath::from_object(&object);
                world.delete(&at).await;
                world.until_gone(&at).await;
            }
        }
    }
    world
        .until("istiod's pods are deleted", async |world| {
            let left = world.list("Pod", "app=istiod").await.len();
            (left == 0).then_some(()).ok_or(format!("{left} left"))
        })
        .await;
}

/// Returns UIDs and versions of the installed objects and of istiod's pods.
async fn identities(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, selector) in INSTALLED_KINDS
        .iter()
        .map(|kind| (*kind, "managed-by=sail-operator"))
        .chain([("Pod", "app=istiod")])
    {
        for object in world.list(kind, selector).await {
            let metadata = &object["metadata"];
            let (uid, name) = (&metadata["uid"], &metadata["name"]);
            // Status updates change the resourceVersion but not the generation.
            let version = if kind == "Deployment" || kind == "Pod" {
                &metadata["generation"]
            } else {
                &metadata["resourceVersion"]
            };
            found.push(format!("{kind} {name} {uid} {version}"));
        }
    }
    found
}

/// Runs `helm install` as the Sail Operator does, with the values of the revision and a post-renderer that
/// adds the owner.
async fn install(world: &World, chart: &str, namespace: &str, revision: &Value, values: Value) {
    let Backing::Real(real) = &world.backing else {
        panic!("no real server")
    };
    let directory = tempfile::tempdir().unwrap();
    write_chart(chart, directory.path());
    let file = directory.path().join("values.json");
    std::fs::write(&file, values.to_string()).unwrap();
    let owner = json!({
        "apiVersion": "sailoperator.io/v1",
        "kind": "IstioRevision",
        "name": revision["metadata"]["name"],
        "uid": revision["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    });
    let output = Command::new(peer("helm3").unwrap())
        .arg("install")
        .arg(format!("default-{chart}"))
        .arg(directory.path().join(chart))
        .args([
            "--namespace",
            namespace,
            "--skip-crds",
            "--disable-openapi-validation",
        ])
        .arg("--values")
        .arg(&file)
        .arg("--post-renderer")
        .arg(std::env::current_exe().unwrap())
        .arg("--post-renderer-args")
        .arg(format!("{POST_RENDER}{owner}"))
        .env("KUBECONFIG", real.cluster.kubeconfig("admin"))
        .env("HOME", directory.path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "helm: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn write_chart(chart: &str, directory: &Path) {
    let catalog = Catalog::embedded().unwrap();
    let version = catalog.resolve(NEW).unwrap();
    for (name, bytes) in catalog.chart(&version, Flavour::Operator, chart).unwrap() {
        let path = directory.join(chart).join(&name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}
