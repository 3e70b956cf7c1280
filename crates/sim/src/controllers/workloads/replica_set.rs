//! Controller for `ReplicaSets`: creates or deletes pods to match the replicas, and updates the status.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::Index;
use super::pod::Pod;
use super::{RequeueAt, condition};
use crate::clock::Instant;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

const ACTOR: Actor = Actor("replicaset-controller");
const TABLE: &str = "replicasets.apps";
/// Maximum number of pods that are created or deleted per sync.
const BURST: usize = 500;

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, set)) = actor::load(state, TABLE, key) else {
        return Ok(None);
    };
    let all = index.pods_controlled_by(state, &object.meta().uid);
    let active: Vec<&Pod> = all.iter().copied().filter(|pod| pod.active()).collect();
    let terminating = all.iter().filter(|pod| pod.deleting() && !pod.finished()).count();
    let failure = if object.meta().deleting {
        None
    } else {
        sync_pods(state, index, &set, &active).err()
    };
    let requeue_at = write_status(state, set, &active, terminating, failure.as_ref())?;
    failure.map_or(Ok(requeue_at), Err)
}

fn sync_pods(state: &mut State, index: &Index, set: &Value, active: &[&Pod]) -> Result<()> {
    let desired = usize::try_from(tree::int(set, &["spec", "replicas"]).unwrap_or(1)).unwrap_or(0);
    let template = tree::get(set, &["spec", "template"]).cloned().unwrap_or_default();
    let name = format!("{}-", tree::text(set, &["metadata", "name"]));
    let namespace = tree::text(set, &["metadata", "namespace"]);
    for _ in active.len()..desired.min(active.len() + BURST) {
        if state.is_paused() {
            return Ok(());
        }
        let owner = actor::controller_reference("apps/v1", "ReplicaSet", set);
        match ACTOR.create(
            state,
            GroupResource::PODS,
            namespace,
            actor::pod_from_template(&template, &name, &owner),
        ) {
            Ok(created) => {
                let text = format!("Created pod: {}", created.meta().name);
                ACTOR.record_and_trace(state, set, "SuccessfulCreate", &text);
            }
            Err(error) if error.is_webhook_pending() => return Err(error),
            Err(error) => {
                ACTOR.warn(state, set, "FailedCreate", &format!("Error creating: {error}"));
                return Err(error);
            }
        }
    }
    let surplus = active.len().saturating_sub(desired).min(BURST);
    if surplus > 0 {
        for pod in pods_to_delete(state, index, set, active)
            .into_iter()
            .take(surplus)
        {
            ACTOR.delete(state, GroupResource::PODS, &pod.object)?;
            let text = format!("Deleted pod: {}", pod.name());
            ACTOR.record_and_trace(state, set, "SuccessfulDelete", &text);
        }
    }
    Ok(())
}

/// Returns the active pods in the order in which they are deleted.
fn pods_to_delete<'a>(state: &State, index: &Index, set: &Value, active: &[&'a Pod]) -> Vec<&'a Pod> {
    let pods_per_node = pods_per_node(state, index, set);
    let mut order = active.to_vec();
    let now = state.now();
    order.sort_by(|a, b| deletion_order(a, b, &pods_per_node, now));
    order
}

/// Returns the number of active pods of the same Deployment per node.
fn pods_per_node(state: &State, index: &Index, set: &Value) -> HashMap<Box<str>, usize> {
    let owner = tree::list(set, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| tree::flag(owner, &["controller"]))
        .map_or("", |owner| tree::text(owner, &["uid"]));
    let mut uids: Vec<&str> = vec![tree::text(set, &["metadata", "uid"])];
    let siblings: Vec<_> = state
        .store
        .dependents(owner)
        .filter_map(|location| state.store.get(&location.table, &location.key))
        .collect();
    uids.extend(siblings.iter().map(|sibling| &*sibling.meta().uid));
    uids.sort_unstable();
    uids.dedup();
    let mut counts = HashMap::new();
    for pod in uids.iter().flat_map(|uid| index.pods_controlled_by(state, uid)) {
        if pod.active() {
            *counts.entry(pod.node.clone()).or_default() += 1;
        }
    }
    counts
}

/// Compares pods by the order of deletion: unassigned first, then pending, not ready, with a lower
/// deletion cost, on a node with more pods, more recently ready, with more restarts, younger.
fn deletion_order(a: &Pod, b: &Pod, pods_per_node: &HashMap<Box<str>, usize>, now: Instant) -> Ordering {
    let node_pods = |pod: &Pod| pods_per_node.get(&pod.node).copied().unwrap_or(0);
    a.node
        .is_empty()
        .cmp(&b.node.is_empty())
        .reverse()
        .then_with(|| a.phase.cmp(&b.phase))
        .then_with(|| a.ready.cmp(&b.ready))
        .then_with(|| a.deletion_cost.cmp(&b.deletion_cost))
        .then_with(|| node_pods(b).cmp(&node_pods(a)))
        .then_with(|| match (a.ready, a.ready_since, b.ready_since) {
            (true, Some(one), Some(other)) if one != other => younger_first(one, other, a, b, now),
            _ => Ordering::Equal,
        })
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| {
            if a.created_at == b.created_at {
                Ordering::Equal
            } else {
                younger_first(a.created_at, b.created_at, a, b, now)
            }
        })
        .then_with(|| a.name().cmp(b.name()))
}

/// Compares the ages of two pods on a logarithmic scale, as in the real controller. Equal ages are ordered
/// by uid.
fn younger_first(one: Instant, other: Instant, a: &Pod, b: &Pod, now: Instant) -> Ordering {
    let rank = |at: Instant| now.since(at).as_nanos().checked_ilog2().map_or(-1, i64::from);
    rank(one)
        .cmp(&rank(other))
        .then_with(|| a.meta().uid.cmp(&b.meta().uid))
}

fn write_status(
    state: &mut State,
    mut set: Value,
    active: &[&Pod],
    terminating: usize,
    failure: Option<&Status>,
) -> Result<RequeueAt> {
    let now = state.now();
    let min_ready = tree::int(&set, &["spec", "minReadySeconds"]).unwrap_or(0);
    let labels = LabelSelector::from_map(tree::get(&set, &["spec", "template", "metadata", "labels"]));
    let count = |test: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| test(pod)).count();
    let mut status = json!({"replicas": active.len(), "terminatingReplicas": terminating});
    let numbers = [
        (
            "fullyLabeledReplicas",
            count(&|pod| labels.matches(&|key| pod.meta().label(key))),
        ),
        ("readyReplicas", count(&|pod| pod.ready)),
        ("availableReplicas", count(&|pod| pod.available(min_ready, now))),
    ];
    for (field, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        tree::set(&mut status, &[field], number);
    }
    let conditions = updated_conditions(&set, active.len(), failure, now);
    if !conditions.is_empty() {
        tree::set(&mut status, &["conditions"], conditions);
    }
    tree::copy(
        &json!({"observedGeneration": tree::int(&set, &["metadata", "generation"])}),
        &mut status,
        &["observedGeneration"],
    );
    if set.get("status") != Some(&status) {
        tree::set(&mut set, &["status"], status);
        ACTOR.update(state, GroupResource::new("apps", "replicasets"), &set, "status")?;
    }
    Ok(next_available(active, min_ready, now))
}

/// Returns the next time at which a pod becomes available.
pub(super) fn next_available(pods: &[&Pod], min_ready: i64, now: Instant) -> RequeueAt {
    pods.iter()
        .filter_map(|pod| pod.available_at(min_ready))
        .filter(|at| *at > now)
        .min()
}

fn updated_conditions(set: &Value, active: usize, failure: Option<&Status>, now: Instant) -> Vec<Value> {
    let mut conditions = tree::list(set, &["status", "conditions"]).to_vec();
    let known = condition::find(&conditions, "ReplicaFailure").is_some();
    match failure {
        // A write that is waiting for a webhook has neither failed nor succeeded.
        Some(failure) if failure.is_webhook_pending() => {}
        Some(failure) if !known => {
            let desired = tree::int(set, &["spec", "replicas"]).unwrap_or(1);
            let has_too_few = i64::try_from(active).is_ok_and(|active| active < desired);
            let reason = if has_too_few {
                "FailedCreate"
            } else {
                "FailedDelete"
            };
            condition::set(
                &mut conditions,
                condition::without_update_time(now, "ReplicaFailure", "True", reason, &failure.to_string()),
            );
        }
        Some(_) => {}
        None => condition::remove(&mut conditions, "ReplicaFailure"),
    }
    conditions
}
