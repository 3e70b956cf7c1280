//! Scenarios that run on the simulator and on a real API server.

use std::time::Duration;

use mainstay_api::istio_operator::IstioOperator;
use mainstay_cluster::install::{Installer, read_cluster_facts};
use mainstay_manifest::controller::plan_operator;
use mainstay_manifest::{CatalogPackage, Package, add_default_tag};
use serde_json::{Value, json};

use crate::world::{World, operator, operator_path, path, proxy};

fn deployment(name: &str) -> String {
    path("apis/apps/v1", "deployments", name)
}

/// Installs a control plane, repairs its objects, changes and deletes it. Returns the number of installed
/// objects.
pub(crate) async fn life_cycle(world: &mut World, profile: &str) -> usize {
    let before = world.inventory().await;
    world
        .create(&operator("mesh", json!({"profile": profile})))
        .await
        .unwrap();
    let live = world.until_state("mesh", "HEALTHY").await;
    check_status(&live);
    let installed = world.inventory().await.difference(&before).count();
    check_equals_command_line(world, &live).await;
    world.until_idle().await;
    let writes = world.writes();
    check_drift(world).await;
    assert!(world.writes() > writes);
    check_spec_change(world).await;
    check_deletion(world).await;
    world.until_inventory(&before).await;
    installed
}

fn check_status(live: &Value) {
    let finalizers = live["metadata"]["finalizers"].as_array().unwrap();
    assert!(
        finalizers.contains(&json!("istio-finalizer.install.istio.io")),
        "{live}"
    );
    for component in ["Base", "Pilot"] {
        let row = &live["status"]["componentStatus"][component];
        assert_eq!(row["status"], "HEALTHY", "{live}");
        assert!(row["version"].is_string() && row.get("error").is_none(), "{live}");
    }
    for kind in ["Reconciled", "Ready"] {
        let conditions = live["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|one| one["type"] == kind).unwrap();
        assert_eq!(condition["status"], "True", "{live}");
    }
}

/// Checks that `mainstay install` of the same resource would write nothing.
async fn check_equals_command_line(world: &World, live: &Value) {
    let client = world.client("check");
    let operator: IstioOperator = serde_json::from_value(live.clone()).unwrap();
    let version = world.catalog.default_version().unwrap();
    let source = CatalogPackage::new(&world.catalog, version.clone());
    let package = Package {
        charts: &source,
        profiles: &source,
    };
    let kube_version = read_cluster_facts(&client).await.unwrap().kube_version;
    let (mut plan, _) = plan_operator(&operator, package, &version, &kube_version).unwrap();
    let installer = Installer::new(client, Duration::from_mins(1));
    let tag = installer.default_tag().await.unwrap();
    add_default_tag(&mut plan, tag.as_ref(), package).unwrap();
    let (problems, count) = installer.verify(&plan).await.unwrap();
    assert!(problems.is_empty() && count > 20, "{count}: {problems:#?}");
}

/// Checks that changes and deletions by other clients are reverted.
async fn check_drift(world: &mut World) {
    let changed = json!({"spec": {"template": {"metadata": {"annotations": {"prometheus.io/port": "1"}}}}});
    world.patch(&deployment("istiod"), changed).await;
    let service = path("api/v1", "services", "istiod");
    let uid = world.get(&service).await.unwrap()["metadata"]["uid"].clone();
    world.delete(&service).await;
    world
        .until(&service, "a new Service", |object| {
            !object.is_null() && object["metadata"]["uid"] != uid
        })
        .await;
    world
        .until(&deployment("istiod"), "the template of the chart", |object| {
            object["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == "15014"
        })
        .await;
    world.until_state("mesh", "HEALTHY").await;
    world.until_idle().await;
    let reasons = world.event_reasons("mesh").await;
    assert!(
        reasons.contains("InstallationCompleted") && reasons.contains("ReleaseDrifted"),
        "{reasons:?}"
    );
}

/// Checks that a change of the spec changes objects, and that a disabled component is pruned.
async fn check_spec_change(world: &mut World) {
    let at = operator_path("mesh");
    let on = json!({"spec": {"components": {"cni": {"enabled": true, "namespace": "istio-system"}},
        "meshConfig": {"accessLogFile": "/dev/stdout"}}});
    world.patch(&at, on).await;
    let live = world.until_state("mesh", "HEALTHY").await;
    assert_eq!(
        live["status"]["componentStatus"]["Cni"]["status"], "HEALTHY",
        "{live}"
    );
    let mesh = world.get(&path("api/v1", "configmaps", "istio")).await.unwrap();
    assert!(
        mesh["data"]["mesh"]
            .as_str()
            .unwrap()
            .contains("accessLogFile: /dev/stdout"),
        "{mesh}"
    );
    let off = json!({"spec": {"components": {"cni": {"enabled": false}, "ztunnel": {"enabled": false}}}});
    world.patch(&at, off).await;
    let live = world.until_state("mesh", "HEALTHY").await;
    assert!(live["status"]["componentStatus"].get("Cni").is_none(), "{live}");
    world
        .until_gone(&path("apis/apps/v1", "daemonsets", "istio-cni-node"))
        .await;
}

/// Checks that a revision with proxies is not deleted.
async fn check_deletion(world: &mut World) {
    world.create(&proxy("web", "default")).await.unwrap();
    world.delete(&operator_path("mesh")).await;
    let live = world
        .until(&operator_path("mesh"), "ACTION_REQUIRED", |object| {
            object["status"]["status"] == "ACTION_REQUIRED"
        })
        .await;
    let conditions = live["status"]["conditions"].as_array().unwrap();
    let blocked = conditions
        .iter()
        .find(|one| one["type"] == "DeletionBlocked")
        .unwrap();
    assert_eq!(blocked["reason"], "ProxiesConnected");
    assert!(
        blocked["message"].as_str().unwrap().contains("default/web"),
        "{blocked}"
    );
    assert!(world.get(&deployment("istiod")).await.is_some());
    world.until_idle().await;
    let reasons = world.event_reasons("mesh").await;
    assert!(reasons.contains("ProxiesConnected"), "{reasons:?}");
    world
        .send(
            "DELETE",
            "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0",
            None,
        )
        .await
        .unwrap();
    world.until_gone(&operator_path("mesh")).await;
}
