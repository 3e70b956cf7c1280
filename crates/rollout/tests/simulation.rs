//! Simulates the planner on a model of several clusters with random specs, faults and actions. Every write
//! is checked.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

#[path = "simulation/model.rs"]
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_api::Reason;
use mainstay_api::delivery::{ActionVerb, DeploymentPhase, Provider};
use mainstay_rollout::plan::{Action, Plan, Requeue, Step};
use mainstay_rollout::traffic::WEIGHTS;
use mainstay_testkit::{Random, case_count};
use model::{Faults, World};
use serde_json::{Value, json};

fn placement(rows: &[(&str, u32)]) -> Vec<Value> {
    let entry = |(cluster, replicas): &(&str, u32)| {
        if cluster.is_empty() {
            json!({"distribution": {"replicas": replicas}})
        } else {
            json!({"clusterSelector": {"name": cluster}, "distribution": {"replicas": replicas}})
        }
    };
    rows.iter().map(entry).collect()
}

/// Name of a revision, its replicas by cluster, and its weight.
type Row<'a> = (&'a str, &'a [(&'a str, u32)], u32);

fn spec(revisions: &[Row<'_>], strategy: &Value) -> Value {
    let targets: Vec<Value> = revisions
        .iter()
        .map(|(name, _, weight)| {
            json!({"revisionName": name, "componentName": "web", "port": 80, "weight": weight})
        })
        .collect();
    let revisions: Vec<Value> = revisions
        .iter()
        .map(|(name, rows, _)| json!({"revisionName": name, "placement": placement(rows)}))
        .collect();
    json!({
        "traffic": {"hosts": ["shop.example.com"], "drainSeconds": 5, "http": [{"weightedTargets": targets}]},
        "appRevisions": revisions,
        "strategy": strategy,
    })
}

const CLUSTERS: [&str; 4] = ["", "a", "b", "c"];

/// Number of simulations in a debug build. Each simulation plans and checks about a hundred states.
const SIMULATIONS: usize = 150;

/// Number of rollouts in waves in a debug build.
const WAVES: usize = 60;

/// Maximum number of states in which an abort is requested.
const ABORT_STATES: usize = 120;

/// Returns a random strategy for replacing one revision by another.
fn random_strategy(random: &mut Random) -> Value {
    let mut strategy = json!({
        "type": *random.pick(&["Direct", "Rolling", "Canary", "BlueGreen"]),
        "maxSurge": *random.pick(&["25%", "1", "100%", "50%", "0"]),
        "maxUnavailable": *random.pick(&["0", "1", "25%"]),
        "progressDeadlineSeconds": 100_000,
    });
    if strategy["maxSurge"] == "0" {
        strategy["maxUnavailable"] = json!("1");
    }
    let kind = strategy["type"].as_str().unwrap().to_owned();
    if kind == "Canary" {
        let all = [
            json!({"setReplicas": "10%"}),
            json!({"setWeight": 5}),
            json!({"setWeight": 25}),
            json!({"headerRoute": {"name": "t", "match": [{"headerName": "x", "exact": "y"}]}}),
            json!({"mirror": {"percent": 10}}),
            json!({"pause": {"durationSeconds": 7}}),
            json!({"setReplicas": "60%"}),
            json!({"setWeight": 60}),
            json!({"setWeight": 100}),
        ];
        let steps: Vec<Value> = all.into_iter().filter(|_| random.chance(1, 2)).collect();
        strategy["steps"] = json!(steps);
    }
    if kind == "BlueGreen" && random.chance(1, 2) {
        strategy["steps"] = json!([{"pause": {"durationSeconds": 5}}]);
    }
    if random.chance(1, 3) {
        strategy["waves"] = json!([
            {"name": "first", "clusterSelector": {"name": "a"}, "soakSeconds": 5},
            {"name": "rest", "maxConcurrentClusters": *random.pick(&["1", "50%", "100%"])},
        ]);
    }
    strategy
}

fn random_rows(random: &mut Random, clusters: usize) -> Vec<(&'static str, u32)> {
    let mut rows: Vec<(&str, u32)> = CLUSTERS[..clusters]
        .iter()
        .map(|name| (*name, random.below(6) as u32))
        .filter(|(_, replicas)| *replicas > 0)
        .collect();
    if rows.is_empty() {
        rows.push(("", 1 + random.below(4) as u32));
    }
    rows
}

fn random_world(seed: u64) -> (World, Vec<Value>) {
    let mut random = Random::new(seed);
    let clusters = 1 + random.below(4);
    let strategy = random_strategy(&mut random);
    let has_traffic = random.chance(4, 5);
    let make = |random: &mut Random, name: &str| {
        let rows = random_rows(random, clusters);
        let mut spec = spec(&[(name, &rows, 100)], &strategy);
        if !has_traffic {
            spec.as_object_mut().unwrap().remove("traffic");
        }
        spec
    };
    let specs: Vec<Value> = ["shop-v1", "shop-v2", "shop-v3"]
        .iter()
        .map(|name| make(&mut random, name))
        .collect();
    let mut world = World::new(seed, specs[0].clone(), &CLUSTERS[..clusters]);
    world.set_provider(*random.pick(&[Provider::Istio, Provider::GatewayApi]));
    (world, specs)
}

/// Returns the expected replicas by revision and cluster.
fn expected(spec: &Value) -> BTreeMap<(String, String), u32> {
    let mut expected = BTreeMap::new();
    for revision in spec["appRevisions"].as_array().unwrap() {
        for placement in revision["placement"].as_array().unwrap() {
            let cluster = placement["clusterSelector"]["name"].as_str().unwrap_or_default();
            let replicas = placement["distribution"]["replicas"].as_u64().unwrap();
            let key = (
                cluster.to_owned(),
                revision["revisionName"].as_str().unwrap().to_owned(),
            );
            expected.insert(key, replicas as u32);
        }
    }
    expected
}

/// Runs the rollout until it ends. Resumes and promotes pauses. Returns whether the rollout converged.
fn finish(world: &mut World) -> bool {
    for _ in 0..6 {
        let converged = world.run_until_idle(1500);
        if world.deployment.status.phase != DeploymentPhase::Paused {
            return converged;
        }
        world.request(ActionVerb::Resume);
        world.request(ActionVerb::Promote);
    }
    false
}

#[derive(Default)]
struct Totals {
    simulations: usize,
    plans: usize,
    writes: usize,
}

/// Runs a random simulation and checks P3, P4, P5, P6, P11 and that no object is leaked. Crashes,
/// conflicts, lost responses, partitions, actions and changes of the spec occur at random times.
fn simulate(seed: u64, defect: Option<fn(&mut Plan, &World)>) -> World {
    let (mut world, specs) = random_world(seed);
    if !world.run_until_idle(600) {
        world.record_violation("P6", "the first deployment does not converge".into());
    }
    world.defect = defect;
    let mut random = Random::new(seed ^ 0x5eed);
    if random.chance(2, 3) {
        world.faults = Faults {
            crash: random.below(6),
            conflict: random.below(10),
            lost_response: random.below(10),
            partition: random.below(4),
        };
    }
    let mut current = 1;
    world.set_spec(specs[1].clone());
    for _ in 0..random.below(60) {
        let (_, requeue) = world.reconcile();
        if requeue != Requeue::Immediately || random.chance(1, 4) {
            world.tick(1 + random.below(4) as i64);
        }
        match random.below(60) {
            0 => world.request(ActionVerb::Abort),
            1 => world.request(ActionVerb::Pause),
            2 => world.request(ActionVerb::Resume),
            3 => world.request(ActionVerb::Promote),
            4 => world.request(ActionVerb::PromoteFull),
            5 => world.request(ActionVerb::Retry),
            6 => {
                current = random.below(3);
                world.set_spec(specs[current].clone());
            }
            _ => {}
        }
    }
    world.end_faults();
    if !finish(&mut world) {
        let rollout = world.deployment.status.rollout.clone();
        let detail = rollout.map(|rollout| (rollout.group, rollout.step, rollout.direction));
        let detail = format!(
            "no convergence: {detail:?} {:?} of {:?}",
            world.replicas_by_revision(),
            specs[current]["strategy"]
        );
        world.record_violation("P6", detail);
        return world;
    }
    world.check_inventories();
    if world.deployment.status.phase == DeploymentPhase::Healthy
        && world.replicas_by_revision() != expected(&specs[current])
    {
        let detail = format!(
            "{:?} instead of {:?}",
            world.replicas_by_revision(),
            expected(&specs[current])
        );
        world.record_violation("P6", detail);
    }
    if !matches!(
        world.deployment.status.phase,
        DeploymentPhase::Healthy | DeploymentPhase::Aborted
    ) {
        let detail = format!("phase {:?}", world.deployment.status.phase);
        world.record_violation("P6", detail);
    }
    world
}

#[test]
fn rollouts_survive_faults() {
    let mut totals = Totals::default();
    for seed in 0..case_count(SIMULATIONS) as u64 {
        let world = simulate(seed, None);
        assert!(
            world.violations.is_empty(),
            "seed {seed}: {:#?}",
            world.violations
        );
        totals.simulations += 1;
        totals.plans += world.plans;
        totals.writes += world.writes;
    }
    for property in ["P3", "P5", "P6", "P11"] {
        println!("rollout property {property}: {} cases", totals.simulations);
    }
    println!(
        "rollout simulation: seeds 0 to {}, {} simulations, {} states planned, {} writes checked",
        totals.simulations - 1,
        totals.simulations,
        totals.plans,
        totals.writes
    );
}

/// Seeds that found a defect. 1750: in a cluster in which the first step starts no pod of the new revision, a
/// route of an interrupted rollout blocked that step.
const STORED_SEEDS: [u64; 1] = [1750];

#[test]
fn stored_seeds_survive_faults() {
    for seed in STORED_SEEDS {
        let world = simulate(seed, None);
        assert!(
            world.violations.is_empty(),
            "seed {seed}: {:#?}",
            world.violations
        );
    }
}

/// P8: after an abort in any state of a rollout, the source is restored, and no cluster ever has fewer
/// ready pods than before the rollout.
#[test]
fn an_abort_in_every_state_keeps_capacity() {
    let mut states = 0;
    for kind in ["Direct", "Rolling", "Canary", "BlueGreen"] {
        let mut strategy = json!({"type": kind, "maxSurge": "50%", "maxUnavailable": 0});
        if kind == "Canary" {
            strategy["steps"] =
                json!([{"setWeight": 10}, {"setWeight": 50}, {"pause": {"durationSeconds": 3}}]);
        }
        let rows: &[(&str, u32)] = &[("", 2), ("a", 4)];
        let specs = [
            spec(&[("shop-v1", rows, 100)], &strategy),
            spec(&[("shop-v2", rows, 100)], &strategy),
        ];
        for rounds in 0..ABORT_STATES {
            let mut world = World::new(7, specs[0].clone(), &["", "a"]);
            assert!(world.run_until_idle(300));
            let before = world.replicas_by_revision();
            world.min_ready_pods = rows
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect();
            world.set_spec(specs[1].clone());
            for _ in 0..rounds {
                let (_, requeue) = world.reconcile();
                if requeue != Requeue::Immediately {
                    world.tick(1);
                }
            }
            let is_over = world.replicas_by_revision() == expected(&specs[1])
                && world.deployment.status.phase == DeploymentPhase::Healthy;
            world.request(if is_over {
                ActionVerb::Rollback
            } else {
                ActionVerb::Abort
            });
            assert!(
                finish(&mut world),
                "{kind} after {rounds} rounds: {:?}",
                world.replicas_by_revision()
            );
            world.check_inventories();
            assert!(
                world.violations.is_empty(),
                "{kind}, {rounds}: {:#?}",
                world.violations
            );
            assert_eq!(
                world.replicas_by_revision(),
                before,
                "{kind} after {rounds} rounds"
            );
            assert_eq!(world.deployment.status.phase, DeploymentPhase::Aborted);
            states += 1;
            if is_over {
                break;
            }
        }
    }
    println!("rollout aborts: {states} states");
}

/// The controllers restart while a cluster is unreachable, and the spec changes before they can read the
/// cluster again: the pods in it count as the source of the rollout.
#[test]
fn a_restart_during_an_outage_keeps_capacity() {
    for kind in ["Direct", "Rolling", "Canary", "BlueGreen"] {
        let strategy = json!({"type": kind, "maxSurge": "50%", "maxUnavailable": 0});
        let rows: &[(&str, u32)] = &[("", 2), ("a", 4)];
        let specs = ["shop-v1", "shop-v2"].map(|name| spec(&[(name, rows, 100)], &strategy));
        let mut world = World::new(11, specs[0].clone(), &["", "a"]);
        assert!(world.run_until_idle(300));
        let before = world.replicas_by_revision();
        world.min_ready_pods = rows
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        world.disconnect("a", 30);
        world.restart_controller();
        world.reconcile();
        assert_eq!(
            world.deployment.status.placement[0].clusters.len(),
            rows.len(),
            "{kind}: the status keeps the unreachable cluster"
        );
        assert_eq!(world.replicas_by_revision(), before);
        world.set_spec(specs[1].clone());
        world.reconcile();
        assert!(finish(&mut world), "{kind}");
        assert!(world.violations.is_empty(), "{kind}: {:#?}", world.violations);
        assert_eq!(world.replicas_by_revision(), expected(&specs[1]), "{kind}");
    }
}

/// Number of aborts at random times in a debug build.
const ABORTS: usize = 30;

/// P8 for random specs, strategies and times of the abort.
#[test]
fn aborts_of_random_rollouts_keep_capacity() {
    let cases = case_count(ABORTS) as u64;
    for seed in 0..cases {
        let mut random = Random::new(seed ^ 0xab0);
        let clusters = 1 + random.below(4);
        let rows = random_rows(&mut random, clusters);
        let mut strategy = random_strategy(&mut random);
        strategy["maxUnavailable"] = json!(0);
        strategy["maxSurge"] = json!(*random.pick(&["1", "25%", "50%", "100%"]));
        let specs = ["shop-v1", "shop-v2"].map(|name| spec(&[(name, &rows, 100)], &strategy));
        let mut world = World::new(seed, specs[0].clone(), &CLUSTERS[..clusters]);
        assert!(world.run_until_idle(600), "{seed}");
        let before = world.replicas_by_revision();
        let min_ready_pods = rows.iter().map(|(name, count)| ((*name).to_owned(), *count));
        world.min_ready_pods = min_ready_pods.collect();
        world.set_spec(specs[1].clone());
        for _ in 0..random.below(80) {
            let (_, requeue) = world.reconcile();
            if requeue != Requeue::Immediately {
                world.tick(1);
            }
        }
        let rollout = world.deployment.status.rollout.clone();
        let is_over = rollout.is_some_and(|rollout| rollout.completed_at.is_some());
        world.request(if is_over {
            ActionVerb::Rollback
        } else {
            ActionVerb::Abort
        });
        assert!(
            finish(&mut world),
            "{seed}: {:?} {strategy}",
            world.replicas_by_revision()
        );
        world.check_inventories();
        assert!(
            world.violations.is_empty(),
            "{seed} {strategy}: {:#?}",
            world.violations
        );
        assert_eq!(world.replicas_by_revision(), before, "{seed} {strategy}");
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Aborted, "{seed}");
    }
    println!("rollout property P8: {cases} cases");
}

/// A rollout to a broken revision is rolled back at the deadline.
#[test]
fn a_broken_revision_is_rolled_back() {
    for kind in ["Direct", "Rolling", "Canary", "BlueGreen"] {
        let strategy = json!({"type": kind, "onFailure": "Rollback", "progressDeadlineSeconds": 60});
        let rows: &[(&str, u32)] = &[("", 2), ("a", 4)];
        let mut world = World::new(7, spec(&[("shop-v1", rows, 100)], &strategy), &["", "a"]);
        assert!(world.run_until_idle(300));
        let before = world.replicas_by_revision();
        world.min_ready_pods = rows
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        world.behavior.broken.insert("shop-v2".into());
        world.set_spec(spec(&[("shop-v2", rows, 100)], &strategy));
        assert!(world.run_until_idle(1000));
        world.check_inventories();
        assert!(world.violations.is_empty(), "{kind}: {:#?}", world.violations);
        assert_eq!(world.replicas_by_revision(), before, "{kind}");
        let failure = world.deployment.status.rollout.clone().unwrap().failure;
        assert_eq!(failure, Reason::ProgressDeadlineExceeded);
    }
}

/// An unreachable cluster is not changed and does not block others. It is updated when it becomes
/// reachable.
#[test]
fn an_unreachable_cluster_does_not_block_others() {
    for kind in ["Direct", "Rolling", "Canary", "BlueGreen"] {
        let strategy = json!({"type": kind, "maxSurge": 1});
        let rows: &[(&str, u32)] = &[("", 2), ("a", 3), ("b", 4)];
        let mut world = World::new(3, spec(&[("shop-v1", rows, 100)], &strategy), &["", "a", "b"]);
        assert!(world.run_until_idle(300));
        world.disconnect("b", 100_000);
        let untouched = world.objects()["b"].clone();
        world.set_spec(spec(&[("shop-v2", rows, 100)], &strategy));
        for _ in 0..400 {
            world.reconcile();
            world.tick(1);
        }
        let layout = world.replicas_by_revision();
        assert_eq!(layout[&(String::new(), "shop-v2".to_owned())], 2, "{kind}");
        assert_eq!(layout[&("a".to_owned(), "shop-v2".to_owned())], 3, "{kind}");
        assert_eq!(world.objects()["b"], untouched, "{kind}");
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Degraded, "{kind}");
        world.end_faults();
        assert!(world.run_until_idle(600), "{kind}");
        world.check_inventories();
        assert!(world.violations.is_empty(), "{kind}: {:#?}", world.violations);
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy, "{kind}");
        assert_eq!(
            world.replicas_by_revision()[&("b".to_owned(), "shop-v2".to_owned())],
            4,
            "{kind}"
        );
    }
}

fn waves(seed: u64, limit: &str) -> World {
    let mut random = Random::new(seed);
    let strategy = json!({
        "type": *random.pick(&["Direct", "Rolling", "Canary"]), "maxSurge": "50%",
        "waves": [{"name": "all", "maxConcurrentClusters": limit, "soakSeconds": random.below(5)}],
    });
    let rows: Vec<(&str, u32)> = CLUSTERS
        .iter()
        .map(|name| (*name, 1 + random.below(4) as u32))
        .collect();
    let mut world = World::new(seed, spec(&[("shop-v1", &rows, 100)], &strategy), &CLUSTERS);
    assert!(world.run_until_idle(600));
    world.set_spec(spec(&[("shop-v2", &rows, 100)], &strategy));
    world
}

/// P9: the number of clusters that change at the same time never exceeds the limit of the wave.
#[test]
fn waves_limit_concurrent_clusters() {
    let mut plans = 0;
    let limits = [("1", 1), ("2", 2), ("50%", 2)];
    let cases = case_count(WAVES) as u64;
    for seed in 0..cases {
        let (limit, number) = limits[seed as usize % limits.len()];
        let mut world = waves(seed, limit);
        world.concurrency = Some(number);
        assert!(world.run_until_idle(1500), "{seed} {limit}");
        assert!(
            world.violations.is_empty(),
            "{seed} {limit}: {:#?}",
            world.violations
        );
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy);
        plans += world.plans;
    }
    println!("rollout property P9: {cases} cases");
    println!("rollout waves: {plans} states");
}

/// Deletion removes all objects that were created, and no others. It does not need the revisions.
#[test]
fn deletion_removes_all_created_objects() {
    let mut with_objects = 0;
    for seed in 0..40 {
        let (mut world, specs) = random_world(seed);
        world.set_spec(specs[1].clone());
        for _ in 0..seed {
            world.reconcile();
            world.tick(1);
        }
        with_objects += usize::from(world.objects().values().any(|objects| !objects.is_empty()));
        if seed % 2 == 1 {
            world.revisions.clear();
        }
        world.delete_deployment();
        world.run_until_idle(100);
        let left: Vec<_> = world.objects().into_values().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(is_deleted(&world));
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
    }
    assert!(with_objects >= 30, "{with_objects}");
}

/// Returns a deployed world with these settings of `spec.deletion`.
fn deletable(settings: &Value) -> World {
    let rows: &[(&str, u32)] = &[("", 2), ("a", 3), ("b", 4)];
    let mut spec = spec(&[("shop-v1", rows, 100)], &json!({"type": "Direct"}));
    spec["deletion"] = settings.clone();
    let mut world = World::new(7, spec, &["", "a", "b"]);
    assert!(world.run_until_idle(300));
    assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy);
    world
}

fn is_deleted(world: &World) -> bool {
    world.deployment.metadata.finalizers.is_empty()
}

/// With the policy `Orphan`, all objects are kept. Kubernetes would delete those that the deployment owns.
#[test]
fn an_orphaning_deletion_keeps_and_releases_all_objects() {
    let mut world = deletable(&json!({"policy": "Orphan"}));
    let before = world.objects();
    let owned = |world: &World| {
        let objects = world
            .clusters
            .values()
            .flat_map(|cluster| cluster.objects.values());
        objects
            .filter(|object| !object.observed.owners.is_empty())
            .count()
    };
    assert_eq!(owned(&world), before[""].len(), "the objects of the host cluster");
    world.delete_deployment();
    assert!(world.run_until_idle(100));
    assert!(is_deleted(&world));
    assert_eq!(world.objects(), before);
    assert_eq!(owned(&world), 0);
    for cluster in world.clusters.values() {
        assert!(cluster.inventory.objects.is_empty() && cluster.inventory.version.is_none());
    }
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

/// Returns the messages of the next plan about forgotten objects.
fn forgotten(world: &mut World) -> Vec<String> {
    let planned = mainstay_rollout::plan(&world.snapshot());
    let messages = planned.steps().filter_map(|step| match &step.action {
        Action::Event { message, .. } if step.reason == Reason::ObjectsForgotten => Some(message.clone()),
        _ => None,
    });
    messages.collect()
}

/// A deletion waits for an unreachable cluster. If `forgetAfterSeconds` is set, it forgets the objects there
/// after that time and lists them.
#[test]
fn a_deletion_forgets_unreachable_clusters_after_the_configured_time() {
    let settings = json!({"unreachableClusters": {"forgetAfterSeconds": 300}});
    for (settings, end) in [(json!({}), None), (settings, Some(300))] {
        let mut world = deletable(&settings);
        let lost = world.objects()["b"].clone();
        world.disconnect("b", 1_000_000);
        world.delete_deployment();
        let (mut ended, mut messages) = (None, Vec::new());
        for second in 0..400 {
            for _ in 0..4 {
                messages.extend(forgotten(&mut world));
                world.reconcile();
            }
            if ended.is_none() && is_deleted(&world) {
                ended = Some(second);
            }
            world.tick(1);
        }
        assert_eq!(ended, end);
        let left = world.objects();
        assert!(left[""].is_empty() && left["a"].is_empty(), "{left:?}");
        assert_eq!(left["b"], lost);
        assert_eq!(messages.is_empty(), end.is_none(), "{messages:?}");
        for message in messages {
            assert!(message.starts_with("cluster \"b\" is unreachable; objects not deleted: "));
            assert!(message.contains("Deployment default/shop-v1-web"), "{message}");
        }
        if end.is_none() {
            world.end_faults();
            assert!(world.run_until_idle(100));
            assert!(is_deleted(&world));
            assert!(world.objects()["b"].is_empty());
        }
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
    }
}

/// A failed analysis restores the stable revision. An analysis without data pauses the rollout.
#[test]
fn a_failed_analysis_rolls_back_and_missing_data_pauses() {
    let run = |metric: Option<f64>, on_no_data: &str| {
        let strategy = json!({
            "type": "Canary", "onFailure": "Rollback",
            "steps": [{"setWeight": 20}, {"analysis": {"templateName": "rate"}}],
        });
        let rows: &[(&str, u32)] = &[("", 4)];
        let mut world = World::new(5, spec(&[("shop-v1", rows, 100)], &strategy), &[""]);
        let template = json!({"metadata": {"name": "rate"}, "spec": {"metrics": [{
            "name": "rate", "count": 3, "intervalSeconds": 10, "onNoData": on_no_data, "success": {"min": 0.99},
            "prometheus": {"address": "http://p", "query": "rate{revision=\"{{revision}}\"}"},
        }]}});
        world
            .templates
            .insert("rate".into(), serde_json::from_value(template).unwrap());
        assert!(world.run_until_idle(300));
        world.behavior.metric = metric;
        world.set_spec(spec(&[("shop-v2", rows, 100)], &strategy));
        for _ in 0..400 {
            let (_, requeue) = world.reconcile();
            if requeue != Requeue::Immediately {
                world.tick(1);
            }
        }
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
        world.deployment.status.phase
    };
    assert_eq!(run(Some(1.0), "Pause"), DeploymentPhase::Healthy);
    assert_eq!(run(Some(0.5), "Pause"), DeploymentPhase::Aborted);
    assert_eq!(run(None, "Pause"), DeploymentPhase::Paused);
    assert_eq!(run(Some(f64::NAN), "Pause"), DeploymentPhase::Paused);
    assert_eq!(run(None, "Pass"), DeploymentPhase::Healthy);
    assert_eq!(run(None, "Fail"), DeploymentPhase::Aborted);
}

/// Planted defects, with the property that must detect each of them.
type Defect = (&'static str, fn(&mut Plan, &World));

const DEFECTS: &[Defect] = &[
    ("P3", |plan, _| change_scales(plan, |replicas| replicas * 3 + 4)),
    ("P3", |plan, _| change_scales(plan, |replicas| replicas / 4)),
    ("P4", |plan, _| change_routes(plan)),
    ("P5", |plan, _| {
        let reason = Reason::StatusChanged;
        let message = "again".into();
        let action = Action::Event {
            is_warning: false,
            message,
        };
        plan.finish.push(Step { action, reason });
    }),
    ("P6", |plan, _| {
        for steps in plan.clusters.values_mut() {
            steps.retain(|step| !matches!(step.action, Action::Scale(_)));
        }
    }),
    ("P11", |plan, _| {
        plan.prepare
            .retain(|step| !matches!(step.action, Action::WriteInventory(_)));
    }),
];

fn change_scales(plan: &mut Plan, change: fn(u32) -> u32) {
    for step in plan.clusters.values_mut().flatten() {
        if let Action::Scale(scale) = &mut step.action {
            scale.replicas = change(scale.replicas);
        }
    }
}

/// Changes all routes to refer to a revision that is not deployed.
fn change_routes(plan: &mut Plan) {
    for step in plan.clusters.values_mut().flatten() {
        let Action::Apply(apply) = &mut step.action else {
            continue;
        };
        let annotations = apply.manifest.object["metadata"]["annotations"].clone();
        if annotations.get(WEIGHTS).is_some() {
            let mut manifest = (*apply.manifest).clone();
            let text = r#"{"shop-v1-web":50,"shop-v2-web":50,"shop-v9-web":50}"#;
            manifest.object["metadata"]["annotations"][WEIGHTS] = json!(text);
            apply.manifest = Arc::new(manifest);
        }
    }
}

#[test]
fn every_property_detects_its_defect() {
    for (number, (property, defect)) in DEFECTS.iter().enumerate() {
        let found = (0..40).find(|seed| {
            let world = simulate(*seed, Some(*defect));
            // If a plan never becomes empty, the rollout never ends, which violates P6.
            let property = if *property == "P5" { "P6" } else { property };
            world
                .violations
                .iter()
                .any(|violation| violation.property == property)
        });
        assert!(found.is_some(), "defect {number} of {property} is not caught");
    }
    // P8: an aborted rollout removes the target first.
    let strategy = json!({"type": "BlueGreen"});
    let rows: &[(&str, u32)] = &[("", 3)];
    let mut world = World::new(1, spec(&[("shop-v1", rows, 100)], &strategy), &[""]);
    assert!(world.run_until_idle(300));
    world.set_spec(spec(&[("shop-v2", rows, 100)], &strategy));
    assert!(world.run_until_idle(300));
    world.min_ready_pods.insert(String::new(), 3);
    world.defect = Some(|plan, _| change_scales(plan, |_| 0));
    world.request(ActionVerb::Rollback);
    for _ in 0..60 {
        world.reconcile();
        world.tick(1);
    }
    // The defect scales the growing revision to 0, so that the rollback never completes. The minimum is
    // violated when v2 is scaled down.
    world.defect = Some(|plan, world| {
        for (cluster, steps) in &mut plan.clusters {
            let keys: Vec<_> = world.objects()[cluster].iter().cloned().collect();
            for key in keys.into_iter().filter(|key| key.kind == "Deployment") {
                steps.extend(world.scale_step(cluster, &key, 0));
            }
        }
    });
    world.request(ActionVerb::Retry);
    for _ in 0..60 {
        world.reconcile();
        world.tick(1);
    }
    assert!(
        world
            .violations
            .iter()
            .any(|violation| violation.property == "P8")
    );
    // P9: two clusters change at the same time, but only one is allowed.
    let mut world = waves(1, "2");
    world.concurrency = Some(1);
    world.run_until_idle(1500);
    assert!(
        world
            .violations
            .iter()
            .any(|violation| violation.property == "P9")
    );
    println!("rollout controls: {} defects, all caught", DEFECTS.len() + 2);
}
