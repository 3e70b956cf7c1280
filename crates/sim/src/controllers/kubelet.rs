//! Simulated scheduler and kubelets of all nodes: assigns pods to nodes and updates their status according to
//! their scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Controller, create_if_absent};
use crate::api::bind;
use crate::clock::Instant;
use crate::context::Context;
use crate::events::{self, NewEvent};
use crate::object::Object;
use crate::resource::Resource;
use crate::script::{
    Addresses, ContainerLifecycle, Nodes, PodIdentity, PodStatusWriter, RestartPolicy, Script,
    mark_unschedulable, node_object, workload_name,
};
use crate::state::State;
use crate::status::{Result, Status};
use crate::store::EventKind;
use crate::tree;
use crate::write::{self, DeleteOptions, Target};

mod pod_events;

/// Name of the scheduler in events.
const SCHEDULER: &str = "default-scheduler";

/// Controller that simulates the scheduler and the kubelets of all nodes.
#[derive(Debug, Default)]
pub struct Kubelet {
    seen_version: u64,
    nodes: Nodes,
    /// Pods to assign to a node.
    pending: BTreeSet<Box<str>>,
    /// Pods that fit no node. They become pending when a node changes.
    unschedulable: BTreeSet<Box<str>>,
    running: BTreeMap<Box<str>, RunningPod>,
    /// Times at which running pods are due.
    due: BTreeSet<(Instant, Box<str>)>,
    addresses: Addresses,
}

/// A pod on a node.
#[derive(Debug)]
struct RunningPod {
    uid: Box<str>,
    node: Box<str>,
    ip: String,
    lifecycle: ContainerLifecycle,
    bound_at: Instant,
    /// Generation of the pod that its status reflects.
    generation: i64,
    /// Time of the pod in [`Kubelet::due`].
    due_at: Option<Instant>,
    /// Time at which the pod will have stopped, if it is terminating.
    stop: Option<Instant>,
}

/// Creates `count` ready nodes named `node-0`, `node-1` and so on.
pub fn create_nodes(state: &mut State, count: usize) {
    for number in 0..count {
        let node = node_object(number, state.now());
        create_if_absent(state, "", "nodes", "", node);
    }
}

impl Controller for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let Some(pods) = state.resources.preferred("", "pods").cloned() else {
            return false;
        };
        let before = state.store.version();
        self.read_changes(state);
        self.schedule(state, &pods);
        self.read_changes(state);
        self.advance_pods(state, &pods);
        state.store.version() != before
    }

    fn next(&self, _state: &State) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}

impl Kubelet {
    fn read_changes(&mut self, state: &State) {
        if state.store.version() == self.seen_version {
            return;
        }
        for table in ["nodes", "pods"] {
            let Some(history) = state.store.history(table) else {
                continue;
            };
            if history.last_version() <= self.seen_version {
                continue;
            }
            if let Some(events) = history.after(self.seen_version) {
                for event in events {
                    self.observe(state, table, &event.object, event.kind == EventKind::Deleted);
                }
            } else {
                self.relist(state, table);
            }
        }
        self.seen_version = state.store.version();
    }

    /// Reads all objects of a table after its history has been compacted.
    fn relist(&mut self, state: &State, table: &str) {
        let deleted: Vec<Box<str>> = self
            .running
            .keys()
            .chain(&self.pending)
            .chain(&self.unschedulable)
            .filter(|key| table == "pods" && state.store.get("pods", key).is_none())
            .cloned()
            .collect();
        for key in deleted {
            self.remove_pod(&key);
        }
        for object in state.store.all(table) {
            self.observe(state, table, object, false);
        }
    }

    fn observe(&mut self, state: &State, table: &str, object: &Arc<Object>, deleted: bool) {
        if table == "nodes" {
            self.nodes
                .put(&object.meta().name, (!deleted).then(|| object.packed()));
            return;
        }
        let key: Box<str> = object.key().into();
        if deleted {
            self.remove_pod(&key);
            return;
        }
        let uid = &object.meta().uid;
        match self.running.get_mut(&key) {
            Some(running_pod) if running_pod.uid != *uid => {
                self.remove_pod(&key);
                self.add_pod(state, object, key);
            }
            Some(running_pod) if object.meta().deleting && running_pod.stop.is_none() => {
                let grace = deletion_grace_period(object);
                let stop = state.now().plus(running_pod.lifecycle.stop().min(grace));
                running_pod.stop = Some(stop);
                self.schedule_at(&key, Some(stop));
            }
            Some(running_pod) if object.meta().generation > running_pod.generation => {
                // Resources or ephemeral containers have changed: write the status again.
                running_pod.generation = object.meta().generation;
                if running_pod.stop.is_none() {
                    self.schedule_at(&key, Some(state.now()));
                }
            }
            Some(_) => {}
            None => self.add_pod(state, object, key),
        }
    }

    /// Adds a new pod, as a pending pod if it has no node, otherwise as a running pod.
    fn add_pod(&mut self, state: &State, object: &Arc<Object>, key: Box<str>) {
        let node = object.field("spec.nodeName").unwrap_or("");
        if node.is_empty() {
            if !object.meta().deleting && !self.unschedulable.contains(&key) {
                self.pending.insert(key);
            }
            return;
        }
        self.pending.remove(&key);
        self.unschedulable.remove(&key);
        if matches!(object.field("status.phase"), Some("Succeeded" | "Failed")) {
            return;
        }
        let now = state.now();
        let pod = object.packed();
        let lifecycle = ContainerLifecycle::new(
            find_script(state, object, &pod),
            RestartPolicy::for_pod(&pod),
            now,
        );
        self.nodes.adjust_load(node, 1);
        let stop = object.meta().deleting.then_some(now);
        let running_pod = RunningPod {
            uid: object.meta().uid.clone(),
            node: node.into(),
            ip: self.addresses.allocate(),
            lifecycle,
            bound_at: now,
            generation: object.meta().generation,
            due_at: None,
            stop,
        };
        self.running.insert(key.clone(), running_pod);
        self.schedule_at(&key, Some(now));
    }

    fn remove_pod(&mut self, key: &str) {
        self.pending.remove(key);
        self.unschedulable.remove(key);
        self.schedule_at(key, None);
        if let Some(running_pod) = self.running.remove(key) {
            self.nodes.adjust_load(&running_pod.node, -1);
            self.addresses.release(&running_pod.ip);
        }
    }

    fn schedule_at(&mut self, key: &str, at: Option<Instant>) {
        let Some(running_pod) = self.running.get_mut(key) else {
            return;
        };
        if let Some(old) = running_pod.due_at.take() {
            self.due.remove(&(old, Box::from(key)));
        }
        running_pod.due_at = at;
        if let Some(at) = at {
            self.due.insert((at, key.into()));
        }
    }

    /// Assigns pending pods to nodes.
    fn schedule(&mut self, state: &mut State, pods: &Arc<Resource>) {
        if self.nodes.take_changed() {
            self.pending.append(&mut self.unschedulable);
        }
        for key in std::mem::take(&mut self.pending) {
            let Some(object) = state.store.get("pods", &key).cloned() else {
                continue;
            };
            let pod = object.packed();
            let target = Target {
                resource: pods,
                namespace: &object.meta().namespace,
                name: &object.meta().name,
            };
            if let Some(node) = self.nodes.choose(&pod) {
                let mut context = Context::for_controller("kube-scheduler");
                if bind(state, &target, &node, &mut context).is_ok() {
                    self.nodes.expect_pod(&node);
                    let text = format!("Successfully assigned {key} to {node}");
                    events::record(state, &NewEvent::normal(SCHEDULER, &pod, "Scheduled", &text));
                }
            } else {
                let text = format!("0/{} nodes are available.", self.nodes.count());
                self.unschedulable.insert(key.clone());
                let _ = write_status(state, &target, "kube-scheduler", &mut |pod, now| {
                    mark_unschedulable(pod, now, &text);
                });
                events::record(
                    state,
                    &NewEvent::warning(SCHEDULER, &pod, "FailedScheduling", &text),
                );
            }
        }
        self.nodes.clear_expected();
    }

    /// Advances the pods that are due, and writes their status.
    fn advance_pods(&mut self, state: &mut State, pods: &Arc<Resource>) {
        let now = state.now();
        let mut count = 0;
        while count < MAX_PODS_PER_STEP
            && let Some((at, _)) = self.due.first()
            && *at <= now
            && let Some((_, key)) = self.due.pop_first()
        {
            count += 1;
            let Some(running_pod) = self.running.get_mut(&key) else {
                continue;
            };
            running_pod.due_at = None;
            let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
            let target = Target {
                resource: pods,
                namespace,
                name,
            };
            if running_pod.stop.is_some_and(|stop| stop <= now) {
                pod_events::record_stopping(state, &key, &running_pod.node);
                if let Err(error) = delete_stopped_pod(state, &target, &running_pod.uid) {
                    self.schedule_at(&key, retry_at(now, &error));
                }
                continue;
            }
            let before = running_pod.lifecycle.phase();
            running_pod.lifecycle.advance_to(now);
            let change = pod_events::PhaseChange {
                before,
                after: running_pod.lifecycle.phase(),
            };
            let next = running_pod
                .lifecycle
                .next_transition()
                .into_iter()
                .chain(running_pod.stop)
                .min();
            let (ip, node_ip) = (running_pod.ip.clone(), self.nodes.ip(&running_pod.node));
            let writer = PodStatusWriter {
                lifecycle: &running_pod.lifecycle,
                bound: running_pod.bound_at,
                ip: &ip,
                node_ip: &node_ip,
            };
            let written = write_status(state, &target, "kubelet", &mut |pod, now| writer.write(pod, now));
            pod_events::record_phase_change(state, &key, &running_pod.node, change);
            let next = match written {
                Ok(()) => next,
                Err(error) => retry_at(now, &error),
            };
            self.schedule_at(&key, next);
        }
    }
}

/// Retry interval of a write that is waiting for a webhook.
const WEBHOOK_RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Retry interval of a write that was rejected: the sync interval of a kubelet.
const SYNC_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of pods that are advanced per step.
const MAX_PODS_PER_STEP: usize = 250;

/// Returns the time at which to retry a write, or `None` if its object no longer exists.
fn retry_at(now: Instant, error: &Status) -> Option<Instant> {
    match error.code() {
        _ if error.is_webhook_pending() => Some(now.plus(WEBHOOK_RETRY_INTERVAL)),
        404 | 409 => None,
        _ => Some(now.plus(SYNC_INTERVAL)),
    }
}

/// Deletes a pod that has stopped.
fn delete_stopped_pod(state: &mut State, target: &Target<'_>, uid: &str) -> Result<()> {
    let options = DeleteOptions {
        grace: Some(0),
        uid: Some(uid.to_owned()),
        ..DeleteOptions::default()
    };
    let mut context = Context::for_controller("kubelet");
    write::delete(state, target, &options, &mut context).map(drop)
}

fn deletion_grace_period(object: &Object) -> Duration {
    let value = object.packed();
    let seconds = tree::int(&value, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Writes the status of a pod as a component.
fn write_status(
    state: &mut State,
    target: &Target<'_>,
    component: &'static str,
    modify: &mut dyn FnMut(&mut Value, Instant),
) -> Result<()> {
    let mut context = Context::for_controller(component);
    "status".clone_into(&mut context.subresource);
    let now = state.now();
    let written = write::update(state, target, &mut context, false, &mut |_, live, _| {
        let mut pod = live.cloned().unwrap_or_default();
        modify(&mut pod, now);
        Ok(pod)
    });
    written.map(drop)
}

fn find_script(state: &State, object: &Object, pod: &Value) -> Script {
    let meta = object.meta();
    let hash = meta.label("pod-template-hash").unwrap_or("");
    let workload = meta
        .controller()
        .map_or(&*meta.name, |owner| workload_name(&owner.name, hash));
    let identity = PodIdentity {
        namespace: &meta.namespace,
        workload,
        restart: RestartPolicy::for_pod(pod),
        label: &|key| meta.label(key),
    };
    state.scripts.choose(&identity).clone()
}
