//! What rest costs: takes a settled mesh, lets things happen that change nothing for us, gives the number of calls and writes.

use std::time::Duration;

use serde_json::json;

use mainstay_sim::script::Script;
use mainstay_testkit::Random;

use crate::faults::run;
use crate::support::World;
use crate::support::at::{self, At};
use crate::support::calls;
use crate::support::made::{self, NEW};
use crate::support::world::plain_options;
use mainstay_harness::ClusterOptions;

/// A mesh with a tag and a workload that refers to it.
async fn mesh(world: &World) -> String {
    world
        .create(made::revision_based("default", NEW, 30, &["default"]))
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    let namespace = world.namespace("istio-injection=enabled").await;
    world.until_state(&at::tag("default"), "Healthy").await;
    world
        .create(made::pod(
            &namespace,
            "injected",
            "",
            "istio.io/rev=default-v1-29-1",
        ))
        .await;
    world.settle().await;
    namespace
}

/// Three full passes, each of which looks at every object.
#[test]
fn a_pass_that_finds_nothing_writes_and_reads_nothing() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        mesh(&world).await;
        let (mark, plans) = (world.mark(), world.promises.plans());
        world.pass(Duration::from_mins(31)).await;
        let seen = world.calls(&mark);
        let plans = world.promises.plans() - plans;
        println!(
            "quiet passes: {plans} plans, {} writes, {} reads",
            calls::writes(&seen).len(),
            calls::asked(&seen).len() - calls::writes(&seen).len()
        );
        assert!(plans >= 9, "only {plans} plans in three passes");
        assert_eq!(calls::asked(&seen), [""; 0]);
        world.end().await;
    });
}

#[test]
fn a_restart_with_nothing_to_do_writes_nothing() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        mesh(&world).await;
        let mark = world.mark();
        world.restart_operator().await;
        world.settle().await;
        let seen = world.calls(&mark);
        println!(
            "quiet restart: {} writes, {} reads beside its watches",
            calls::writes(&seen).len(),
            calls::asked(&seen).len() - calls::writes(&seen).len()
        );
        assert_eq!(calls::writes(&seen), [""; 0]);
        world.end().await;
    });
}

/// Plans are made while nothing is to be done; `prove operator` judges how long they took.
#[test]
fn planning_when_there_is_nothing_to_do() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        mesh(&world).await;
        world.promises.forget_times();
        world.pass(Duration::from_mins(61)).await;
        let (slowest, usual, plans) = world.promises.times();
        println!(
            "quiet planning: {:.3} ms the slowest, {:.3} ms the middle one, of {plans} plans",
            slowest.as_secs_f64() * 1e3,
            usual.as_secs_f64() * 1e3
        );
        assert!(plans > 0);
        world.end().await;
    });
}

#[test]
fn events_that_change_nothing_cost_no_call() {
    run(async {
        let world = World::simulated(&plain_options()).await;
        let namespace = mesh(&world).await;
        world
            .quiet("a hundred pods and namespaces", async |world| {
                for number in 0..100 {
                    let name = format!("p-{number}");
                    let pod = made::pod(&namespace, &name, "app=a", "istio.io/rev=default-v1-29-1");
                    world.create(pod).await;
                    let at = At::inside("Pod", &namespace, &name);
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

/// A day in which pods come and go, namespaces are relabelled and istiod restarts: what is written follows what changes for us, hour by
/// hour the same.
#[test]
fn a_day_of_churn_is_flat() {
    let options = ClusterOptions {
        seed: 24,
        ..plain_options()
    };
    let hours = run(async {
        let world = World::without_operator(&options).await;
        world.start_operator().await;
        let namespace = mesh(&world).await;
        let mut random = Random::new(24);
        let mut hours = Vec::new();
        for hour in 0..24 {
            let mark = world.mark();
            for minute in 0..12 {
                churn(&world, &namespace, hour * 12 + minute, &mut random).await;
                world.pass(Duration::from_mins(5)).await;
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
        "it grows: {hours:?}"
    );
}

/// Every five minutes: pods, labels that mean nothing to us; once an hour istiod restarts.
async fn churn(world: &World, namespace: &str, round: usize, random: &mut Random) {
    for number in 0..10 {
        let name = format!("churn-{round}-{number}");
        let pod = made::pod(
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
            world.delete(&At::inside("Pod", namespace, &name)).await;
        }
    }
    world.label(namespace, &format!("round=r{round}")).await;
    if round.is_multiple_of(12) {
        world.behave("istio-system", "istiod-default-v1-29-1", Script::default());
        crate::scenarios::revision::replace_pods(world, "istio-system", "app=istiod").await;
    }
}
