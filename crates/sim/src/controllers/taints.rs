//! Taints with the effect `NoExecute`: evicts the pods of a node that do not tolerate them, or when their
//! tolerations expire.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Controller;
use crate::clock::Instant;
use crate::context::Context;
use crate::events::{self, NewEvent};
use crate::object::Object;
use crate::script::{PodCondition, tolerates_taint};
use crate::state::State;
use crate::store::EventKind;
use crate::tree;
use crate::write::{self, DeleteOptions, Target};

const ACTOR: &str = "taint-eviction-controller";
const PODS: &str = "pods";
const NODES: &str = "nodes";

/// Controller for taints with the effect `NoExecute`.
#[derive(Debug, Default)]
pub struct Taints {
    seen_version: u64,
    /// Taints with the effect `NoExecute` by node.
    by_node: BTreeMap<Box<str>, Vec<Value>>,
    /// Times at which pods are evicted.
    evictions: BTreeMap<Box<str>, Instant>,
}

impl Controller for Taints {
    fn name(&self) -> &'static str {
        ACTOR
    }

    fn step(&mut self, state: &mut State) -> bool {
        let before = state.store.version();
        if before != self.seen_version {
            for key in self.changed_pods(state) {
                self.check_pod(state, &key);
            }
            self.seen_version = before;
        }
        let now = state.now();
        let due: Vec<Box<str>> = self
            .evictions
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.evictions.remove(&key);
            evict(state, &key);
        }
        state.store.version() != before
    }

    fn next(&self, _state: &State) -> Option<Instant> {
        self.evictions.values().min().copied()
    }
}

impl Taints {
    /// Returns the pods to check: changed pods, and all pods of nodes with changed taints.
    fn changed_pods(&mut self, state: &State) -> BTreeSet<Box<str>> {
        let nodes = self.update_nodes(state);
        let mut keys = BTreeSet::new();
        let on_node = |object: &Object, node: &str| object.field("spec.nodeName") == Some(node);
        for node in &nodes {
            let pods = state.store.all(PODS).filter(|object| on_node(object, node));
            keys.extend(pods.map(|object| Box::from(object.key())));
        }
        if self.by_node.is_empty() && self.evictions.is_empty() {
            return keys;
        }
        match state
            .store
            .history(PODS)
            .map(|history| history.after(self.seen_version))
        {
            None => {}
            Some(Some(events)) => keys.extend(events.map(|event| Box::from(event.object.key()))),
            Some(None) => keys.extend(state.store.all(PODS).map(|object| Box::from(object.key()))),
        }
        keys
    }

    /// Reads the changed nodes. Returns the nodes with changed taints.
    fn update_nodes(&mut self, state: &State) -> BTreeSet<Box<str>> {
        let Some(history) = state.store.history(NODES) else {
            return BTreeSet::new();
        };
        if history.last_version() <= self.seen_version {
            return BTreeSet::new();
        }
        let mut current: BTreeMap<Box<str>, Option<Arc<Object>>> = BTreeMap::new();
        if let Some(events) = history.after(self.seen_version) {
            current.extend(events.map(|event| {
                let object = (event.kind != EventKind::Deleted).then(|| Arc::clone(&event.object));
                (event.object.meta().name.clone(), object)
            }));
        } else {
            current.extend(self.by_node.keys().map(|name| (name.clone(), None)));
            let nodes = state.store.all(NODES);
            current.extend(nodes.map(|object| (object.meta().name.clone(), Some(Arc::clone(object)))));
        }
        let mut changed = BTreeSet::new();
        for (name, object) in current {
            let taints = object.map_or(Vec::new(), |object| no_execute_taints(&object.packed()));
            let old = if taints.is_empty() {
                self.by_node.remove(&name)
            } else {
                self.by_node.insert(name.clone(), taints.clone())
            };
            if old.unwrap_or_default() != taints {
                changed.insert(name);
            }
        }
        changed
    }

    /// Schedules, keeps or cancels the eviction of a pod.
    fn check_pod(&mut self, state: &State, key: &str) {
        let object = state
            .store
            .get(PODS, key)
            .filter(|object| !object.meta().deleting);
        let taints = object
            .and_then(|object| self.by_node.get(object.field("spec.nodeName").unwrap_or("")))
            .map_or(&[][..], Vec::as_slice);
        let (Some(object), false) = (object, taints.is_empty()) else {
            self.evictions.remove(key);
            return;
        };
        match toleration_time(&object.packed(), taints) {
            TolerationTime::Forever => drop(self.evictions.remove(key)),
            TolerationTime::Seconds(seconds) => {
                let at = state.now().plus_seconds(seconds);
                self.evictions.entry(key.into()).or_insert(at);
            }
            TolerationTime::No => drop(self.evictions.insert(key.into(), state.now())),
        }
    }
}

fn no_execute_taints(node: &Value) -> Vec<Value> {
    let taints = tree::list(node, &["spec", "taints"]).iter();
    let effective = taints.filter(|taint| tree::text(taint, &["effect"]) == "NoExecute");
    effective.cloned().collect()
}

/// Time for which a pod tolerates the taints of its node.
enum TolerationTime {
    No,
    Seconds(i64),
    Forever,
}

fn toleration_time(pod: &Value, taints: &[Value]) -> TolerationTime {
    let tolerations = tree::list(pod, &["spec", "tolerations"]);
    let mut shortest: Option<i64> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|one| tolerates_taint(one, taint)) else {
            return TolerationTime::No;
        };
        if let Some(seconds) = tree::int(toleration, &["tolerationSeconds"]) {
            shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
        }
    }
    match shortest {
        None => TolerationTime::Forever,
        Some(seconds) if seconds <= 0 => TolerationTime::No,
        Some(seconds) => TolerationTime::Seconds(seconds),
    }
}

/// Records the reason in the status of the pod, and deletes the pod.
fn evict(state: &mut State, key: &str) {
    let (Some(pods), Some(object)) = (
        state.resources.preferred("", PODS).cloned(),
        state.store.get(PODS, key).cloned(),
    ) else {
        return;
    };
    let target = Target {
        resource: &pods,
        namespace: &object.meta().namespace,
        name: &object.meta().name,
    };
    let text = format!("Marking for deletion Pod {key}");
    let pod = object.packed();
    events::record(
        state,
        &NewEvent::normal(ACTOR, &pod, "TaintManagerEviction", &text),
    );
    let mut context = Context::for_controller(ACTOR);
    "status".clone_into(&mut context.subresource);
    let now = state.now();
    let _ = write::update(state, &target, &mut context, false, &mut |_, live, _| {
        let mut pod = live.cloned().unwrap_or_default();
        let condition = PodCondition {
            reason: "DeletionByTaintManager",
            message: "Taint manager: deleting due to NoExecute taint",
            ..PodCondition::new("DisruptionTarget", true)
        };
        condition.set(&mut pod, now);
        Ok(pod)
    });
    let options = DeleteOptions {
        uid: Some(object.meta().uid.to_string()),
        ..DeleteOptions::default()
    };
    let _ = write::delete(state, &target, &options, &mut Context::for_controller(ACTOR));
}
