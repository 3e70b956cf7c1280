//! The circuit breaker of an unreachable cluster, on five clusters.

use std::time::Duration;

use mainstay_harness::UnansweredCall;

use crate::fleet::Fleet;
use crate::objects::deployment_of;
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const WORKLOAD: &str = "example-app-v1-testsvc";
const MEMBERS: [&str; 4] = ["east", "north", "south", "west"];
/// The unreachable cluster.
const DEAD: &str = "north";

/// Default interval of probes, plus the timeout of a probe.
const MAX_GAP: Duration = Duration::from_secs(35);
const OUTAGE: Duration = Duration::from_mins(30);
/// Maximum duration of a change in the other clusters. The timeout of a call is 10 s: a change that waits
/// for the unreachable cluster takes longer.
const MAX_CHANGE_TIME: Duration = Duration::from_secs(9);

fn deployment(replicas: u32) -> serde_json::Value {
    let places: Vec<(&str, u32)> = [""]
        .iter()
        .chain(&MEMBERS)
        .map(|name| (*name, replicas))
        .collect();
    deployment_of(&[(V1, &places)])
}

/// Scales the other clusters, and returns the duration of the change.
async fn scale_others(fleet: &mut Fleet, replicas: u32) -> Duration {
    let start = tokio::time::Instant::now();
    fleet.set_spec(DEPLOYMENTS, &deployment(replicas)).await;
    let wanted = Some((u64::from(replicas), u64::from(replicas)));
    fleet
        .until("the other clusters are scaled", |fleet| {
            let mut others = fleet.clusters.keys().filter(|name| *name != DEAD);
            others.all(|name| fleet.replicas(name, WORKLOAD) == wanted)
        })
        .await;
    start.elapsed()
}

/// Checks that the calls after the breaker opened are probes, whose delay grows up to the probe interval.
fn check_probes(calls: &[UnansweredCall]) {
    let first = calls
        .iter()
        .position(|call| call.request == "GET /version")
        .unwrap();
    let probes = &calls[first..];
    let other = probes.iter().find(|call| call.request != "GET /version");
    assert_eq!(other, None, "only probes after the breaker opened");
    let gaps: Vec<Duration> = probes.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= MAX_GAP), "{gaps:?}");
    let expected = OUTAGE.as_secs() / MAX_GAP.as_secs();
    assert!(
        (expected..expected + 10).contains(&(probes.len() as u64)),
        "{} probes in {OUTAGE:?}",
        probes.len()
    );
}

/// While a cluster is unreachable, it receives nothing but probes, and the other four are changed without
/// waiting for it. After the outage, it receives the last of the changes.
#[test]
fn the_circuit_breaker_limits_calls_to_an_unreachable_cluster() {
    run(async {
        let mut fleet = Fleet::start(&MEMBERS).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment(1)).await;
        fleet.until_phase("Healthy").await;
        fleet.connector.set_unresponsive(DEAD, true);
        let start = tokio::time::Instant::now();
        // The first change discovers the outage: its plan ends when the call to the cluster times out, but
        // the other clusters are changed meanwhile.
        let took = scale_others(&mut fleet, 2).await;
        assert!(
            took <= MAX_CHANGE_TIME,
            "{took:?} for the change that discovers the outage"
        );
        for replicas in 3..8 {
            fleet.sleep(OUTAGE / 8).await;
            let took = scale_others(&mut fleet, replicas).await;
            assert!(took <= MAX_CHANGE_TIME, "{took:?} for {replicas} replicas");
        }
        fleet.sleep(OUTAGE.saturating_sub(start.elapsed())).await;
        check_probes(&fleet.connector.unanswered_calls(DEAD));
        assert_eq!(fleet.replicas(DEAD, WORKLOAD), Some((1, 1)));
        fleet.connector.set_unresponsive(DEAD, false);
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas(DEAD, WORKLOAD), Some((7, 7)));
    });
}
