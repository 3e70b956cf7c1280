//! Disruptions during an upgrade: the operator is killed twice, the API server is unavailable, the new
//! istiod is killed, and the spec changes. The upgrade must complete.

use std::time::Duration;

use serde_json::json;

use crate::fixtures::{NEW, NEW_VERSION, OLD};
use crate::test_mesh::{ISTIO, TestMesh};
use crate::upgrade::{summary, under_load, until_all_on, until_migrated};

/// Duration of the API server's outage.
const OUTAGE: Duration = Duration::from_secs(10);

pub async fn the_upgrade_completes() {
    let mut mesh = TestMesh::with_apps().await;
    until_all_on(&mut mesh, OLD).await;
    let (results, ()) = under_load(&mut mesh, async |mesh| {
        mesh.change_version(NEW_VERSION).await;
        until_migrating(mesh).await;
        mesh.kill_operator();
        mesh.note("operator killed");
        mesh.sleep(Duration::from_secs(1)).await;
        mesh.start_operator();
        mesh.mesh.cluster_mut().stop_api_server();
        mesh.note("API server down");
        mesh.sleep(OUTAGE).await;
        mesh.mesh.cluster_mut().start_api_server().await.unwrap();
        mesh.note("API server back");
        mesh.kill_operator();
        mesh.note("operator killed again");
        mesh.start_operator();
        until_some_migrated(mesh).await;
        kill_new_istiod(mesh).await;
        let faster =
            json!({"spec": {"updateStrategy": {"workloadMigration": {"batched": {"batchSize": 3}}}}});
        mesh.merge_patch(ISTIO, &faster).await;
        mesh.note("batch size changed to 3");
        until_migrated(mesh).await;
    })
    .await;
    println!("api outage: {}", summary(&results));
    for failure in results.failures().take(10) {
        println!(
            "[{:.2} s] {}",
            failure.due.as_secs_f64(),
            failure.failure.as_deref().unwrap_or_default()
        );
    }
}

async fn until_migrating(mesh: &mut TestMesh) {
    mesh.until("workloads are migrating", 120, async |mesh| {
        let migration = mesh.migration().await?;
        (migration["state"] == "InProgress").then_some(())
    })
    .await;
}

/// Waits until proxies are connected to the new istiod.
async fn until_some_migrated(mesh: &mut TestMesh) {
    mesh.until("some proxies have migrated", 120, async |mesh| {
        let proxies = mesh.mesh.proxies("istio-system").await.ok()?;
        (proxies.get(NEW)?.len() >= 2).then_some(())
    })
    .await;
}

async fn kill_new_istiod(mesh: &mut TestMesh) {
    let path =
        format!("/api/v1/namespaces/istio-system/pods?labelSelector=app%3Distiod%2Cistio.io%2Frev%3D{NEW}");
    let pods = mesh.list(&path).await;
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    mesh.mesh.kill("istio-system", name, "discovery").unwrap();
    mesh.note("the new istiod killed");
}
