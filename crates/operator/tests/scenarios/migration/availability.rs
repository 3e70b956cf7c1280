//! Zero downtime: every Service has what its workload `plan_checks`, at every instant of the upgrade.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

/// Workloads of every manner of rolling: how many pods, how many may be missing, how many more there may be.
const MANNERS: [(&str, u64, &str, &str); 5] = [
    ("cautious", 3, "0", "1"),
    ("usual", 4, "25%", "25%"),
    ("thrifty", 3, "1", "0"),
    ("brisk", 4, "50%", "100%"),
    ("single", 1, "25%", "25%"),
];

/// A number stays one.
fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

pub async fn every_service_is_served_at_every_instant(world: World) -> World {
    mesh(&world, batched(&world, 2, json!({}))).await;
    let spaces = [
        world.namespace(&format!("istio.io/rev={OLD_REVISION}")).await,
        world.namespace("istio-injection=enabled").await,
    ];
    for space in &spaces {
        for (name, replicas, missing, more) in MANNERS {
            world.set_script(
                space,
                name,
                Script::default().stopping_after(Duration::from_secs(1)),
            );
            let rolling = json!({"maxUnavailable": number(missing), "maxSurge": number(more)});
            let spec = json!({"replicas": replicas, "strategy": {"rollingUpdate": rolling}});
            app_with(&world, space, name, "", spec).await;
        }
    }
    for space in &spaces {
        until_served_by(&world, space, OLD_REVISION).await;
    }
    let log = AvailabilityLog::begin(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    assert_eq!(
        counts(&until_migration(&world, "Completed").await),
        "10+0+0 of 10"
    );
    for space in &spaces {
        until_served_by(&world, space, NEW_REVISION).await;
    }
    until_old_is_gone(&world).await;
    let history = log.close(&world).await;
    let seen = history.availability();
    seen.check(10);
    assert!(history.max_migrating() <= 2, "gradually");
    // Where one may be missing, one was: the instrument sees it.
    for space in &spaces {
        let low = seen.services[&format!("{space}/thrifty")];
        assert_eq!((low.floor, low.pods), (2, 2), "{low:?}");
    }
    world
}

/// What is promised is broken on purpose: if this were not seen, nothing would be.
pub async fn a_state_with_too_few_endpoints_is_detected(world: World) -> World {
    let space = world.namespace("").await;
    app(&world, &space, "web", "").await;
    app(&world, &space, "left", "").await;
    until_served_by(&world, &space, "-").await;
    let log = AvailabilityLog::begin(&world).await;
    let pods = items(&world, "Pod", &space).await;
    let of_web = |pod: &&Value| pod["metadata"]["labels"]["app"] == "web";
    let victim = pods.iter().find(of_web).unwrap()["metadata"]["name"]
        .as_str()
        .unwrap();
    world.delete(&ObjectPath::namespaced("Pod", &space, victim)).await;
    world
        .until("the pod is replaced", async |world| {
            let there = world
                .get(&ObjectPath::namespaced("Pod", &space, victim))
                .await
                .is_some();
            (!there).then_some(()).ok_or("it still exists")
        })
        .await;
    until_served_by(&world, &space, "-").await;
    let seen = log.close_unchecked(&world).await.availability();
    let web = seen.services[&format!("{space}/web")];
    assert_eq!((web.floor, web.pods, web.endpoints), (2, 1, 1), "{web:?}");
    assert!(
        !seen.violations.is_empty()
            && seen
                .violations
                .iter()
                .all(|line| line.starts_with(&format!("{space}/web ")))
    );
    world
}
