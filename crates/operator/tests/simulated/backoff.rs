//! Tests that changes by users are handled during a long back-off.

use std::time::Duration;

use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::calls::OPERATOR;
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, ObjectPath};
use crate::support::virtual_time::run;
use crate::support::world::{Backing, plain_options};

/// Time in which the back-off grows to several minutes.
const FAILURE_TIME: Duration = Duration::from_mins(20);
/// Maximum time to wait for a rejected attempt, in seconds.
const MAX_WAIT_SECONDS: u32 = 1200;
/// Time in which a change must be handled.
const REACTION_TIME: Duration = Duration::from_secs(1);

/// Rejects the operator's writes of Deployments until the back-off is minutes long, and accepts them again
/// just after a rejected attempt.
async fn fail_for_minutes(world: &World) {
    let Backing::Sim(cluster) = &world.backing else {
        panic!("faults are injected into a simulated cluster");
    };
    cluster.sim().add_fault(Rule {
        times: u64::MAX,
        ..Rule::once(
            OPERATOR,
            Trigger::Matching("PATCH /apis/apps/v1/namespaces/istio-system/deployments".into()),
            Fault::internal(),
        )
    });
    world.sleep(FAILURE_TIME).await;
    let attempts = || cluster.sim().with(|state| state.faults.counts(OPERATOR).writes);
    let before = attempts();
    for _ in 0..MAX_WAIT_SECONDS {
        if attempts() != before {
            break;
        }
        world.sleep(Duration::from_secs(1)).await;
    }
    assert_ne!(attempts(), before, "no attempt");
    world.sleep(Duration::from_secs(5)).await;
    cluster.sim().with(|state| state.faults.clear());
    let quiet = attempts();
    world.sleep(Duration::from_secs(90)).await;
    assert_eq!(attempts(), quiet, "the back-off is not minutes long");
}

fn variable(value: &str) -> Value {
    json!({"spec": {"values": {"pilot": {"env": {"SCENARIO": value}}}}})
}

fn istiod() -> ObjectPath {
    ObjectPath::namespaced("Deployment", "istio-system", "istiod")
}

#[test]
fn an_edit_and_a_deletion_are_handled_during_a_long_backoff() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        world.create(fixtures::istio("default", NEW, json!({}))).await;
        world.until_state(&path::istio("default"), "Healthy").await;

        world.patch(&path::istio("default"), variable("first")).await;
        fail_for_minutes(&world).await;
        world.patch(&path::istio("default"), variable("second")).await;
        world.sleep(REACTION_TIME).await;
        let text = world.get(&istiod()).await.unwrap().to_string();
        assert!(text.contains("second"), "the edit is not applied: {text}");

        world.patch(&path::istio("default"), variable("third")).await;
        fail_for_minutes(&world).await;
        world.delete(&path::istio("default")).await;
        world.sleep(REACTION_TIME).await;
        assert!(
            world.get(&path::revision("default")).await.is_none(),
            "the revision is not deleted"
        );
        world.until_gone(&istiod()).await;
        println!("harden back-off: an edit and a deletion handled within 1 s of a back-off of minutes");
        world.end().await;
    });
}
