//! The simulator behind a world: time is tokio's paused time, and the cluster's clock follows it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use mainstay_sim::auth::User;
use mainstay_sim::context::{Question, Reply};
use mainstay_sim::{Answering, Cluster, Options, Outside, snapshot};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::calls::{self, Call, Mark};

/// A simulated cluster with workloads in it.
pub struct Sim {
    pub cluster: Cluster,
    begin: Instant,
    start: mainstay_sim::clock::Instant,
    pacer: JoinHandle<()>,
}

/// How often the cluster's clock is moved.
const STRIDE: Duration = Duration::from_secs(1);
/// The same where much time passes in which nothing happens.
const LONG_STRIDE: Duration = Duration::from_secs(4);

impl Sim {
    pub fn new(seed: u64) -> Self {
        Self::pacing(seed, STRIDE)
    }

    /// With a clock that moves in strides of this length.
    pub fn pacing(seed: u64, stride: Duration) -> Self {
        let cluster = Cluster::new(Options {
            seed,
            ..Options::default()
        });
        Self::over(cluster, stride)
    }

    /// As another one was.
    pub fn loaded(state: Vec<Value>) -> Self {
        let cluster = Cluster::new(Options::default());
        cluster.with(|inner| {
            let loaded = snapshot::load(inner, state);
            assert_eq!(loaded.skipped, [""; 0], "not loaded");
        });
        Self::over(cluster, LONG_STRIDE)
    }

    fn over(cluster: Cluster, stride: Duration) -> Self {
        cluster.run_workloads(3);
        cluster.set_outside(Arc::new(Injectors));
        let (begin, start) = (Instant::now(), cluster.now());
        let pacer = tokio::spawn(pace(cluster.clone(), begin, start, stride));
        Self {
            cluster,
            begin,
            start,
            pacer,
        }
    }

    /// A client of an administrator.
    pub fn client(&self, name: &str) -> Client {
        Client::new(self.cluster.connect(name), "default")
    }

    /// A client of somebody who may do what his roles allow.
    pub fn limited_client(&self, name: &str) -> Client {
        let user = User::named(name, &["operators"]);
        Client::new(self.cluster.connect_as(name, user), "default")
    }

    /// What the operator takes for the time.
    pub fn clock(&self) -> super::operator::Clock {
        let (begin, start) = (self.begin, self.start);
        super::operator::clock(move || {
            let now = start.plus(begin.elapsed());
            Timestamp::from_microsecond(now.as_micros()).unwrap()
        })
    }

    /// The cluster's clock shows what tokio's does.
    pub fn catch_up(&self) {
        catch_up(&self.cluster, self.begin, self.start);
    }

    /// Whether the operator's process has died by a fault; it is alive again afterwards.
    pub fn bury(&self, client: &str) -> bool {
        self.cluster.with(|state| {
            let dead = state.faults.is_dead(client);
            state.faults.revive(client);
            dead
        })
    }

    /// The past is forgotten: whoever asks for what came after it must list anew.
    pub fn compact(&self) {
        self.cluster.with(|state| {
            let version = state.store.version() + 1;
            state.store.advance_version(version);
            state.store.compact(version);
        });
    }

    pub fn mark(&self) -> Mark {
        Mark::Trace(self.cluster.with(|state| state.trace.text().len()))
    }

    pub fn calls(&self, from: usize) -> Vec<Call> {
        self.cluster.with(|state| {
            state.trace.text()[from..]
                .lines()
                .filter_map(calls::of_trace)
                .collect()
        })
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.pacer.abort();
    }
}

fn catch_up(cluster: &Cluster, begin: Instant, start: mainstay_sim::clock::Instant) {
    let lag = start.plus(begin.elapsed()).since(cluster.now());
    if !lag.is_zero() {
        cluster.advance(lag);
    }
}

async fn pace(cluster: Cluster, begin: Instant, start: mainstay_sim::clock::Instant, stride: Duration) {
    loop {
        let due = cluster.due().map_or(stride, |due| due.since(cluster.now()));
        tokio::time::sleep(due.clamp(Duration::from_millis(1), stride)).await;
        catch_up(&cluster, begin, start);
    }
}

/// Whoever is asked admits everything: injection is not what is tried here.
struct Injectors;

impl Outside for Injectors {
    fn ask(&self, question: Question) -> Answering {
        let response = json!({"uid": question.body["request"]["uid"], "allowed": true});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Box::pin(std::future::ready(Reply::Answer(200, review.to_string())))
    }
}
