//! `PodDisruptionBudgets`: calculates the allowed disruptions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::act::{self, Actor};
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
/// Seconds after which an evicted pod that still exists counts as healthy again.
const EVICTION_TIMEOUT_SECONDS: i64 = 120;

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, budget)) = act::load(state, BUDGETS, key) else {
        return Ok(None);
    };
    let selector = LabelSelector::from_object(tree::get(&budget, &["spec", "selector"]));
    let pods = index.pods_matching(
        &object.meta().namespace,
        selector_hint(BUDGETS, &budget),
        &selector,
    );
    let (expected, desired) = expectation(state, &budget, &pods);
    let now = state.now();
    let (disrupted, requeue_at) = disrupted(&budget, &pods, now);
    let healthy = |pod: &&&Pod| {
        !pod.deleting() && pod.phase == Phase::Running && pod.ready && !disrupted.contains_key(pod.name())
    };
    let current = i64::try_from(pods.iter().filter(healthy).count()).unwrap_or(0);
    let allowed = if expected > 0 {
        (current - desired).max(0)
    } else {
        0
    };
    report(state, budget, [current, desired, expected, allowed], disrupted)?;
    Ok(requeue_at)
}

/// Returns the expected number of pods and the desired number of healthy ones.
fn expectation(state: &State, budget: &Value, pods: &[&Pod]) -> (i64, i64) {
    let field = |name: &str| tree::get(budget, &["spec", name]).filter(|value| !value.is_null());
    if let Some(limit) = field("maxUnavailable") {
        let expected = scale(state, pods);
        return (
            expected,
            (expected - scaled_value(Some(limit), expected, Rounding::Up)).max(0),
        );
    }
    match field("minAvailable") {
        Some(Value::String(percent)) => {
            let expected = scale(state, pods);
            let percent = Value::from(percent.as_str());
            (expected, scaled_value(Some(&percent), expected, Rounding::Up))
        }
        least => {
            let count = i64::try_from(pods.len()).unwrap_or(0);
            (count, least.and_then(Value::as_i64).unwrap_or(0))
        }
    }
}

/// Returns the total scale of the workloads that own the pods.
fn scale(state: &State, pods: &[&Pod]) -> i64 {
    let owners: BTreeSet<Box<str>> = pods
        .iter()
        .filter_map(|pod| pod.meta().controller().map(|owner| root(state, owner)))
        .collect();
    owners.iter().map(|uid| size(state, uid)).sum()
}

/// Returns the Deployment of a `ReplicaSet`, otherwise the owner itself.
fn root(state: &State, owner: &Owner) -> Box<str> {
    let location = state.store.location_of(&owner.uid);
    let object = location.and_then(|location| state.store.get(&location.table, &location.key));
    let above = object
        .filter(|_| &*owner.kind == "ReplicaSet")
        .and_then(|object| object.meta().controller());
    above.map_or_else(|| owner.uid.clone(), |above| above.uid.clone())
}

fn size(state: &State, uid: &str) -> i64 {
    let location = state.store.location_of(uid);
    let object = location.and_then(|location| state.store.get(&location.table, &location.key));
    object.map_or(0, |object| {
        tree::int(&object.packed(), &["spec", "replicas"]).unwrap_or(0)
    })
}

/// Returns the pods whose eviction was granted and that are not terminating yet.
fn disrupted(budget: &Value, pods: &[&Pod], now: Instant) -> (Map<String, Value>, RequeueAt) {
    let (mut kept, mut requeue_at) = (Map::new(), None);
    for pod in pods.iter().filter(|pod| !pod.deleting()) {
        let at = tree::text(budget, &["status", "disruptedPods", pod.name()]);
        let end = Instant::parse(at).map(|at| at.plus_seconds(EVICTION_TIMEOUT_SECONDS));
        if let Some(end) = end.filter(|end| *end >= now) {
            kept.insert(pod.name().to_owned(), at.into());
            // One unit later, because the deadline itself is inclusive.
            let check = end.plus_seconds(1);
            requeue_at = Some(requeue_at.map_or(check, |have: Instant| have.min(check)));
        }
    }
    (kept, requeue_at)
}

fn report(
    state: &mut State,
    mut budget: Value,
    [current, desired, expected, allowed]: [i64; 4],
    disrupted: Map<String, Value>,
) -> Result<()> {
    let generation = tree::int(&budget, &["metadata", "generation"]).unwrap_or(0);
    let mut conditions = tree::list(&budget, &["status", "conditions"]).to_vec();
    let (word, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let mut new = condition::plain(state.now(), "DisruptionAllowed", word, reason, "");
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
        .update(state, ("policy", "poddisruptionbudgets"), &budget, "status")
        .map(drop)
}
