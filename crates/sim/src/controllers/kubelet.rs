//! A hollow kubelet and scheduler for all nodes: takes pods as they come, gives them nodes, addresses and the life their script tells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Controller, make};
use crate::api::bind;
use crate::clock::Instant;
use crate::context::Context;
use crate::events::{self, NewEvent};
use crate::object::Object;
use crate::resource::Resource;
use crate::script::{
    Addresses, ContainerLifecycle, Nodes, PodIdentity, PodStatusWriter, RestartPolicy, Script,
    mark_unschedulable, node, workload_name,
};
use crate::state::State;
use crate::store::EventKind;
use crate::tree;
use crate::write::{self, DeleteOptions, Target};

mod told;

/// Who places pods, as its events say.
const SCHEDULER: &str = "default-scheduler";

/// Plays every node's kubelet.
#[derive(Debug, Default)]
pub struct Kubelet {
    seen: u64,
    nodes: Nodes,
    /// Pods without a node that nobody has looked at, and those that no node suited.
    fresh: BTreeSet<Box<str>>,
    stuck: BTreeSet<Box<str>>,
    guests: BTreeMap<Box<str>, Guest>,
    alarms: BTreeSet<(Instant, Box<str>)>,
    addresses: Addresses,
}

/// A pod on a node.
#[derive(Debug)]
struct Guest {
    uid: Box<str>,
    node: Box<str>,
    ip: String,
    life: ContainerLifecycle,
    bound: Instant,
    alarm: Option<Instant>,
    /// When it will have stopped, once it was told to.
    stop: Option<Instant>,
}

/// Makes `count` nodes called `node-0`, `node-1` and so on, ready for pods.
pub fn create_nodes(state: &mut State, count: usize) {
    for number in 0..count {
        let node = node(number, state.now());
        make(state, "", "nodes", "", node);
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
        self.ingest(state);
        self.schedule(state, &pods);
        self.ingest(state);
        self.live(state, &pods);
        state.store.version() != before
    }

    fn next(&self, _state: &State) -> Option<Instant> {
        self.alarms.first().map(|(at, _)| *at)
    }
}

impl Kubelet {
    fn ingest(&mut self, state: &State) {
        if state.store.version() == self.seen {
            return;
        }
        for table in ["nodes", "pods"] {
            let Some(history) = state.store.history(table) else {
                continue;
            };
            if history.last_version() <= self.seen {
                continue;
            }
            if let Some(events) = history.after(self.seen) {
                for event in events {
                    self.heard(state, table, &event.object, event.kind == EventKind::Deleted);
                }
            } else {
                self.reload(state, table);
            }
        }
        self.seen = state.store.version();
    }

    fn reload(&mut self, state: &State, table: &str) {
        let lost: Vec<Box<str>> = self
            .guests
            .keys()
            .chain(&self.fresh)
            .chain(&self.stuck)
            .filter(|key| table == "pods" && state.store.get("pods", key).is_none())
            .cloned()
            .collect();
        for key in lost {
            self.forget(&key);
        }
        for object in state.store.all(table) {
            self.heard(state, table, object, false);
        }
    }

    fn heard(&mut self, state: &State, table: &str, object: &Arc<Object>, gone: bool) {
        if table == "nodes" {
            self.nodes
                .put(&object.meta().name, (!gone).then(|| object.packed()));
            return;
        }
        let key: Box<str> = object.key().into();
        if gone {
            self.forget(&key);
            return;
        }
        let uid = &object.meta().uid;
        match self.guests.get_mut(&key) {
            Some(guest) if guest.uid != *uid => {
                self.forget(&key);
                self.welcome(state, object, key);
            }
            Some(guest) if object.meta().deleting && guest.stop.is_none() => {
                let grace = object_grace(object);
                let stop = state.now().plus(guest.life.stop().min(grace));
                guest.stop = Some(stop);
                self.set_alarm(&key, Some(stop));
            }
            Some(_) => {}
            None => self.welcome(state, object, key),
        }
    }

    /// A pod without a guest's record: it waits for a node, or begins to live on the one it has.
    fn welcome(&mut self, state: &State, object: &Arc<Object>, key: Box<str>) {
        let node = object.field("spec.nodeName").unwrap_or("");
        if node.is_empty() {
            if !object.meta().deleting && !self.stuck.contains(&key) {
                self.fresh.insert(key);
            }
            return;
        }
        self.fresh.remove(&key);
        self.stuck.remove(&key);
        if matches!(object.field("status.phase"), Some("Succeeded" | "Failed")) {
            return;
        }
        let now = state.now();
        let pod = object.packed();
        let life = ContainerLifecycle::new(script_of(state, object), RestartPolicy::for_pod(&pod), now);
        self.nodes.adjust_load(node, 1);
        let stop = object.meta().deleting.then_some(now);
        let guest = Guest {
            uid: object.meta().uid.clone(),
            node: node.into(),
            ip: self.addresses.take(),
            life,
            bound: now,
            alarm: None,
            stop,
        };
        self.guests.insert(key.clone(), guest);
        self.set_alarm(&key, Some(now));
    }

    fn forget(&mut self, key: &str) {
        self.fresh.remove(key);
        self.stuck.remove(key);
        self.set_alarm(key, None);
        if let Some(guest) = self.guests.remove(key) {
            self.nodes.adjust_load(&guest.node, -1);
            self.addresses.release(&guest.ip);
        }
    }

    fn set_alarm(&mut self, key: &str, at: Option<Instant>) {
        let Some(guest) = self.guests.get_mut(key) else {
            return;
        };
        if let Some(old) = guest.alarm.take() {
            self.alarms.remove(&(old, Box::from(key)));
        }
        guest.alarm = at;
        if let Some(at) = at {
            self.alarms.insert((at, key.into()));
        }
    }

    /// Gives homeless pods a node each, if one suits.
    fn schedule(&mut self, state: &mut State, pods: &Arc<Resource>) {
        if self.nodes.take_changed() {
            self.fresh.append(&mut self.stuck);
        }
        for key in std::mem::take(&mut self.fresh) {
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
                self.stuck.insert(key.clone());
                write_status(state, &target, "kube-scheduler", &mut |pod, now| {
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

    /// Lets every pod whose moment has come live on.
    fn live(&mut self, state: &mut State, pods: &Arc<Resource>) {
        let now = state.now();
        while let Some((at, _)) = self.alarms.first()
            && *at <= now
            && let Some((_, key)) = self.alarms.pop_first()
        {
            let Some(guest) = self.guests.get_mut(&key) else {
                continue;
            };
            guest.alarm = None;
            let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
            let target = Target {
                resource: pods,
                namespace,
                name,
            };
            if guest.stop.is_some_and(|stop| stop <= now) {
                told::stopping(state, &key, &guest.node);
                let blocked = state.webhooks.pending.blocked_writes;
                finish(state, &target, &guest.uid);
                if state.webhooks.pending.blocked_writes != blocked {
                    self.set_alarm(&key, Some(now.plus(PATIENCE)));
                }
                continue;
            }
            let before = guest.life.phase();
            guest.life.advance_to(now);
            let turn = (before, guest.life.phase());
            let next = guest.life.next_transition().into_iter().chain(guest.stop).min();
            let (ip, node_ip) = (guest.ip.clone(), self.nodes.ip(&guest.node));
            let view = PodStatusWriter {
                lifecycle: &guest.life,
                bound: guest.bound,
                ip: &ip,
                node_ip: &node_ip,
            };
            let blocked = state.webhooks.pending.blocked_writes;
            write_status(state, &target, "kubelet", &mut |pod, now| view.write(pod, now));
            told::turned(state, &key, &guest.node, turn);
            let next = if state.webhooks.pending.blocked_writes == blocked {
                next
            } else {
                Some(now.plus(PATIENCE))
            };
            self.set_alarm(&key, next);
        }
    }
}

/// How soon a write is tried again that waits for an answer from outside.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// The pod has stopped: it leaves the store.
fn finish(state: &mut State, target: &Target<'_>, uid: &str) {
    let options = DeleteOptions {
        grace: Some(0),
        uid: Some(uid.to_owned()),
        ..DeleteOptions::default()
    };
    let mut context = Context::for_controller("kubelet");
    let _ = write::delete(state, target, &options, &mut context);
}

fn object_grace(object: &Object) -> std::time::Duration {
    let value = object.packed();
    let seconds = tree::int(&value, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Writes a pod's status as `who`.
fn write_status(
    state: &mut State,
    target: &Target<'_>,
    who: &'static str,
    how: &mut dyn FnMut(&mut Value, Instant),
) {
    let mut context = Context::for_controller(who);
    "status".clone_into(&mut context.subresource);
    let now = state.now();
    let _ = write::update(state, target, &mut context, false, &mut |_, live, _| {
        let mut pod = live.cloned().unwrap_or_default();
        how(&mut pod, now);
        Ok(pod)
    });
}

fn script_of(state: &State, object: &Object) -> Script {
    let meta = object.meta();
    let hash = meta.label("pod-template-hash").unwrap_or("");
    let workload = meta
        .controller()
        .map_or(&*meta.name, |owner| workload_name(&owner.name, hash));
    let subject = PodIdentity {
        namespace: &meta.namespace,
        workload,
        label: &|key| meta.label(key),
    };
    state.scripts.choose(&subject).clone()
}
