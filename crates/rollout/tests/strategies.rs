//! Tests the reactions of strategies on the model of clusters: failures, pauses, scopes, analyses and
//! actions.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    dead_code,
    reason = "helpers of tests"
)]

#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/shop.rs"]
mod shop;

use mainstay_api::delivery::{
    ActionResult, ActionVerb, DeploymentAction, DeploymentPhase, PauseCause, RolloutStatus,
};
use mainstay_api::{ConditionType, Reason};
use mainstay_rollout::plan::Requeue;
use model::World;
use serde_json::{Value, json};
use shop::{deployed, in_clusters, replicas, seconds_until, spec};

fn phase(world: &World) -> DeploymentPhase {
    world.deployment.status.phase
}

fn rollout(world: &World) -> &RolloutStatus {
    world.deployment.status.rollout.as_ref().unwrap()
}

fn reason(world: &World, condition: &ConditionType) -> Reason {
    world.deployment.status.conditions.get(condition).reason.clone()
}

/// Returns a world that starts to replace v1 by v2, whose pods are ready after `seconds`.
fn replaced_slowly(strategy: &Value, seconds: i64) -> World {
    let placement = in_clusters(&[("", 4)]);
    let mut world = deployed(spec("shop-v1", &placement, strategy), &[""]);
    world.behavior.slow.insert("shop-v2".to_owned(), seconds);
    world.set_spec(spec("shop-v2", &placement, strategy));
    world
}

/// By default, a rollout that fails waits and changes no replicas, even when its pods become ready.
#[test]
fn a_failed_rollout_waits_for_a_retry() {
    let strategy = json!({"type": "Rolling", "progressDeadlineSeconds": 60});
    let mut world = replaced_slowly(&strategy, 200);
    let failed = seconds_until(&mut world, 200, |world| phase(world) == DeploymentPhase::Paused);
    assert!((60..70).contains(&failed.unwrap()), "{failed:?}");
    assert_eq!(rollout(&world).paused, Some(PauseCause::Failure));
    assert_eq!(rollout(&world).failure, Reason::ProgressDeadlineExceeded);
    let before = world.replicas_by_revision();
    assert!(world.run_until_idle(600));
    let ready = world.deployment.status.placement.iter();
    let ready = ready.filter(|placement| placement.revision_name == "shop-v2");
    let ready: Vec<_> = ready.map(|placement| placement.clusters[0].available).collect();
    assert_eq!(ready, [Some(1)], "the first pod of v2 is ready");
    assert_eq!(phase(&world), DeploymentPhase::Paused);
    assert_eq!(world.replicas_by_revision(), before);
    world.behavior.slow.clear();
    world.request(ActionVerb::Retry);
    assert!(world.run_until_idle(600));
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
    assert_eq!(rollout(&world).failure, Reason::default());
    assert_eq!(
        (replicas(&world, "", "shop-v1"), replicas(&world, "", "shop-v2")),
        (0, 4)
    );
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

#[test]
fn a_failed_rollout_continues_on_request() {
    let strategy = json!({"type": "Direct", "progressDeadlineSeconds": 30, "onFailure": "Continue"});
    let mut world = replaced_slowly(&strategy, 100);
    let is_over = |world: &World| {
        assert_ne!(phase(world), DeploymentPhase::Paused);
        phase(world) == DeploymentPhase::Healthy && replicas(world, "", "shop-v1") == 0
    };
    let seconds = seconds_until(&mut world, 300, is_over);
    assert!(seconds.unwrap() >= 100, "{seconds:?}");
    assert_eq!(rollout(&world).failure, Reason::ProgressDeadlineExceeded);
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

/// Returns the largest number of replicas above the desired one in each of two waves of 4 and 12 replicas.
fn largest_surges(scope: &str) -> [u32; 2] {
    let strategy = json!({"type": "Rolling", "maxSurge": "50%", "scope": scope, "waves": [
        {"name": "first", "clusterSelector": {"name": "a"}}, {"name": "second"},
    ]});
    let placement = in_clusters(&[("a", 4), ("b", 12)]);
    let mut world = deployed(spec("shop-v1", &placement, &strategy), &["", "a", "b"]);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    let mut largest = [0, 0];
    let is_over = |world: &World| {
        for (index, (cluster, desired)) in [("a", 4), ("b", 12)].into_iter().enumerate() {
            let total = replicas(world, cluster, "shop-v1") + replicas(world, cluster, "shop-v2");
            largest[index] = largest[index].max(total.saturating_sub(desired));
        }
        replicas(world, "b", "shop-v2") == 12 && replicas(world, "b", "shop-v1") == 0
    };
    seconds_until(&mut world, 600, is_over).unwrap();
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
    largest
}

/// The surge of 50 % refers to all 16 replicas, or to the replicas of the wave.
#[test]
fn percentages_refer_to_all_clusters_or_to_the_wave() {
    assert_eq!(largest_surges("Global"), [4, 8]);
    assert_eq!(largest_surges("PerWave"), [2, 6]);
}

/// More failed clusters than allowed stop a wave before it changes the others. The rollout can be resumed
/// without them.
#[test]
fn too_many_failed_clusters_stop_a_wave_until_it_is_resumed() {
    let strategy = json!({"type": "Direct", "waves": [{"name": "all", "maxFailedClusters": 0}]});
    let placement = in_clusters(&[("a", 2), ("b", 2)]);
    let mut world = deployed(spec("shop-v1", &placement, &strategy), &["", "a", "b"]);
    world.disconnect("b", 1_000_000);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    seconds_until(&mut world, 10, |world| phase(world) == DeploymentPhase::Paused).unwrap();
    assert_eq!(rollout(&world).failure, Reason::TooManyFailedClusters);
    let moved = seconds_until(&mut world, 120, |world| replicas(world, "a", "shop-v2") > 0);
    assert_eq!(moved, None, "nothing changes during the pause");
    world.request(ActionVerb::Resume);
    let moved = |world: &World, cluster: &str| {
        replicas(world, cluster, "shop-v2") == 2 && replicas(world, cluster, "shop-v1") == 0
    };
    seconds_until(&mut world, 120, |world| moved(world, "a")).unwrap();
    assert_eq!(replicas(&world, "b", "shop-v1"), 2);
    world.end_faults();
    seconds_until(&mut world, 120, |world| moved(world, "b")).unwrap();
    assert!(world.run_until_idle(300));
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

#[test]
fn a_paused_strategy_changes_no_replicas() {
    let placement = in_clusters(&[("", 4)]);
    let strategy = |paused: bool| json!({"type": "Rolling", "paused": paused});
    let mut world = deployed(spec("shop-v1", &placement, &strategy(false)), &[""]);
    world.set_spec(spec("shop-v2", &placement, &strategy(true)));
    assert!(world.run_until_idle(300));
    assert_eq!(phase(&world), DeploymentPhase::Paused);
    assert_eq!(
        (replicas(&world, "", "shop-v1"), replicas(&world, "", "shop-v2")),
        (4, 0)
    );
    world.set_spec(spec("shop-v2", &placement, &strategy(false)));
    assert!(world.run_until_idle(300));
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
    assert_eq!(
        (replicas(&world, "", "shop-v1"), replicas(&world, "", "shop-v2")),
        (0, 4)
    );
}

/// Returns a world that starts a canary with an analysis of one metric.
fn analyzed(settings: &Value, on_failure: &str) -> World {
    let strategy = json!({"type": "Canary", "onFailure": on_failure, "steps": [
        {"setWeight": 20}, {"analysis": {"templateName": "rate"}},
    ]});
    let mut metric = json!({
        "name": "rate", "intervalSeconds": 10, "success": {"min": 0.99},
        "prometheus": {"address": "http://p", "query": "rate"},
    });
    for (name, value) in settings.as_object().unwrap() {
        metric[name] = value.clone();
    }
    let template = json!({"metadata": {"name": "rate"}, "spec": {"metrics": [metric]}});
    let placement = in_clusters(&[("", 4)]);
    let mut world = deployed(spec("shop-v1", &placement, &strategy), &[""]);
    let template = serde_json::from_value(template).unwrap();
    world.templates.insert("rate".to_owned(), template);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    world
}

/// Value and number of samples of a measurement.
type Measured = (f64, u64);

const GOOD: Measured = (1.0, 100);
const BAD: Measured = (0.5, 100);

/// Runs for ten minutes. Every measurement has the next result; the last result is repeated.
fn run_with(world: &mut World, results: &[Measured]) {
    let mut taken = 0;
    for _ in 0..600 {
        let (_, requeue) = world.reconcile();
        for measurement in &mut world.measurements {
            let (value, samples) = results[taken.min(results.len() - 1)];
            (measurement.value, measurement.samples) = (Some(value), Some(samples));
            taken += 1;
        }
        if requeue != Requeue::Immediately {
            world.tick(1);
        }
    }
    assert!(taken > 0, "nothing was measured");
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

#[test]
fn an_analysis_without_data_can_be_skipped() {
    let mut world = analyzed(&json!({}), "Rollback");
    world.behavior.metric = None;
    let waits = |world: &World| reason(world, &ConditionType::AnalysisPassed) == Reason::AnalysisNoData;
    seconds_until(&mut world, 200, waits).unwrap();
    assert_eq!(phase(&world), DeploymentPhase::Paused);
    let over = seconds_until(&mut world, 200, |world| phase(world) != DeploymentPhase::Paused);
    assert_eq!(over, None, "the analysis waits for data");
    world.request(ActionVerb::SkipAnalysis);
    assert!(world.run_until_idle(600));
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
    assert_eq!(
        (replicas(&world, "", "shop-v1"), replicas(&world, "", "shop-v2")),
        (0, 4)
    );
}

/// A measurement with fewer samples than `minSamples` has no data, whatever its value.
#[test]
fn a_measurement_with_few_samples_has_no_data() {
    let run = |results: &[Measured]| {
        let mut world = analyzed(&json!({"minSamples": 100}), "Rollback");
        run_with(&mut world, results);
        (phase(&world), reason(&world, &ConditionType::AnalysisPassed))
    };
    let no_data = (DeploymentPhase::Paused, Reason::AnalysisNoData);
    assert_eq!(run(&[(1.0, 99)]), no_data);
    assert_eq!(run(&[(0.5, 99)]), no_data);
    assert_eq!(run(&[GOOD]).0, DeploymentPhase::Healthy);
    assert_eq!(run(&[BAD]).0, DeploymentPhase::Aborted);
    assert_eq!(run(&[(0.5, 99), (0.5, 0), GOOD]).0, DeploymentPhase::Healthy);
}

#[test]
fn an_analysis_passes_with_as_many_failures_as_its_limit() {
    let run = |settings: Value, results: &[Measured]| {
        let mut world = analyzed(&settings, "Rollback");
        run_with(&mut world, results);
        phase(&world)
    };
    let limited = || json!({"count": 3, "failureLimit": 1});
    assert_eq!(run(limited(), &[BAD, GOOD]), DeploymentPhase::Healthy);
    assert_eq!(run(limited(), &[GOOD, BAD, GOOD]), DeploymentPhase::Healthy);
    assert_eq!(run(limited(), &[BAD, GOOD, BAD]), DeploymentPhase::Aborted);
    assert_eq!(run(json!({"count": 3}), &[BAD, GOOD]), DeploymentPhase::Aborted);
}

/// A retry starts a failed analysis again, so that earlier failures do not count.
#[test]
fn a_failed_analysis_starts_again_with_a_retry() {
    for verb in [ActionVerb::Retry, ActionVerb::Resume] {
        let mut world = analyzed(&json!({"count": 2}), "Pause");
        run_with(&mut world, &[BAD]);
        assert_eq!(phase(&world), DeploymentPhase::Paused);
        assert_eq!(rollout(&world).failure, Reason::AnalysisFailed);
        world.request(verb);
        run_with(&mut world, &[GOOD, BAD]);
        assert_eq!(phase(&world), DeploymentPhase::Paused, "{verb:?}: it fails again");
        world.request(verb);
        run_with(&mut world, &[GOOD]);
        assert_eq!(phase(&world), DeploymentPhase::Healthy, "{verb:?}");
    }
}

#[test]
fn a_failed_analysis_is_reported_if_the_rollout_continues() {
    let mut world = analyzed(&json!({}), "Continue");
    run_with(&mut world, &[BAD]);
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
    assert_eq!(
        reason(&world, &ConditionType::AnalysisPassed),
        Reason::AnalysisFailed
    );
    assert_eq!(replicas(&world, "", "shop-v2"), 4);
}

/// Promotes the step with this hash. Returns the handled action.
fn promote(world: &mut World, step_hash: &str) -> DeploymentAction {
    world.request(ActionVerb::Promote);
    let action = world.actions.last_mut().unwrap();
    action.spec.step_hash = Some(step_hash.to_owned());
    assert!(world.run_until_idle(300));
    world.actions.last().unwrap().clone()
}

/// A promotion that refers to an earlier step does not promote the current one.
#[test]
fn an_action_for_an_earlier_step_is_rejected() {
    let strategy = json!({"type": "Canary", "steps": [
        {"setWeight": 10}, {"pause": {}}, {"setWeight": 50}, {"pause": {}},
    ]});
    let placement = in_clusters(&[("", 4)]);
    let mut world = deployed(spec("shop-v1", &placement, &strategy), &[""]);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    assert!(world.run_until_idle(300));
    let first = rollout(&world).clone();
    assert_eq!(first.step, 1);
    let action = promote(&mut world, &first.step_hash);
    assert_eq!(action.status.result, Some(ActionResult::Accepted));
    let second = rollout(&world).clone();
    assert_eq!(second.step, 3);
    let action = promote(&mut world, &first.step_hash);
    assert_eq!(action.status.result, Some(ActionResult::Rejected));
    assert_eq!(action.status.reason, Reason::StaleStep);
    assert_eq!(rollout(&world), &second);
    assert_eq!(phase(&world), DeploymentPhase::Paused);
    let action = promote(&mut world, &second.step_hash);
    assert_eq!(action.status.result, Some(ActionResult::Accepted));
    assert_eq!(phase(&world), DeploymentPhase::Healthy);
}
