//! Tests that changes by users are handled during a long back-off.

use std::time::Duration;

use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::{Value, json};

use crate::virtual_time::run;
use crate::world::{CLIENT, World, operator, operator_path, path};

/// Time in which the back-off grows to its maximum of two minutes.
const FAILURE_TIME: Duration = Duration::from_mins(15);
/// Maximum time to wait for a rejected attempt, in seconds.
const MAX_WAIT_SECONDS: u32 = 1200;
/// Time in which a change must be handled.
const REACTION_TIME: Duration = Duration::from_secs(1);

fn with_variable(value: &str) -> Value {
    json!({"profile": "minimal", "values": {"pilot": {"env": {"SCENARIO": value}}}})
}

/// Rejects all writes of Deployments until the back-off has its maximum, and accepts them again just after a
/// rejected attempt.
async fn fail_for_minutes(world: &mut World) {
    let cluster = world.simulator().sim().clone();
    cluster.add_fault(Rule {
        times: u64::MAX,
        ..Rule::once(
            CLIENT,
            Trigger::Matching("PATCH /apis/apps/v1/namespaces/istio-system/deployments".into()),
            Fault::internal(),
        )
    });
    world.sleep(FAILURE_TIME).await;
    let before = world.writes();
    for _ in 0..MAX_WAIT_SECONDS {
        if world.writes() != before {
            break;
        }
        world.sleep(Duration::from_secs(1)).await;
    }
    assert_ne!(world.writes(), before, "no attempt");
    world.sleep(Duration::from_secs(5)).await;
    cluster.with(|state| state.faults.clear());
    let quiet = world.writes();
    world.sleep(Duration::from_mins(1)).await;
    assert_eq!(world.writes(), quiet, "the back-off is shorter than a minute");
}

#[test]
fn an_edit_and_a_deletion_are_handled_during_a_long_backoff() {
    run(async {
        let mut world = World::simulated().await;
        world
            .create(&operator("mesh", with_variable("first")))
            .await
            .unwrap();
        world.until_state("mesh", "HEALTHY").await;
        let istiod = path("apis/apps/v1", "deployments", "istiod");

        let change = json!({"spec": with_variable("second")});
        world.patch(&operator_path("mesh"), change).await;
        fail_for_minutes(&mut world).await;
        let change = json!({"spec": with_variable("third")});
        world.patch(&operator_path("mesh"), change).await;
        world.sleep(REACTION_TIME).await;
        let text = world.get(&istiod).await.unwrap().to_string();
        assert!(text.contains("third"), "the edit is not applied: {text}");

        let change = json!({"spec": with_variable("fourth")});
        world.patch(&operator_path("mesh"), change).await;
        fail_for_minutes(&mut world).await;
        world.delete(&operator_path("mesh")).await;
        world.sleep(REACTION_TIME).await;
        let left = world.get(&istiod).await;
        let is_deleted = left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string());
        assert!(is_deleted, "the Deployment is not deleted");
        world.until_gone(&operator_path("mesh")).await;
    });
}
