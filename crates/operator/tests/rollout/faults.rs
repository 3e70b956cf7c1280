//! The fault matrix. Runs each scenario with a fault at every call to every cluster, and compares the
//! result with the run without faults.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use mainstay_harness::{SimulatedCluster, cluster_secret};
use mainstay_sim::fault::RequestCounts;
use mainstay_sim::snapshot;
use serde_json::Value;

use crate::end_state::comparable_state;
use crate::final_state::FinalState;
use crate::fleet::{CLIENT, Fleet};
use crate::objects::{self, DEPLOYMENT, NAMESPACE, deployment_of, with_traffic};
use crate::sim_faults::{InjectedFault, assert_no_problems, faults_between, find_problems, sample};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const V2: &str = "example-app-v2";

type Steps = for<'a> fn(&'a mut Fleet) -> LocalBoxFuture<'a, ()>;

/// A scenario with its initial state and the action that runs with faults.
struct Scenario {
    name: &'static str,
    members: &'static [&'static str],
    set_up: Steps,
    action: Steps,
}

fn deployment(revision: &str, replicas: u32) -> Value {
    let places: &[(&str, u32)] = &[("", replicas), ("east", replicas)];
    with_traffic(deployment_of(&[(revision, places)]), "Istio", &[(revision, 100)])
}

fn split(weights: [u32; 2]) -> Value {
    let places: &[(&str, u32)] = &[("", 2), ("east", 2)];
    let [one, two] = weights;
    with_traffic(
        deployment_of(&[(V1, places), (V2, places)]),
        "Istio",
        &[(V1, one), (V2, two)],
    )
}

macro_rules! steps {
    ($fleet:ident => $body:block) => {
        |$fleet: &mut Fleet| async move { $body }.boxed_local()
    };
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "install",
        members: &["east"],
        set_up: steps!(fleet => { fleet.record_two_revisions().await; }),
        action: steps!(fleet => {
            fleet.create(&deployment(V1, 2)).await;
            fleet.until_phase("Healthy").await;
        }),
    },
    Scenario {
        name: "replace_revision",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, deployment(V1, 2)).await; }),
        action: steps!(fleet => { change_spec(fleet, deployment(V2, 2)).await; }),
    },
    Scenario {
        name: "shift_weights",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, split([50, 50])).await; }),
        action: steps!(fleet => { change_spec(fleet, split([10, 90])).await; }),
    },
    Scenario {
        name: "leave_a_cluster",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, deployment(V1, 2)).await; }),
        action: steps!(fleet => {
            let places: &[(&str, u32)] = &[("", 3)];
            let next = with_traffic(deployment_of(&[(V1, places)]), "Istio", &[(V1, 100)]);
            change_spec(fleet, next).await;
        }),
    },
    Scenario {
        name: "rolling",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, rolling_deployment(V1)).await; }),
        action: steps!(fleet => { change_spec(fleet, rolling_deployment(V2)).await; }),
    },
    Scenario {
        name: "deletion",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, deployment(V1, 2)).await; }),
        action: steps!(fleet => {
            fleet.host().delete(&objects::path(DEPLOYMENTS, DEPLOYMENT)).await.unwrap();
            fleet.until("the deployment is deleted", |fleet| fleet.deployment().is_null()).await;
        }),
    },
    Scenario {
        name: "waves_over_five_clusters",
        members: &["east", "north", "south", "west"],
        set_up: steps!(fleet => { create_healthy(fleet, waves_deployment(V1)).await; }),
        action: steps!(fleet => { change_spec(fleet, waves_deployment(V2)).await; }),
    },
    Scenario {
        name: "rotate_a_token",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, deployment(V1, 2)).await; }),
        action: steps!(fleet => {
            fleet.connector.set_token("east", "token-2");
            let secret = cluster_secret(NAMESPACE, "east", "token-2");
            let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/kubeconfig-east");
            let change = serde_json::json!({"data": secret["data"]});
            fleet.host().merge_patch(&path, &change).await.unwrap();
            change_spec(fleet, deployment(V1, 3)).await;
        }),
    },
    Scenario {
        name: "another_clock",
        members: &["east"],
        set_up: steps!(fleet => { create_healthy(fleet, rolling_deployment(V1)).await; }),
        action: steps!(fleet => {
            fleet.kill_controllers();
            // Waits end later by this offset: it is shorter than the idle time that ends a run.
            fleet.controller_clock_offset = jiff::SignedDuration::from_mins(-1);
            fleet.start_controllers();
            change_spec(fleet, rolling_deployment(V2)).await;
        }),
    },
];

/// Returns a deployment in five clusters that changes one cluster first and then two at a time.
fn waves_deployment(revision: &str) -> Value {
    let places: &[(&str, u32)] = &[("", 1), ("east", 1), ("north", 1), ("south", 1), ("west", 1)];
    let mut deployment = with_traffic(deployment_of(&[(revision, places)]), "Istio", &[(revision, 100)]);
    deployment["spec"]["strategy"] = serde_json::json!({
        "type": "Rolling", "maxSurge": 5, "maxUnavailable": 0,
        "waves": [
            {"name": "first", "clusterSelector": {"name": "north"}, "soakSeconds": 5},
            {"name": "rest", "maxConcurrentClusters": 2},
        ],
    });
    deployment
}

fn rolling_deployment(revision: &str) -> Value {
    let mut rolling = deployment(revision, 3);
    rolling["spec"]["strategy"] = serde_json::json!({"type": "Rolling", "maxSurge": 1, "maxUnavailable": 0});
    rolling
}

async fn create_healthy(fleet: &mut Fleet, deployment: Value) {
    fleet.record_two_revisions().await;
    fleet.create(&deployment).await;
    fleet.until_phase("Healthy").await;
    fleet.until_idle().await;
}

async fn change_spec(fleet: &mut Fleet, deployment: Value) {
    fleet.set_spec(DEPLOYMENTS, &deployment).await;
    fleet.until_phase("Healthy").await;
}

/// Numbers of requests and watches of the controllers, by cluster.
type Counts = Vec<(String, RequestCounts)>;

fn counts(fleet: &Fleet) -> Counts {
    let count = |(name, cluster): (&String, &Arc<SimulatedCluster>)| {
        let counts = cluster.sim().with(|state| state.faults.counts(CLIENT));
        (name.clone(), counts)
    };
    fleet.clusters.iter().map(count).collect()
}

/// Outcome of a run.
struct Outcome {
    end: Vec<FinalState>,
    start: Counts,
    finish: Counts,
    late_writes: usize,
}

/// Time within which every kind is listed again.
const RELIST_TIME: Duration = Duration::from_mins(8);

async fn sleep(fleet: &mut Fleet, time: Duration) {
    for _ in 0..time.as_secs() {
        fleet.sleep(Duration::from_secs(1)).await;
        fleet.restart_if_crashed();
    }
}

fn perform(scenario: &Scenario, fault: Option<&InjectedFault>) -> Outcome {
    run(async {
        let mut fleet = Fleet::start(scenario.members).await;
        (scenario.set_up)(&mut fleet).await;
        let start = counts(&fleet);
        if let Some(fault) = fault {
            fleet.clusters[&fault.cluster].sim().add_fault(fault.rule(CLIENT));
        }
        (scenario.action)(&mut fleet).await;
        fleet.until_idle().await;
        let finish = counts(&fleet);
        // A missed event is recovered by the next list.
        sleep(&mut fleet, RELIST_TIME).await;
        fleet.until_idle().await;
        let before = fleet.writes();
        sleep(&mut fleet, RELIST_TIME).await;
        Outcome {
            end: fleet
                .clusters
                .values()
                .map(|cluster| final_state(cluster))
                .collect(),
            start,
            finish,
            late_writes: fleet.writes() - before,
        }
    })
}

fn final_state(cluster: &SimulatedCluster) -> FinalState {
    comparable_state(cluster.sim().with(|state| snapshot::dump(state)))
}

/// Returns the numbers of requests and watches of the action, by cluster.
fn action_counts(outcome: &Outcome) -> impl Iterator<Item = (&str, RequestCounts, RequestCounts)> {
    let pairs = outcome.start.iter().zip(&outcome.finish);
    pairs.map(|((cluster, start), (_, finish))| (cluster.as_str(), *start, *finish))
}

fn difference(baseline: &Outcome, run: &Outcome) -> Option<String> {
    let pairs = baseline.end.iter().zip(&run.end);
    if let Some(difference) = pairs.into_iter().find_map(|(one, other)| one.difference(other)) {
        return Some(format!("another final state: {difference}"));
    }
    (run.late_writes > 0).then(|| format!("{} writes after the end", run.late_writes))
}

fn check(name: &str) {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
    let baseline = perform(scenario, None);
    assert_eq!(baseline.late_writes, 0, "not idle without any fault");
    let all = action_counts(&baseline);
    let mut faults: Vec<InjectedFault> = all
        .flat_map(|(cluster, start, finish)| faults_between(cluster, start, finish))
        .collect();
    sample(&mut faults, 6, 19);
    let problems = find_problems(
        &faults,
        |fault| perform(scenario, Some(fault)),
        |run| difference(&baseline, run),
    );
    let calls = action_counts(&baseline).map(|(_, start, finish)| finish.requests - start.requests);
    assert_no_problems(name, calls.sum(), faults.len(), &problems);
}

macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })+
    };
}

tests! {
    install, replace_revision, shift_weights, leave_a_cluster, rolling, deletion,
    waves_over_five_clusters, rotate_a_token, another_clock,
}
