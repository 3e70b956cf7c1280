//! Controller for `PodDisruptionBudgets`: calculates the allowed disruptions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::{Index, selector_hint};
use super::int_or_percent::{Rounding, scaled_value};
use super::pod::{Phase, Pod};
use super::{BUDGETS, RequeueAt, condition};
use crate::clock::Instant;
use crate::object::Owner;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("disruption-controller");
/// Time in seconds after which an evicted pod that still exists is counted as healthy again.
const EVICTION_TIMEOUT_SECONDS: i64 = 120;

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, budget)) = actor::load(state, BUDGETS, key) else {
        return Ok(None);
    };
    let selector = LabelSelector::from_object(tree::get(&budget, &["spec", "selector"]));
    let pods = index.pods_matching(
        &object.meta().namespace,
        selector_hint(BUDGETS, &budget),
        &selector,
    );
    let (expected, desired) = expected_and_desired(state, &budget, &pods);
    let now = state.now();
    let (disrupted, requeue_at) = disrupted_pods(&budget, &pods, now);
    let healthy = |pod: &&&Pod| {
        !pod.deleting() && pod.phase == Phase::Running && pod.ready && !disrupted.contains_key(pod.name())
    };
    let current = i64::try_from(pods.iter().filter(healthy).count()).unwrap_or(0);
    let allowed = if expected > 0 {
        (current - desired).max(0)
    } else {
        0
    };
    write_status(state, budget, [current, desired, expected, allowed], disrupted)?;
    Ok(requeue_at)
}

/// Returns the expected number of pods and the desired number of healthy pods.
fn expected_and_desired(state: &State, budget: &Value, pods: &[&Pod]) -> (i64, i64) {
    let field = |name: &str| tree::get(budget, &["spec", name]).filter(|value| !value.is_null());
    if let Some(limit) = field("maxUnavailable") {
        let expected = expected_pods(state, pods);
        return (
            expected,
            (expected - scaled_value(Some(limit), expected, Rounding::Up)).max(0),
        );
    }
    match field("minAvailable") {
        Some(Value::String(percent)) => {
            let expected = expected_pods(state, pods);
            let percent = Value::from(percent.as_str());
            (expected, scaled_value(Some(&percent), expected, Rounding::Up))
        }
        min_available => {
            let count = i64::try_from(pods.len()).unwrap_or(0);
            (count, min_available.and_then(Value::as_i64).unwrap_or(0))
        }
    }
}

/// Returns the sum of the replicas of the workloads that own the pods.
fn expected_pods(state: &State, pods: &[&Pod]) -> i64 {
    let owners: BTreeSet<Box<str>> = pods
        .iter()
        .filter_map(|pod| pod.meta().controller().map(|owner| workload_uid(state, owner)))
        .collect();
    owners.iter().map(|uid| replicas(state, uid)).sum()
}

/// Returns the uid of the workload: the Deployment of a `ReplicaSet`, otherwise the owner itself.
fn workload_uid(state: &State, owner: &Owner) -> Box<str> {
    let location = state.store.location_of(&owner.uid);
    let object = location.and_then(|location| state.store.get(&location.table, &location.key));
    let parent = object
        .filter(|_| &*owner.kind == "ReplicaSet")
        .and_then(|object| object.meta().controller());
    parent.map_or_else(|| owner.uid.clone(), |parent| parent.uid.clone())
}

fn replicas(state: &State, uid: &str) -> i64 {
    let location = state.store.location_of(uid);
    let object = location.and_then(|location| state.store.get(&location.table, &location.key));
    object.map_or(0, |object| {
        tree::int(&object.packed(), &["spec", "replicas"]).unwrap_or(0)
    })
}

/// Returns the pods that were evicted and are not terminating yet, and the time at which to check them again.
fn disrupted_pods(budget: &Value, pods: &[&Pod], now: Instant) -> (Map<String, Value>, RequeueAt) {
    let (mut kept, mut requeue_at) = (Map::new(), None);
    for pod in pods.iter().filter(|pod| !pod.deleting()) {
        let at = tree::text(budget, &["status", "disruptedPods", pod.name()]);
        let end = Instant::parse(at).map(|at| at.plus_seconds(EVICTION_TIMEOUT_SECONDS));
        if let Some(end) = end.filter(|end| *end >= now) {
            kept.insert(pod.name().to_owned(), at.into());
            // One second after the deadline, because at the deadline the pod is still in the list.
            let check_at = end.plus_seconds(1);
            requeue_at = Some(requeue_at.map_or(check_at, |earliest: Instant| earliest.min(check_at)));
        }
    }
    (kept, requeue_at)
}

fn write_status(
    state: &mut State,
    mut budget: Value,
    [current, desired, expected, allowed]: [i64; 4],
    disrupted: Map<String, Value>,
) -> Result<()> {
    let generation = tree::int(&budget, &["metadata", "generation"]).unwrap_or(0);
    let mut conditions = tree::list(&budget, &["status", "conditions"]).to_vec();
    let (allowed_status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let mut new =
        condition::without_update_time(state.now(), "DisruptionAllowed", allowed_status, reason, "");
    tree::set(&mut new, &["message"], "");
    tree::set(&mut new, &["observedGeneration"], generation);
    condition::set(&mut conditions, new);
    for one in &mut conditions {
        if tree::text(one, &["type"]) == "DisruptionAllowed" {
            tree::set(one, &["observedGeneration"], generation);
        }
    }
    let mut status = json!({
        "currentHealthy": current, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": generation, "conditions": conditions,
    });
    if !disrupted.is_empty() {
        tree::set(&mut status, &["disruptedPods"], disrupted);
    }
    if budget.get("status") == Some(&status) {
        return Ok(());
    }
    tree::set(&mut budget, &["status"], status);
    ACTOR
        .update(
            state,
            GroupResource::new("policy", "poddisruptionbudgets"),
            &budget,
            "status",
        )
        .map(drop)
}
