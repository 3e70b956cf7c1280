//! Tests the calls and writes of the operator while no relevant object changes.

use std::time::Duration;

use serde_json::json;

use mainstay_sim::script::Script;
use mainstay_testkit::Random;

use crate::support::World;
use crate::support::calls;
use crate::support::fixtures::{self, NEW};
use crate::support::path::{self, ObjectPath};
use crate::support::virtual_time::run;
use crate::support::world::plain_options;
use mainstay_harness::ClusterOptions;

/// Creates a mesh with a tag and a pod that refers to it.
async fn create_mesh(world: &World) -> String {
    world
        .create(fixtures::revision_based("default", NEW, 30, &["default"]))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let namespace = world.namespace("istio-injection=enabled").await;
    world.until_state(&path::tag("default"), "Healthy").await;
    world
        .create(fixtures::pod(
            &namespace,
            "injected",
            "",
            "istio.io/rev=default-v1-29-1",
        ))
        .await;
    world.settle().await;
    namespace
}

/// The test includes three full passes, each of which plans every object.
#[test]
fn a_full_pass_without_changes_reads_and_writes_nothing() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        create_mesh(&world).await;
        let (mark, plans) = (world.mark(), world.plan_checks.plans());
        world.sleep(Duration::from_mins(31)).await;
        let seen = world.calls(&mark);
        let plans = world.plan_checks.plans() - plans;
        println!(
            "quiet passes: {plans} plans, {} writes, {} reads",
            calls::writes(&seen).len(),
            calls::requests(&seen).len() - calls::writes(&seen).len()
        );
        assert!(plans >= 9, "only {plans} plans in three passes");
        assert_eq!(calls::requests(&seen), [""; 0]);
        world.end().await;
    });
}

#[test]
fn a_restart_with_nothing_to_do_writes_nothing() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        create_mesh(&world).await;
        let mark = world.mark();
        world.restart_operator().await;
        world.settle().await;
        let seen = world.calls(&mark);
        println!(
            "quiet restart: {} writes, {} reads beside its watches",
            calls::writes(&seen).len(),
            calls::requests(&seen).len() - calls::writes(&seen).len()
        );
        assert_eq!(calls::writes(&seen), [""; 0]);
        world.end().await;
    });
}

/// Prints the planning times, which `cargo xtask prove operator` checks.
#[test]
fn planning_without_changes() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        create_mesh(&world).await;
        world.plan_checks.reset_times();
        world.sleep(Duration::from_mins(61)).await;
        let times = world.plan_checks.times();
        println!(
            "quiet planning: {:.3} ms the slowest, {:.3} ms the middle one, of {} plans",
            times.slowest.as_secs_f64() * 1e3,
            times.median.as_secs_f64() * 1e3,
            times.plans
        );
        assert!(times.plans > 0);
        world.end().await;
    });
}

#[test]
fn events_that_change_nothing_cause_no_call() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        let namespace = create_mesh(&world).await;
        world
            .assert_no_calls("a hundred pods and namespaces", async |world| {
                for number in 0..100 {
                    let name = format!("p-{number}");
                    let pod = fixtures::pod(&namespace, &name, "app=a", "istio.io/rev=default-v1-29-1");
                    world.create(pod).await;
                    let at = ObjectPath::namespaced("Pod", &namespace, &name);
                    world
                        .patch(
                            &at,
                            json!({"metadata": {"labels": {"round": number.to_string()}}}),
                        )
                        .await;
                    world.label(&namespace, &format!("round=r{number}")).await;
                    if number % 2 == 0 {
                        world.delete(&at).await;
                    }
                }
            })
            .await;
        println!("quiet events: 100 pods, 100 pod labels, 100 namespace labels, 50 deletions: 0 calls");
        world.end().await;
    });
}

/// Simulates a day in which pods are created and deleted, namespaces are relabeled and istiod restarts.
#[test]
fn writes_per_hour_stay_constant_during_churn() {
    let options = ClusterOptions {
        seed: 24,
        ..plain_options()
    };
    let hours = run(async {
        let world = World::without_operator(&options).await;
        world.start_operator().await;
        let namespace = create_mesh(&world).await;
        let mut random = Random::new(24);
        let mut hours = Vec::new();
        for hour in 0..24 {
            let mark = world.mark();
            for minute in 0..12 {
                churn(&world, &namespace, hour * 12 + minute, &mut random).await;
                world.sleep(Duration::from_mins(5)).await;
            }
            hours.push(calls::writes(&world.calls(&mark)).len());
        }
        world.end().await;
        hours
    });
    let (least, most) = (hours.iter().min().unwrap(), hours.iter().max().unwrap());
    println!("quiet day: {hours:?} writes per hour");
    assert!(most - least <= 4 && *most <= 20, "{hours:?}");
    let half = |hours: &[usize]| hours.iter().sum::<usize>();
    assert!(
        half(&hours[12..]) <= half(&hours[..12]) + 8,
        "writes per hour increase: {hours:?}"
    );
}

/// Creates and deletes pods, changes irrelevant labels, and restarts istiod once an hour.
async fn churn(world: &World, namespace: &str, round: usize, random: &mut Random) {
    for number in 0..10 {
        let name = format!("churn-{round}-{number}");
        let pod = fixtures::pod(
            namespace,
            &name,
            &format!("app=a{}", random.below(5)),
            "istio.io/rev=default-v1-29-1",
        );
        world.create(pod).await;
    }
    if round > 0 {
        for number in 0..10 {
            let name = format!("churn-{}-{number}", round - 1);
            world
                .delete(&ObjectPath::namespaced("Pod", namespace, &name))
                .await;
        }
    }
    world.label(namespace, &format!("round=r{round}")).await;
    if round.is_multiple_of(12) {
        world.set_script("istio-system", "istiod-default-v1-29-1", Script::default());
        crate::scenarios::steps::replace_pods(world, "istio-system", "app=istiod").await;
    }
}
