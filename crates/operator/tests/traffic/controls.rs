//! Two controls that must fail: an instrument that sees nothing when something is broken proves nothing.

use std::time::Duration;

use mainstay_testkit::mesh::APP_IMAGE;
use serde_json::json;

use crate::made::{OLD, SHOPS};
use crate::town::Town;
use crate::upgrade::{tell, under_load, until_all_on};

/// A server killed behind an endpoint that stays ready; restarts without a pause before the end and without retries.
pub async fn what_is_broken_shows() {
    let mut town = Town::open().await;
    println!("mesh up: {:.1} s", town.came_up_in.as_secs_f64());
    until_all_on(&mut town, OLD).await;
    careless_restarts(&mut town).await;
    killed_server(&mut town).await;
}

async fn killed_server(town: &mut Town) {
    let shop = &SHOPS[0];
    let pods = format!("/api/v1/namespaces/{}/pods", shop.namespace);
    let pods = town.list(&pods).await;
    let living = pods
        .iter()
        .find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .unwrap();
    let name = living["metadata"]["name"].as_str().unwrap().to_owned();
    let (results, ()) = under_load(town, async |town| {
        town.mesh.stop_restarting(shop.namespace, &name).unwrap();
        town.mesh.kill(shop.namespace, &name, "app").unwrap();
        town.note("a server is killed, its endpoint stays");
        town.pass(Duration::from_secs(5)).await;
    })
    .await;
    println!("control, killed server: {}", tell(&results));
    assert!(results.failures().count() > 0, "a killed server went unnoticed");
}

async fn careless_restarts(town: &mut Town) {
    let last = &SHOPS[1];
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
    town.create(&without).await;
    let (results, ()) = under_load(town, async |town| {
        for time in 0..3 {
            let template = json!({"spec": {"template": {
                "metadata": {"annotations": {"restart": time.to_string()}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "app", "image": APP_IMAGE, "lifecycle": null}]},
            }}});
            town.strategic(&path, &template).await;
            town.until("the restart is over", 90, async |town| {
                let deployment = town.get(&path).await?;
                let status = &deployment["status"];
                let current = status["observedGeneration"] == deployment["metadata"]["generation"];
                let all = ["replicas", "updatedReplicas", "availableReplicas"].map(|field| status[field].as_u64());
                (current && all == [Some(2); 3]).then_some(())
            })
            .await;
        }
    })
    .await;
    println!("control, careless restarts: {}", tell(&results));
    assert!(
        results.failures().count() > 0,
        "restarts without drain and retries went unnoticed"
    );
}
