//! Tests that changes by users are handled while the steps of a cluster back off.

use std::time::Duration;

use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::{Value, json};

use crate::fleet::{CLIENT, Fleet};
use crate::objects::{self, DEPLOYMENT, deployment_of};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const WORKLOAD: &str = "example-app-v1-testsvc";
const EAST: &str = "east";

/// Time in which the back-off grows to its maximum of two minutes.
const FAILURE_TIME: Duration = Duration::from_mins(15);
/// Maximum time to wait for a rejected attempt, in seconds.
const MAX_WAIT_SECONDS: u32 = 1200;
/// Time in which a change must be handled.
const REACTION_TIME: Duration = Duration::from_secs(1);

/// Returns a deployment whose rollouts do not fail, because a failed rollout makes no further attempts.
fn deployment(replicas: u32) -> Value {
    let mut deployment = deployment_of(&[(V1, &[("", 2), (EAST, replicas)])]);
    deployment["spec"]["strategy"] = json!({"progressDeadlineSeconds": 100_000});
    deployment
}

fn writes(fleet: &Fleet) -> u64 {
    let sim = fleet.clusters[EAST].sim();
    sim.with(|state| state.faults.counts(CLIENT).writes)
}

/// Rejects all writes to Deployments of a member until the back-off has its maximum, and accepts them again
/// just after a rejected attempt.
async fn fail_for_minutes(fleet: &mut Fleet) {
    fleet.clusters[EAST].sim().add_fault(Rule {
        times: u64::MAX,
        ..Rule::once(
            CLIENT,
            Trigger::Matching("PATCH /apis/apps/v1/namespaces/default/deployments".into()),
            Fault::internal(),
        )
    });
    fleet.sleep(FAILURE_TIME).await;
    let before = writes(fleet);
    for _ in 0..MAX_WAIT_SECONDS {
        if writes(fleet) != before {
            break;
        }
        fleet.sleep(Duration::from_secs(1)).await;
    }
    assert_ne!(writes(fleet), before, "no attempt");
    fleet.sleep(Duration::from_secs(5)).await;
    fleet.clusters[EAST].sim().with(|state| state.faults.clear());
    let quiet = writes(fleet);
    fleet.sleep(Duration::from_mins(1)).await;
    assert_eq!(writes(fleet), quiet, "the back-off is shorter than a minute");
}

fn workload(fleet: &Fleet) -> Option<Value> {
    fleet.object(EAST, "deployments.apps", WORKLOAD)
}

#[test]
fn an_edit_and_a_deletion_are_handled_during_a_long_backoff() {
    run(async {
        let mut fleet = Fleet::start(&[EAST]).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment(2)).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;

        fleet.set_spec(DEPLOYMENTS, &deployment(3)).await;
        fail_for_minutes(&mut fleet).await;
        fleet.set_spec(DEPLOYMENTS, &deployment(4)).await;
        fleet.sleep(REACTION_TIME).await;
        assert_eq!(
            workload(&fleet).unwrap()["spec"]["replicas"],
            4,
            "the edit is not applied"
        );
        fleet.until_phase("Healthy").await;

        fleet.set_spec(DEPLOYMENTS, &deployment(5)).await;
        fail_for_minutes(&mut fleet).await;
        let path = objects::path(DEPLOYMENTS, DEPLOYMENT);
        fleet.host().delete(&path).await.unwrap();
        fleet.sleep(REACTION_TIME).await;
        let left = workload(&fleet);
        let is_deleted = left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string());
        assert!(is_deleted, "the workload is not deleted");
        fleet
            .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
            .await;
    });
}

/// Conflicts are retried without delay, so that a few of them do not delay a deployment.
#[test]
fn conflicts_do_not_delay_a_deployment() {
    run(async {
        let mut fleet = Fleet::start(&[EAST]).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment(2)).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        fleet.clusters[EAST].sim().add_fault(Rule {
            times: 4,
            ..Rule::once(
                CLIENT,
                Trigger::Matching("PATCH /apis/apps/v1/namespaces/default/deployments".into()),
                Fault::conflict(),
            )
        });
        fleet.set_spec(DEPLOYMENTS, &deployment(3)).await;
        fleet.sleep(REACTION_TIME).await;
        assert_eq!(workload(&fleet).unwrap()["spec"]["replicas"], 3);
    });
}
