//! Tests timelines of rollouts on the model: the order of weights, pauses, failures and load.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::Reason;
use mainstay_api::delivery::{
    ActionSpec, ActionVerb, ApplicationDeployment, ApplicationRevision, DeploymentPhase, Provider,
    RenderedComponent, RevisionSpec, RolloutStatus,
};
use mainstay_rollout::check_action;
use mainstay_rollout::model::{
    End, FixedBehavior, Model, ModelCluster, Timeline, TimelineOptions, load, timeline,
};
use serde_json::{Value, json};

fn spec(revision: &str, strategy: &Value) -> Value {
    json!({
        "traffic": {"hosts": ["shop.example.com"], "drainSeconds": 5, "http": [{"weightedTargets": [
            {"revisionName": revision, "componentName": "web", "port": 80, "weight": 100},
        ]}]},
        "appRevisions": [{"revisionName": revision, "placement": [{"distribution": {"replicas": 4}}]}],
        "strategy": strategy,
    })
}

fn revision(name: &str) -> ApplicationRevision {
    let manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": name}]}}},
    });
    let component = RenderedComponent {
        name: "web".into(),
        manifests: vec![manifest],
    };
    let spec = RevisionSpec {
        application_name: "shop".into(),
        revision: 1,
        hash: name.into(),
        components: vec![component],
    };
    ApplicationRevision::new("default", name, spec)
}

fn behavior() -> FixedBehavior {
    FixedBehavior {
        pod_delay: SignedDuration::from_secs(10),
        route_delay: SignedDuration::from_secs(1),
        ..FixedBehavior::default()
    }
}

const OPTIONS: TimelineOptions = TimelineOptions {
    limit: SignedDuration::from_hours(2),
    promotes: true,
};

/// Deploys v1, then changes to v2. Returns the timeline of the change and the model.
fn run(strategy: &Value, behavior: &mut FixedBehavior, options: TimelineOptions) -> (Timeline, Model) {
    let deployment = ApplicationDeployment::new(
        "default",
        "shop",
        serde_json::from_value(spec("shop-v1", strategy)).unwrap(),
    );
    let mut model = Model::new(Timestamp::UNIX_EPOCH, deployment);
    for name in ["shop-v1", "shop-v2"] {
        model.revisions.insert(name.into(), Arc::new(revision(name)));
    }
    model
        .clusters
        .insert(String::new(), ModelCluster::new(Provider::Istio));
    let first = timeline(&mut model, &mut self::behavior(), options);
    assert_eq!(
        (first.end, model.deployment.status.phase),
        (End::Settled, DeploymentPhase::Healthy)
    );
    model.set_spec(serde_json::from_value(spec("shop-v2", strategy)).unwrap());
    let second = timeline(&mut model, behavior, options);
    (second, model)
}

fn canary() -> Value {
    json!({"type": "Canary", "steps": [
        {"setWeight": 10}, {"pause": {"durationSeconds": 60}}, {"setWeight": 50}, {"pause": {}},
    ]})
}

/// Returns the shares of v2 in percent, without consecutive duplicates.
fn shares(timeline: &Timeline) -> Vec<i64> {
    let mut shares: Vec<i64> = timeline
        .frames
        .iter()
        .map(|frame| {
            let rules = frame.shares("");
            #[allow(clippy::cast_possible_truncation, reason = "the value is a percentage")]
            let percent = (rules[0].1.get("shop-v2").copied().unwrap_or_default() * 100.0).round() as i64;
            percent
        })
        .collect();
    shares.dedup();
    shares
}

#[test]
fn a_canary_follows_its_steps() {
    let (timeline, model) = run(&canary(), &mut behavior(), OPTIONS);
    assert_eq!(timeline.end, End::Settled);
    assert_eq!(model.deployment.status.phase, DeploymentPhase::Healthy);
    let shares = shares(&timeline);
    assert!(shares.is_sorted(), "{shares:?}");
    for expected in [0, 10, 50, 100] {
        assert!(shares.contains(&expected), "{shares:?}");
    }
    assert_eq!(
        timeline.frames.iter().filter(|frame| frame.is_promoted).count(),
        1
    );
    let steps: BTreeSet<&str> = timeline.frames.iter().map(|frame| frame.step.as_str()).collect();
    assert!(
        steps.contains("pause 60s") && steps.contains("setWeight 50"),
        "{steps:?}"
    );
    let ready = |frame: &mainstay_rollout::model::Frame| -> u32 {
        frame.replicas.values().map(|count| count.available).sum()
    };
    assert!(timeline.frames.iter().all(|frame| ready(frame) >= 4));
}

#[test]
fn a_pause_without_promotion_ends_the_timeline() {
    let options = TimelineOptions {
        promotes: false,
        ..OPTIONS
    };
    let (timeline, model) = run(&canary(), &mut behavior(), options);
    assert_eq!(timeline.end, End::Waiting);
    assert_eq!(
        timeline.frames.last().unwrap().reason,
        Reason::WaitingForPromotion
    );
    assert_eq!(model.deployment.status.phase, DeploymentPhase::Paused);
}

#[test]
fn pods_that_never_become_ready_end_in_a_rollback() {
    let mut strategy = canary();
    strategy["onFailure"] = json!("Rollback");
    let mut broken = behavior();
    broken.never_ready.insert("shop-v2".into());
    let (timeline, model) = run(&strategy, &mut broken, OPTIONS);
    assert_eq!(timeline.end, End::Settled);
    assert_eq!(model.deployment.status.phase, DeploymentPhase::Aborted);
    assert_eq!(shares(&timeline), [0]);
}

#[test]
fn every_request_of_a_canary_is_served() {
    let (timeline, _) = run(&canary(), &mut behavior(), OPTIONS);
    let rows = load(&timeline, &BTreeMap::from([(String::new(), 200.0)]));
    let last = timeline.frames.last().unwrap().at.as_secs();
    assert_eq!(rows.len() as i64, last + 1);
    for row in &rows {
        let total: f64 = row.requests.values().sum();
        assert!((total - 200.0).abs() < 1e-6 && row.unserved == 0.0, "{row:?}");
    }
    let at_ten = rows
        .iter()
        .find(|row| row.requests.get("shop-v2").is_some_and(|rate| *rate > 0.0));
    assert!((at_ten.unwrap().requests["shop-v2"] - 20.0).abs() < 1e-6);
}

#[test]
fn requests_to_an_empty_revision_are_unserved() {
    let (mut timeline, _) = run(&canary(), &mut behavior(), OPTIONS);
    for count in timeline.frames.last_mut().unwrap().replicas.values_mut() {
        count.available = 0;
    }
    let rows = load(&timeline, &BTreeMap::from([(String::new(), 200.0)]));
    assert!((rows.last().unwrap().unserved - 200.0).abs() < 1e-6);
}

#[test]
fn actions_are_checked_against_the_rollout() {
    let check = |rollout: Option<&RolloutStatus>, verb, step_hash: Option<&str>| {
        let action = ActionSpec {
            deployment_name: "shop".into(),
            verb,
            step_hash: step_hash.map(str::to_owned),
        };
        check_action(rollout, &action)
    };
    assert_eq!(check(None, ActionVerb::Promote, None), Err(Reason::NotApplicable));
    let (_, model) = run(
        &canary(),
        &mut behavior(),
        TimelineOptions {
            promotes: false,
            ..OPTIONS
        },
    );
    let rollout = model.deployment.status.rollout.as_ref();
    assert_eq!(
        check(rollout, ActionVerb::Promote, Some("old")),
        Err(Reason::StaleStep)
    );
    for (verb, fits) in [
        (ActionVerb::Promote, true),
        (ActionVerb::PromoteFull, true),
        (ActionVerb::Pause, true),
        (ActionVerb::Abort, true),
        (ActionVerb::Rollback, true),
        (ActionVerb::Resume, false),
        (ActionVerb::Retry, false),
    ] {
        assert_eq!(check(rollout, verb, None).is_ok(), fits, "{verb:?}");
    }
}
