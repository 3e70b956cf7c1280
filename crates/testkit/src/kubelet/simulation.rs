//! Simulates pods: consumes events of pods, nodes and processes and executes the next step of each pod's
//! script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use mainstay_sim::clock::Instant;
use mainstay_sim::script::{
    Addresses, ContainerLifecycle, ContainerPhase, Nodes, PodIdentity, PodStatusWriter, RestartPolicy,
    Script, Scripts, mark_unschedulable, workload_name,
};
use mainstay_sim::tree;
use serde_json::Value;
use tokio::sync::mpsc;

use super::api::Api;
use super::process::{PodBackend, ProcessEvent, Running};

/// A pod's uid: names come again, uids do not.
type Uid = String;

/// All that is known.
pub(super) struct KubeletSimulation {
    api: Api,
    scripts: Arc<Mutex<Scripts>>,
    backing: Option<Arc<dyn PodBackend>>,
    nodes: Nodes,
    addresses: Addresses,
    /// Unscheduled pods that are new, and those that no node suited.
    fresh: BTreeMap<Uid, Value>,
    stuck: BTreeMap<Uid, Value>,
    guests: BTreeMap<Uid, Guest>,
    alarms: BTreeSet<(Instant, Uid)>,
    /// Pods that came since the watch began again.
    listed: BTreeSet<Uid>,
    news: Post,
}

/// How processes tell of themselves.
type Post = (
    mpsc::UnboundedSender<(Uid, ProcessEvent)>,
    mpsc::UnboundedReceiver<(Uid, ProcessEvent)>,
);

/// A pod on a node.
struct Guest {
    pod: Value,
    node: String,
    ip: String,
    life: ContainerLifecycle,
    bound: Instant,
    alarm: Option<Instant>,
    /// When it will have stopped, after a stop request.
    stop: Option<Instant>,
    backed: bool,
    process: Option<Running>,
}

/// What a step comes to.
enum Step {
    Show(Value),
    Finish(Value),
}

/// The wall clock, in the simulator's form.
pub(super) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

impl KubeletSimulation {
    pub(super) fn new(
        api: Api,
        network: u8,
        scripts: Arc<Mutex<Scripts>>,
        backing: Option<Arc<dyn PodBackend>>,
    ) -> Self {
        Self {
            api,
            scripts,
            backing,
            nodes: Nodes::default(),
            addresses: Addresses::for_network(network),
            fresh: BTreeMap::new(),
            stuck: BTreeMap::new(),
            guests: BTreeMap::new(),
            alarms: BTreeSet::new(),
            listed: BTreeSet::new(),
            news: mpsc::unbounded_channel(),
        }
    }

    /// Runs until dropped.
    pub(super) async fn run(mut self) {
        let mut pods = watch::<Pod>(&self.api.kubelet);
        let mut nodes = watch::<Node>(&self.api.kubelet);
        loop {
            let alarm = self.alarms.first().map(|(at, _)| at.since(now()));
            tokio::select! {
                Some(event) = nodes.next() => self.handle_node(event),
                Some(event) = pods.next() => self.handle_pod(event),
                Some((uid, news)) = self.news.1.recv() => self.handle_process(&uid, news),
                () = wait(alarm) => {}
            }
            self.schedule().await;
            self.live().await;
        }
    }

    fn handle_node(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Apply(node) | Event::InitApply(node) => {
                let name = node.metadata.name.clone().unwrap_or_default();
                self.nodes.put(&name, serde_json::to_value(node).ok());
            }
            Event::Delete(node) => self.nodes.put(&node.metadata.name.unwrap_or_default(), None),
            Event::Init | Event::InitDone => {}
        }
    }

    fn handle_pod(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Apply(pod) | Event::InitApply(pod) => {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                self.listed.insert(uid.clone());
                if let Ok(pod) = serde_json::to_value(pod) {
                    self.receive(uid, pod);
                }
            }
            Event::Delete(pod) => self.forget(&pod.metadata.uid.unwrap_or_default()),
            Event::Init => self.listed.clear(),
            Event::InitDone => self.forget_lost(),
        }
    }

    /// After a gap in the watch all pods come again: those that did not have gone meanwhile.
    fn forget_lost(&mut self) {
        let known = self
            .guests
            .keys()
            .chain(self.fresh.keys())
            .chain(self.stuck.keys());
        let lost: Vec<Uid> = known.filter(|uid| !self.listed.contains(*uid)).cloned().collect();
        for uid in lost {
            self.forget(&uid);
        }
    }

    fn receive(&mut self, uid: Uid, pod: Value) {
        let deleting = tree::get(&pod, &["metadata", "deletionTimestamp"]).is_some();
        let bound = !tree::text(&pod, &["spec", "nodeName"]).is_empty();
        if let Some(guest) = self.guests.get_mut(&uid) {
            guest.learn(pod);
            if deleting && guest.stop.is_none() {
                let stop = guest.begin_to_stop();
                self.set_alarm(&uid, Some(stop));
            }
        } else if bound {
            self.welcome(&uid, pod);
        } else if !deleting && !self.stuck.contains_key(&uid) {
            self.fresh.insert(uid, pod);
        }
    }

    /// A pod with a node begins to live.
    fn welcome(&mut self, uid: &Uid, pod: Value) {
        self.fresh.remove(uid);
        self.stuck.remove(uid);
        let over = ["Succeeded", "Failed"].contains(&tree::text(&pod, &["status", "phase"]));
        let deleting = tree::get(&pod, &["metadata", "deletionTimestamp"]).is_some();
        if over && !deleting {
            return;
        }
        let (now, ip) = (now(), self.addresses.take());
        let backed = self
            .backing
            .as_ref()
            .is_some_and(|backing| backing.back(&pod, &ip).is_some());
        let script = if backed {
            Script::never_ready()
        } else {
            self.script(&pod)
        };
        let node = tree::text(&pod, &["spec", "nodeName"]).to_owned();
        self.nodes.adjust_load(&node, 1);
        let guest = Guest {
            life: ContainerLifecycle::new(script, RestartPolicy::for_pod(&pod), now),
            pod,
            node,
            ip,
            bound: now,
            alarm: None,
            stop: deleting.then_some(now),
            backed,
            process: None,
        };
        self.guests.insert(uid.clone(), guest);
        self.set_alarm(uid, Some(now));
    }

    fn script(&self, pod: &Value) -> Script {
        let owners = tree::list(pod, &["metadata", "ownerReferences"]);
        let owner = owners.iter().find(|owner| tree::flag(owner, &["controller"]));
        let label = |key: &str| tree::get(pod, &["metadata", "labels", key]).and_then(Value::as_str);
        let own = tree::text(pod, &["metadata", "name"]);
        let workload = owner.map_or(own, |owner| {
            let hash = label("pod-template-hash").unwrap_or("");
            workload_name(tree::text(owner, &["name"]), hash)
        });
        let subject = PodIdentity {
            namespace: tree::text(pod, &["metadata", "namespace"]),
            workload,
            restart: RestartPolicy::for_pod(pod),
            label: &label,
        };
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.choose(&subject).clone()
    }

    fn handle_process(&mut self, uid: &str, news: ProcessEvent) {
        let Some(guest) = self.guests.get_mut(uid) else {
            return;
        };
        match news {
            ProcessEvent::Ready(ready) => guest.life.set_ready(ready),
            ProcessEvent::Exited(code) => {
                guest.process = None;
                guest.life.exit(now(), code);
                if guest.stop.is_some() {
                    guest.stop = Some(now());
                }
            }
        }
        self.set_alarm(uid, Some(now()));
    }

    fn forget(&mut self, uid: &str) {
        self.listed.remove(uid);
        self.fresh.remove(uid);
        self.stuck.remove(uid);
        self.set_alarm(uid, None);
        if let Some(guest) = self.guests.remove(uid) {
            self.nodes.adjust_load(&guest.node, -1);
            self.addresses.release(&guest.ip);
        }
    }

    fn set_alarm(&mut self, uid: &str, at: Option<Instant>) {
        let Some(guest) = self.guests.get_mut(uid) else {
            return;
        };
        if let Some(old) = guest.alarm.take() {
            self.alarms.remove(&(old, uid.to_owned()));
        }
        guest.alarm = at;
        if let Some(at) = at {
            self.alarms.insert((at, uid.to_owned()));
        }
    }

    /// Schedules pending pods, if a node suits.
    async fn schedule(&mut self) {
        if self.nodes.take_changed() {
            self.fresh.append(&mut self.stuck);
        }
        let mut suited = Vec::new();
        let mut rejected = Vec::new();
        for (uid, mut pod) in std::mem::take(&mut self.fresh) {
            if let Some(node) = self.nodes.choose(&pod) {
                self.nodes.expect_pod(&node);
                suited.push((uid, pod, node));
            } else {
                let text = format!("0/{} nodes are available.", self.nodes.count());
                mark_unschedulable(&mut pod, now(), &text);
                rejected.push(pod.clone());
                self.stuck.insert(uid, pod);
            }
        }
        self.nodes.clear_expected();
        let replies = join_all(suited.iter().map(|(_, pod, node)| self.api.bind(pod, node))).await;
        for ((uid, mut pod, node), reply) in suited.into_iter().zip(replies) {
            // A pod that could not be bound is gone, or returns with the watch.
            if reply.is_ok() {
                tree::set(&mut pod, &["spec", "nodeName"], node);
                self.welcome(&uid, pod);
            }
        }
        join_all(rejected.iter().map(|pod| self.api.write_status(pod, true))).await;
    }

    /// Every pod whose next step is due, once each.
    fn take_due(&mut self, now: Instant) -> Vec<Uid> {
        let mut due = Vec::new();
        while self.alarms.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, uid)) = self.alarms.pop_first()
        {
            if let Some(guest) = self.guests.get_mut(&uid) {
                guest.alarm = None;
                due.push(uid);
            }
        }
        due
    }

    /// Executes the due steps of all pods.
    async fn live(&mut self) {
        let now = now();
        let mut steps = Vec::new();
        for uid in self.take_due(now) {
            let Some(guest) = self.guests.get_mut(&uid) else {
                continue;
            };
            let node_ip = self.nodes.ip(&guest.node);
            let step = guest.step(now, &node_ip);
            guest.keep_process(&uid, self.backing.as_ref(), &self.news.0);
            // Who has stopped waits for nothing but the server's reply.
            let next = guest.next().filter(|_| matches!(step, Step::Show(_)));
            steps.push((uid.clone(), step));
            self.set_alarm(&uid, next);
        }
        let api = &self.api;
        let done = join_all(steps.into_iter().map(|(uid, step)| async move {
            match step {
                Step::Show(pod) => (uid, api.write_status(&pod, false).await),
                Step::Finish(pod) => (uid, api.delete(&pod).await),
            }
        }));
        for (uid, reply) in done.await {
            self.settle(&uid, reply);
        }
    }

    /// The next step starts from the reply; a deleted pod is removed, and any other failure is retried.
    fn settle(&mut self, uid: &str, reply: Result<Value, Box<kube::Error>>) {
        match reply {
            Ok(pod) if tree::text(&pod, &["metadata", "uid"]) == uid => {
                if let Some(guest) = self.guests.get_mut(uid) {
                    guest.learn(pod);
                }
            }
            Ok(_) => {}
            Err(error) if matches!(&*error, kube::Error::Api(status) if [404, 409].contains(&status.code)) => {
                self.forget(uid);
            }
            Err(_) => self.set_alarm(uid, Some(now().plus(AGAIN))),
        }
    }
}

/// How long to wait when the server does not response.
const AGAIN: Duration = Duration::from_millis(200);

impl Guest {
    /// The pod as it is stored, unless that is older than what is known.
    fn learn(&mut self, pod: Value) {
        let version = |pod: &Value| {
            tree::text(pod, &["metadata", "resourceVersion"])
                .parse()
                .unwrap_or(0_u64)
        };
        if version(&pod) >= version(&self.pod) {
            self.pod = pod;
        }
    }

    /// Handles a stop request; returns when the pod will have stopped.
    fn begin_to_stop(&mut self) -> Instant {
        let seconds = tree::int(&self.pod, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        let grace = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let within = match &mut self.process {
            Some(process) => {
                process.stop(grace);
                // Its exit ends the wait; this is the fallback.
                grace + AGAIN
            }
            None => self.life.stop().min(grace),
        };
        let stop = now().plus(within);
        self.stop = Some(stop);
        stop
    }

    fn step(&mut self, now: Instant, node_ip: &str) -> Step {
        if self.stop.is_some_and(|stop| stop <= now) {
            return Step::Finish(self.pod.clone());
        }
        self.life.advance_to(now);
        let view = PodStatusWriter {
            lifecycle: &self.life,
            bound: self.bound,
            ip: &self.ip,
            node_ip,
        };
        let mut pod = self.pod.clone();
        view.write(&mut pod, now);
        Step::Show(pod)
    }

    fn next(&self) -> Option<Instant> {
        self.life.next_transition().into_iter().chain(self.stop).min()
    }

    /// A run of a backed pod is a process.
    fn keep_process(
        &mut self,
        uid: &str,
        backing: Option<&Arc<dyn PodBackend>>,
        news: &mpsc::UnboundedSender<(Uid, ProcessEvent)>,
    ) {
        let runs = matches!(self.life.phase(), ContainerPhase::Running { .. });
        if !self.backed || !runs || self.process.is_some() || self.stop.is_some() {
            return;
        }
        if let Some(making) = backing.and_then(|backing| backing.back(&self.pod, &self.ip)) {
            self.process = Some(Running::start(making, uid.to_owned(), news.clone()));
        }
    }
}

/// All objects of a kind as they are and change. Errors of the watch are waited out: the server may be away
/// for a while.
fn watch<K>(client: &Client) -> BoxStream<'static, Event<DynamicObject>>
where
    K: kube::Resource<DynamicType = ()>,
{
    let kind = ApiResource::erase::<K>(&());
    let api = kube::Api::<DynamicObject>::all_with(client.clone(), &kind);
    let events = watcher(api, watcher::Config::default()).backoff(Steady);
    events.filter_map(async |event| event.ok()).boxed()
}

/// Outages of the server are part of tests: the kubelet must be back as soon as it is.
pub(crate) struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(AGAIN)
    }
}

impl kube::runtime::utils::Backoff for Steady {
    fn reset(&mut self) {}
}

/// Waits so long; for ever when there is nothing to wait for.
async fn wait(alarm: Option<Duration>) {
    match alarm {
        Some(alarm) => tokio::time::sleep(alarm).await,
        None => std::future::pending().await,
    }
}
