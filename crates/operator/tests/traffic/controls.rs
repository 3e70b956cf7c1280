//! Two negative controls, in which the measurement must detect failing requests.

use std::time::Duration;

use mainstay_testkit::mesh::APP_IMAGE;
use serde_json::json;

use crate::fixtures::{APPS, OLD};
use crate::test_mesh::TestMesh;
use crate::upgrade::{summary, under_load, until_all_on};

/// Checks that failures are detected if a server is killed while its endpoint stays ready, and if workloads
/// restart without graceful shutdown and retries.
pub async fn broken_traffic_is_detected() {
    let mut mesh = TestMesh::with_apps().await;
    println!("mesh up: {:.1} s", mesh.startup_time.as_secs_f64());
    until_all_on(&mut mesh, OLD).await;
    check_ungraceful_restarts(&mut mesh).await;
    check_killed_server(&mut mesh).await;
}

async fn check_killed_server(mesh: &mut TestMesh) {
    let app = &APPS[0];
    let pods = format!("/api/v1/namespaces/{}/pods", app.namespace);
    let pods = mesh.list(&pods).await;
    let running = pods
        .iter()
        .find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .unwrap();
    let name = running["metadata"]["name"].as_str().unwrap().to_owned();
    let (results, ()) = under_load(mesh, async |mesh| {
        mesh.mesh.stop_restarting(app.namespace, &name).unwrap();
        mesh.mesh.kill(app.namespace, &name, "app").unwrap();
        mesh.note("a server is killed, its endpoint stays");
        mesh.sleep(Duration::from_secs(5)).await;
    })
    .await;
    println!("control, killed server: {}", summary(&results));
    assert!(results.failures().count() > 0, "a killed server was not detected");
}

async fn check_ungraceful_restarts(mesh: &mut TestMesh) {
    let last = &APPS[1];
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        last.namespace, last.name
    );
    let without = json!({"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "careless", "namespace": last.namespace},
        "spec": {"hosts": [format!("{}.{}.svc.cluster.local", last.name, last.namespace)], "http": [{
            "retries": {"attempts": 0},
            "route": [{"destination": {"host": format!("{}.{}.svc.cluster.local", last.name, last.namespace), "port": {"number": 80}}}],
        }]},
    });
    mesh.create(&without).await;
    let (results, ()) = under_load(mesh, async |mesh| {
        for time in 0..3 {
            let template = json!({"spec": {"template": {
                "metadata": {"annotations": {"restart": time.to_string()}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "app", "image": APP_IMAGE, "lifecycle": null}]},
            }}});
            mesh.strategic_merge_patch(&path, &template).await;
            mesh.until("the restart is over", 90, async |mesh| {
                let deployment = mesh.get(&path).await?;
                let status = &deployment["status"];
                let current = status["observedGeneration"] == deployment["metadata"]["generation"];
                let all = ["replicas", "updatedReplicas", "availableReplicas"].map(|field| status[field].as_u64());
                (current && all == [Some(2); 3]).then_some(())
            })
            .await;
        }
    })
    .await;
    println!("control, careless restarts: {}", summary(&results));
    assert!(
        results.failures().count() > 0,
        "restarts without drain and retries were not detected"
    );
}
