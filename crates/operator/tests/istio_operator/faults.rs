//! The fault matrix. Runs each scenario with a fault at every call of the controller, and compares the
//! result with the run without faults.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use mainstay_api::istio_operator::ISTIO_VERSION;
use mainstay_harness::SimulatedCluster;
use mainstay_sim::fault::RequestCounts;
use mainstay_sim::snapshot;
use serde_json::{Value, json};

use crate::final_state::{FinalState, masked, with_sorted_conditions};
use crate::sim_faults::{InjectedFault, assert_no_problems, faults_between, find_problems, sample};
use crate::virtual_time::run;
use crate::world::{CLIENT, World, catalog, cluster_options, operator, operator_path, path, proxy};

type Steps = for<'a> fn(&'a mut World) -> LocalBoxFuture<'a, ()>;

/// A scenario with its initial state and the action that runs with faults.
struct Scenario {
    name: &'static str,
    set_up: Steps,
    action: Steps,
}

macro_rules! steps {
    ($world:ident => $body:block) => {
        |$world: &mut World| async move { $body }.boxed_local()
    };
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "install",
        set_up: steps!(_world => {}),
        action: steps!(world => { create_healthy(world, "minimal").await; }),
    },
    Scenario {
        name: "change",
        set_up: steps!(world => { create_healthy(world, "minimal").await; }),
        action: steps!(world => {
            let change = json!({"spec": {"components": {"cni": {"enabled": true}}, "meshConfig": {"accessLogFile": "/dev/stdout"}}});
            world.patch(&operator_path("mesh"), change).await;
            world.until_state("mesh", "HEALTHY").await;
        }),
    },
    Scenario {
        name: "upgrade",
        set_up: steps!(world => {
            let mut old = operator("mesh", json!({"profile": "minimal"}));
            old["metadata"]["annotations"] = json!({ISTIO_VERSION: "1.28.2"});
            world.create(&old).await.unwrap();
            world.until_state("mesh", "HEALTHY").await;
        }),
        action: steps!(world => {
            let upgrade = json!({"metadata": {"annotations": {ISTIO_VERSION: null}}});
            world.patch(&operator_path("mesh"), upgrade).await;
            let version = world.catalog.default_version().unwrap().to_string();
            world.until(&operator_path("mesh"), "the default version", |object| {
                let status = &object["status"];
                let has_version = |component: &str| status["componentStatus"][component]["version"] == version;
                status["status"] == "HEALTHY" && ["Base", "Pilot"].into_iter().all(has_version)
            }).await;
        }),
    },
    Scenario {
        name: "prune",
        set_up: steps!(world => {
            world.create(&operator("mesh", json!({"profile": "minimal", "components": {"cni": {"enabled": true}}}))).await.unwrap();
            world.until_state("mesh", "HEALTHY").await;
        }),
        action: steps!(world => {
            world.patch(&operator_path("mesh"), json!({"spec": {"components": {"cni": {"enabled": false}}}})).await;
            world.until_state("mesh", "HEALTHY").await;
        }),
    },
    Scenario {
        name: "drift",
        set_up: steps!(world => { create_healthy(world, "minimal").await; }),
        action: steps!(world => {
            let istiod = path("api/v1", "services", "istiod");
            world.delete(&istiod).await;
            world.patch(&path("apis/apps/v1", "deployments", "istiod"),
                json!({"spec": {"template": {"metadata": {"annotations": {"prometheus.io/port": "1"}}}}})).await;
            world.until(&istiod, "the Service", |object| !object.is_null()).await;
            world.until(&path("apis/apps/v1", "deployments", "istiod"), "the template", |object|
                object["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == "15014").await;
            world.until_state("mesh", "HEALTHY").await;
        }),
    },
    Scenario {
        name: "deletion",
        set_up: steps!(world => { create_healthy(world, "minimal").await; }),
        action: steps!(world => {
            world.create(&proxy("web", "default")).await.unwrap();
            world.delete(&operator_path("mesh")).await;
            world.until(&operator_path("mesh"), "ACTION_REQUIRED", |object| object["status"]["status"] == "ACTION_REQUIRED").await;
            world.send("DELETE", "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0", None).await.unwrap();
            world.until_gone(&operator_path("mesh")).await;
        }),
    },
    Scenario {
        name: "handover",
        set_up: steps!(world => {
            create_healthy(world, "minimal").await;
            world.create(&operator("other", json!({"profile": "minimal", "revision": "canary"}))).await.unwrap();
            world.until_state("other", "HEALTHY").await;
        }),
        action: steps!(world => {
            world.delete(&operator_path("mesh")).await;
            world.until_gone(&operator_path("mesh")).await;
            world.until(&operator_path("other"), "the shared objects", |object|
                object["status"]["componentStatus"]["Base"]["status"] == "HEALTHY").await;
            world.until_state("other", "HEALTHY").await;
        }),
    },
];

async fn create_healthy(world: &mut World, profile: &str) {
    world
        .create(&operator("mesh", json!({"profile": profile})))
        .await
        .unwrap();
    world.until_state("mesh", "HEALTHY").await;
}

/// Returns the initial state of all runs of a scenario.
fn prepare(scenario: &Scenario) -> Vec<Value> {
    run(async {
        let mut world = World::simulated().await;
        (scenario.set_up)(&mut world).await;
        world.until_idle().await;
        world.kill();
        world.simulator().sim().with(|state| snapshot::dump(state))
    })
}

/// Returns the numbers of requests and watches of the controller.
fn counts(world: &World) -> RequestCounts {
    world.simulator().sim().with(|state| state.faults.counts(CLIENT))
}

/// Outcome of a run.
struct Outcome {
    end: FinalState,
    calls: RequestCounts,
    late_writes: usize,
}

/// Time within which every kind is listed and every resource is checked again.
const RELIST_TIME: Duration = Duration::from_mins(15);

fn perform(scenario: &Scenario, state: &[Value], fault: Option<&InjectedFault>) -> Outcome {
    run(async {
        let cluster = SimulatedCluster::from_objects(catalog(), &cluster_options(), state.to_vec()).unwrap();
        let mut world = World::from_simulated(cluster);
        if let Some(fault) = fault {
            world.simulator().sim().add_fault(fault.rule(CLIENT));
        }
        world.start();
        world.sleep(Duration::from_secs(5)).await;
        (scenario.action)(&mut world).await;
        world.until_idle().await;
        let calls = counts(&world);
        // A missed event is recovered by the next list.
        if fault.is_some() {
            world.sleep(RELIST_TIME).await;
        }
        let before = world.writes();
        world.sleep(Duration::from_mins(12)).await;
        Outcome {
            end: final_state(&world),
            calls,
            late_writes: world.writes() - before,
        }
    })
}

fn final_state(world: &World) -> FinalState {
    let mut objects = world.simulator().sim().with(|state| snapshot::dump(state));
    for object in &mut objects {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
    }
    masked(objects.into_iter().map(with_sorted_conditions).collect())
}

fn difference(baseline: &Outcome, run: &Outcome) -> Option<String> {
    if let Some(difference) = baseline.end.difference(&run.end) {
        return Some(format!("another final state: {difference}"));
    }
    (run.late_writes > 0).then(|| format!("{} writes after the end", run.late_writes))
}

fn check(name: &str) {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
    let state = prepare(scenario);
    let baseline = perform(scenario, &state, None);
    assert_eq!(baseline.late_writes, 0, "not idle without any fault");
    let mut faults = faults_between("", RequestCounts::default(), baseline.calls);
    sample(&mut faults, 1, 18);
    let problems = find_problems(
        &faults,
        |fault| perform(scenario, &state, Some(fault)),
        |run| difference(&baseline, run),
    );
    println!(
        "controller faults: {} run, {} as without faults",
        faults.len(),
        faults.len() - problems.len()
    );
    assert_no_problems(name, baseline.calls.requests, faults.len(), &problems);
}

macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })+
    };
}

tests! { install, change, upgrade, prune, drift, deletion, handover }
