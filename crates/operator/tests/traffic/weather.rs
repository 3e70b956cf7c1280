//! Hard weather: the operator killed twice, the API server away, the new istiod killed, the spec changed in the middle. It arrives all the same.

use std::time::Duration;

use serde_json::json;

use crate::made::{NEW, NEW_VERSION, OLD};
use crate::town::{ISTIO, Town};
use crate::upgrade::{tell, under_load, until_all_on, until_moved};

/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(10);

pub async fn it_arrives_all_the_same() {
    let mut town = Town::open().await;
    until_all_on(&mut town, OLD).await;
    let (results, ()) = under_load(&mut town, async |town| {
        town.change_version(NEW_VERSION).await;
        until_moving(town).await;
        town.kill_operator();
        town.note("operator killed");
        town.pass(Duration::from_secs(1)).await;
        town.start_operator();
        town.mesh.cluster_mut().stop_api_server();
        town.note("API server away");
        town.pass(AWAY).await;
        town.mesh.cluster_mut().start_api_server().await.unwrap();
        town.note("API server back");
        town.kill_operator();
        town.note("operator killed again");
        town.start_operator();
        until_some_arrived(town).await;
        kill_new_istiod(town).await;
        let faster =
            json!({"spec": {"updateStrategy": {"workloadMigration": {"batched": {"batchSize": 3}}}}});
        town.merge(ISTIO, &faster).await;
        town.note("three at a time from now on");
        until_moved(town).await;
    })
    .await;
    println!("hard weather: {}", tell(&results));
    for failure in results.failures().take(10) {
        println!(
            "[{:.2} s] {}",
            failure.due.as_secs_f64(),
            failure.failure.as_deref().unwrap_or_default()
        );
    }
}

async fn until_moving(town: &mut Town) {
    town.until("workloads are moving", 120, async |town| {
        let migration = town.migration().await?;
        (migration["state"] == "InProgress").then_some(())
    })
    .await;
}

/// Proxies hang on the new istiod.
async fn until_some_arrived(town: &mut Town) {
    town.until("some proxies have moved", 120, async |town| {
        let proxies = town.mesh.proxies("istio-system").await.ok()?;
        (proxies.get(NEW)?.len() >= 2).then_some(())
    })
    .await;
}

async fn kill_new_istiod(town: &mut Town) {
    let path =
        format!("/api/v1/namespaces/istio-system/pods?labelSelector=app%3Distiod%2Cistio.io%2Frev%3D{NEW}");
    let pods = town.list(&path).await;
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    town.mesh.kill("istio-system", name, "discovery").unwrap();
    town.note("the new istiod killed");
}
