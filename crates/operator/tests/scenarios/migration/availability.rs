//! Zero downtime: during an upgrade, every Service always has the number of endpoints that the rollout
//! strategy of its workload guarantees.

use std::time::Duration;

use mainstay_sim::script::Script;
use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;

/// Workloads with different rollout strategies: name, replicas, `maxUnavailable` and `maxSurge`.
const ROLLOUT_STRATEGIES: [(&str, u64, &str, &str); 5] = [
    ("cautious", 3, "0", "1"),
    ("usual", 4, "25%", "25%"),
    ("thrifty", 3, "1", "0"),
    ("brisk", 4, "50%", "100%"),
    ("single", 1, "25%", "25%"),
];

/// Converts an `IntOrString` field: a number, or a string with a percentage.
fn int_or_string(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

pub async fn every_service_stays_available(world: World) -> World {
    create_mesh(&world, batched(&world, 2, json!({}))).await;
    let spaces = [
        world.namespace(&format!("istio.io/rev={OLD_REVISION}")).await,
        world.namespace("istio-injection=enabled").await,
    ];
    for space in &spaces {
        for (name, replicas, unavailable, surge) in ROLLOUT_STRATEGIES {
            world.set_script(
                space,
                name,
                Script::default().stopping_after(Duration::from_secs(1)),
            );
            let rolling =
                json!({"maxUnavailable": int_or_string(unavailable), "maxSurge": int_or_string(surge)});
            let spec = json!({"replicas": replicas, "strategy": {"rollingUpdate": rolling}});
            create_app_with(&world, space, name, "", spec).await;
        }
    }
    for space in &spaces {
        until_served_by(&world, space, OLD_REVISION).await;
    }
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    assert_eq!(
        format_counts(&until_migration(&world, "Completed").await),
        "10+0+0 of 10"
    );
    for space in &spaces {
        until_served_by(&world, space, NEW_REVISION).await;
    }
    until_old_revision_is_deleted(&world).await;
    let history = log.stop_and_check(&world).await;
    let seen = history.availability();
    seen.check(10);
    assert!(history.max_migrating() <= 2, "at most one batch at a time");
    // `thrifty` may have one unavailable pod. Its minimum shows that the log contains such a state.
    for space in &spaces {
        let low = seen.services[&format!("{space}/thrifty")];
        assert_eq!((low.guaranteed, low.pods), (2, 2), "{low:?}");
    }
    world
}

/// Negative control: the availability log detects a deleted pod.
pub async fn a_state_with_too_few_endpoints_is_detected(world: World) -> World {
    let space = world.namespace("").await;
    create_app(&world, &space, "web", "").await;
    create_app(&world, &space, "left", "").await;
    until_served_by(&world, &space, "-").await;
    let log = AvailabilityLog::start(&world).await;
    let pods = list_items(&world, "Pod", &space).await;
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
            (!there).then_some(()).ok_or("the deleted pod still exists")
        })
        .await;
    until_served_by(&world, &space, "-").await;
    let seen = log.stop(&world).await.availability();
    let web = seen.services[&format!("{space}/web")];
    assert_eq!((web.guaranteed, web.pods, web.endpoints), (2, 1, 1), "{web:?}");
    assert!(
        !seen.violations.is_empty()
            && seen
                .violations
                .iter()
                .all(|line| line.starts_with(&format!("{space}/web ")))
    );
    world
}
