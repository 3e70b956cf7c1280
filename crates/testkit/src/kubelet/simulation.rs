//! Simulates pods: processes events of pods, nodes and processes, and executes the next step of each pod's
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

/// A pod's uid. Pods are identified by uid because names are reused.
type Uid = String;

/// State of the simulated kubelet and scheduler.
pub(super) struct KubeletSimulation {
    api: Api,
    scripts: Arc<Mutex<Scripts>>,
    backend: Option<Arc<dyn PodBackend>>,
    nodes: Nodes,
    addresses: Addresses,
    /// Pods to schedule.
    pending: BTreeMap<Uid, Value>,
    /// Pods that fit no node. They are retried when a node changes.
    unschedulable: BTreeMap<Uid, Value>,
    scheduled: BTreeMap<Uid, ScheduledPod>,
    timers: BTreeSet<(Instant, Uid)>,
    /// Pods received since the current relist began.
    listed: BTreeSet<Uid>,
    process_events: ProcessEvents,
}

/// Channel for the events of pod processes.
type ProcessEvents = (
    mpsc::UnboundedSender<(Uid, ProcessEvent)>,
    mpsc::UnboundedReceiver<(Uid, ProcessEvent)>,
);

/// A pod on a node.
struct ScheduledPod {
    pod: Value,
    node: String,
    ip: String,
    life: ContainerLifecycle,
    bound: Instant,
    timer: Option<Instant>,
    /// Time at which the pod stops, if its deletion was requested.
    stop: Option<Instant>,
    backed: bool,
    process: Option<Running>,
}

/// The API call that a step requires.
enum Step {
    WriteStatus(Value),
    Delete(Value),
}

/// Returns the current time as the simulator's type.
pub(super) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

impl KubeletSimulation {
    pub(super) fn new(
        api: Api,
        network: u8,
        scripts: Arc<Mutex<Scripts>>,
        backend: Option<Arc<dyn PodBackend>>,
    ) -> Self {
        Self {
            api,
            scripts,
            backend,
            nodes: Nodes::default(),
            addresses: Addresses::for_network(network),
            pending: BTreeMap::new(),
            unschedulable: BTreeMap::new(),
            scheduled: BTreeMap::new(),
            timers: BTreeSet::new(),
            listed: BTreeSet::new(),
            process_events: mpsc::unbounded_channel(),
        }
    }

    /// Runs until the future is dropped.
    pub(super) async fn run(mut self) {
        let mut pods = watch::<Pod>(&self.api.kubelet);
        let mut nodes = watch::<Node>(&self.api.kubelet);
        loop {
            let timer = self.time_to_next_step();
            tokio::select! {
                Some(event) = nodes.next() => self.handle_node(event),
                Some(event) = pods.next() => self.handle_pod(event),
                Some((uid, event)) = self.process_events.1.recv() => self.handle_process(&uid, event),
                () = wait(timer) => {}
            }
            self.schedule().await;
            self.run_due_steps().await;
        }
    }

    /// Returns the time until the next timer or retry.
    fn time_to_next_step(&self) -> Option<Duration> {
        let timer = self.timers.first().map(|(at, _)| at.since(now()));
        let retry = (!self.pending.is_empty()).then_some(RETRY_INTERVAL);
        timer.into_iter().chain(retry).min()
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
            Event::Delete(pod) => self.remove_pod(&pod.metadata.uid.unwrap_or_default()),
            Event::Init => self.listed.clear(),
            Event::InitDone => self.remove_unlisted(),
        }
    }

    /// Removes the pods that the last relist did not contain.
    fn remove_unlisted(&mut self) {
        let known = self
            .scheduled
            .keys()
            .chain(self.pending.keys())
            .chain(self.unschedulable.keys());
        let lost: Vec<Uid> = known.filter(|uid| !self.listed.contains(*uid)).cloned().collect();
        for uid in lost {
            self.remove_pod(&uid);
        }
    }

    fn receive(&mut self, uid: Uid, pod: Value) {
        let deleting = tree::get(&pod, &["metadata", "deletionTimestamp"]).is_some();
        let bound = !tree::text(&pod, &["spec", "nodeName"]).is_empty();
        if let Some(entry) = self.scheduled.get_mut(&uid) {
            entry.update(pod);
            if deleting && entry.stop.is_none() {
                let stop = entry.begin_stop();
                self.set_timer(&uid, Some(stop));
            }
        } else if bound {
            self.start_pod(&uid, pod);
        } else if !deleting && !self.unschedulable.contains_key(&uid) {
            self.pending.insert(uid, pod);
        }
    }

    /// Starts the lifecycle of a pod that is bound to a node.
    fn start_pod(&mut self, uid: &Uid, pod: Value) {
        self.pending.remove(uid);
        self.unschedulable.remove(uid);
        let over = ["Succeeded", "Failed"].contains(&tree::text(&pod, &["status", "phase"]));
        let deleting = tree::get(&pod, &["metadata", "deletionTimestamp"]).is_some();
        if over && !deleting {
            return;
        }
        let (now, ip) = (now(), self.addresses.allocate());
        let backed = self
            .backend
            .as_ref()
            .is_some_and(|backend| backend.create_process(&pod, &ip).is_some());
        let script = if backed {
            Script::never_ready()
        } else {
            self.script(&pod)
        };
        let node = tree::text(&pod, &["spec", "nodeName"]).to_owned();
        self.nodes.adjust_load(&node, 1);
        let entry = ScheduledPod {
            life: ContainerLifecycle::new(script, RestartPolicy::for_pod(&pod), now),
            pod,
            node,
            ip,
            bound: now,
            timer: None,
            stop: deleting.then_some(now),
            backed,
            process: None,
        };
        self.scheduled.insert(uid.clone(), entry);
        self.set_timer(uid, Some(now));
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

    fn handle_process(&mut self, uid: &str, event: ProcessEvent) {
        let Some(entry) = self.scheduled.get_mut(uid) else {
            return;
        };
        match event {
            ProcessEvent::Ready(ready) => entry.life.set_ready(ready),
            ProcessEvent::Exited(code) => {
                entry.process = None;
                entry.life.exit(now(), code);
                if entry.stop.is_some() {
                    entry.stop = Some(now());
                }
            }
        }
        self.set_timer(uid, Some(now()));
    }

    fn remove_pod(&mut self, uid: &str) {
        self.listed.remove(uid);
        self.pending.remove(uid);
        self.unschedulable.remove(uid);
        self.set_timer(uid, None);
        if let Some(entry) = self.scheduled.remove(uid) {
            self.nodes.adjust_load(&entry.node, -1);
            self.addresses.release(&entry.ip);
        }
    }

    fn set_timer(&mut self, uid: &str, at: Option<Instant>) {
        let Some(entry) = self.scheduled.get_mut(uid) else {
            return;
        };
        if let Some(old) = entry.timer.take() {
            self.timers.remove(&(old, uid.to_owned()));
        }
        entry.timer = at;
        if let Some(at) = at {
            self.timers.insert((at, uid.to_owned()));
        }
    }

    /// Binds pending pods to nodes and marks those that fit no node.
    async fn schedule(&mut self) {
        if self.nodes.take_changed() {
            self.pending.append(&mut self.unschedulable);
        }
        let mut suited = Vec::new();
        let mut rejected = Vec::new();
        for (uid, mut pod) in std::mem::take(&mut self.pending) {
            if let Some(node) = self.nodes.choose(&pod) {
                self.nodes.expect_pod(&node);
                suited.push((uid, pod, node));
            } else {
                let text = format!("0/{} nodes are available.", self.nodes.count());
                mark_unschedulable(&mut pod, now(), &text);
                rejected.push(pod.clone());
                self.unschedulable.insert(uid, pod);
            }
        }
        self.nodes.clear_expected();
        let replies = join_all(suited.iter().map(|(_, pod, node)| self.api.bind(pod, node))).await;
        for ((uid, mut pod, node), reply) in suited.into_iter().zip(replies) {
            match reply {
                Ok(_) => {
                    tree::set(&mut pod, &["spec", "nodeName"], node);
                    self.start_pod(&uid, pod);
                }
                // The pod was deleted, or an earlier bind whose response was lost has succeeded: the watch
                // delivers both.
                Err(error) if is_missing_or_conflict(&error) => {}
                // A resumed watch does not deliver the pod again.
                Err(_) => {
                    self.pending.insert(uid, pod);
                }
            }
        }
        join_all(rejected.iter().map(|pod| self.api.write_status(pod, true))).await;
    }

    /// Returns every pod that has a due step, each once.
    fn take_due(&mut self, now: Instant) -> Vec<Uid> {
        let mut due = Vec::new();
        while self.timers.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, uid)) = self.timers.pop_first()
        {
            if let Some(entry) = self.scheduled.get_mut(&uid) {
                entry.timer = None;
                due.push(uid);
            }
        }
        due
    }

    /// Executes the due steps of all pods.
    async fn run_due_steps(&mut self) {
        let now = now();
        let mut steps = Vec::new();
        for uid in self.take_due(now) {
            let Some(entry) = self.scheduled.get_mut(&uid) else {
                continue;
            };
            let node_ip = self.nodes.ip(&entry.node);
            let step = entry.step(now, &node_ip);
            entry.ensure_process(&uid, self.backend.as_ref(), &self.process_events.0);
            // A stopped pod is deleted and needs no timer.
            let next = entry.next().filter(|_| matches!(step, Step::WriteStatus(_)));
            steps.push((uid.clone(), step));
            self.set_timer(&uid, next);
        }
        let api = &self.api;
        let done = join_all(steps.into_iter().map(|(uid, step)| async move {
            match step {
                Step::WriteStatus(pod) => (uid, api.write_status(&pod, false).await),
                Step::Delete(pod) => (uid, api.delete(&pod).await),
            }
        }));
        for (uid, reply) in done.await {
            self.handle_reply(&uid, reply);
        }
    }

    /// Stores the pod of a reply. Removes a pod that no longer exists and retries after any other error.
    fn handle_reply(&mut self, uid: &str, reply: Result<Value, Box<kube::Error>>) {
        match reply {
            Ok(pod) if tree::text(&pod, &["metadata", "uid"]) == uid => {
                if let Some(entry) = self.scheduled.get_mut(uid) {
                    entry.update(pod);
                }
            }
            Ok(_) => {}
            Err(error) if is_missing_or_conflict(&error) => self.remove_pod(uid),
            Err(_) => self.set_timer(uid, Some(now().plus(RETRY_INTERVAL))),
        }
    }
}

/// Whether the object does not exist or is a different one.
fn is_missing_or_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [404, 409].contains(&status.code))
}

/// Retry interval while the API server does not respond.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

impl ScheduledPod {
    /// Replaces the pod, unless `pod` has an older resource version.
    fn update(&mut self, pod: Value) {
        let version = |pod: &Value| {
            tree::text(pod, &["metadata", "resourceVersion"])
                .parse()
                .unwrap_or(0_u64)
        };
        if version(&pod) >= version(&self.pod) {
            self.pod = pod;
        }
    }

    /// Begins to stop the pod. Returns the time at which it will have stopped.
    fn begin_stop(&mut self) -> Instant {
        let seconds = tree::int(&self.pod, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        let grace = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let within = match &mut self.process {
            Some(process) => {
                process.stop(grace);
                // Upper bound: the exit of the process ends the wait earlier.
                grace + RETRY_INTERVAL
            }
            None => self.life.stop().min(grace),
        };
        let stop = now().plus(within);
        self.stop = Some(stop);
        stop
    }

    fn step(&mut self, now: Instant, node_ip: &str) -> Step {
        if self.stop.is_some_and(|stop| stop <= now) {
            return Step::Delete(self.pod.clone());
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
        Step::WriteStatus(pod)
    }

    fn next(&self) -> Option<Instant> {
        self.life.next_transition().into_iter().chain(self.stop).min()
    }

    /// Starts the process of a backed pod whose container is running.
    fn ensure_process(
        &mut self,
        uid: &str,
        backend: Option<&Arc<dyn PodBackend>>,
        process_events: &mpsc::UnboundedSender<(Uid, ProcessEvent)>,
    ) {
        let runs = matches!(self.life.phase(), ContainerPhase::Running { .. });
        if !self.backed || !runs || self.process.is_some() || self.stop.is_some() {
            return;
        }
        if let Some(process) = backend.and_then(|backend| backend.create_process(&self.pod, &self.ip)) {
            self.process = Some(Running::start(process, uid.to_owned(), process_events.clone()));
        }
    }
}

/// Watches all objects of a kind. Errors are ignored and the watch is retried, because tests stop the API
/// server.
fn watch<K>(client: &Client) -> BoxStream<'static, Event<DynamicObject>>
where
    K: kube::Resource<DynamicType = ()>,
{
    let kind = ApiResource::erase::<K>(&());
    let api = kube::Api::<DynamicObject>::all_with(client.clone(), &kind);
    let events = watcher(api, watcher::Config::default()).backoff(ConstantBackoff);
    events.filter_map(async |event| event.ok()).boxed()
}

/// Constant back-off. Tests stop the API server, and the kubelet must reconnect shortly after a restart.
pub(crate) struct ConstantBackoff;

impl Iterator for ConstantBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY_INTERVAL)
    }
}

impl kube::runtime::utils::Backoff for ConstantBackoff {
    fn reset(&mut self) {}
}

/// Sleeps for the duration, or forever if there is none.
async fn wait(timer: Option<Duration>) {
    match timer {
        Some(timer) => tokio::time::sleep(timer).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use mainstay_sim::fault::{Fault, Rule, Trigger};
    use serde_json::json;

    use super::*;

    const PODS: &str = "/api/v1/namespaces/default/pods";

    fn client(cluster: &mainstay_sim::Cluster, name: &str) -> Client {
        Client::new(cluster.connect(name), "default")
    }

    async fn call(client: &Client, request: http::request::Builder, body: &Value) -> Value {
        let request = request.header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        client.request(request).await.unwrap()
    }

    #[tokio::test]
    async fn a_failed_bind_is_retried() {
        let cluster = mainstay_sim::Cluster::default();
        cluster.add_fault(Rule::once("scheduler", Trigger::Write(1), Fault::unavailable()));
        let api = Api {
            kubelet: client(&cluster, "kubelet"),
            scheduler: client(&cluster, "scheduler"),
        };
        api.make_node(0).await.unwrap();
        let scripts = Arc::new(Mutex::new(Scripts::default()));
        let kubelet = tokio::spawn(KubeletSimulation::new(api, 0, scripts, None).run());
        let user = client(&cluster, "user");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        });
        call(&user, Request::post(PODS), &pod).await;
        let is_ready = async {
            loop {
                let pod = call(&user, Request::get(format!("{PODS}/web")), &Value::Null).await;
                if tree::text(&pod, &["status", "phase"]) == "Running" {
                    return;
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), is_ready)
            .await
            .expect("the pod is bound and runs");
        kubelet.abort();
    }
}
