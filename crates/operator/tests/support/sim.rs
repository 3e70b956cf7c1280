//! The simulator behind a world: time is tokio's paused time, and the cluster's clock follows it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;
use mainstay_sim::auth::User;
use mainstay_sim::context::{Destination, WebhookCall, WebhookReply};
use mainstay_sim::{Cluster, Options, ReplyFuture, WebhookTransport, snapshot};
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
        cluster.set_webhook_transport(Arc::new(Injectors));
        let (begin, start) = (Instant::now(), cluster.now());
        let pacer = tokio::spawn(pace(cluster.clone(), begin, start, stride));
        Self {
            cluster,
            begin,
            start,
            pacer,
        }
    }

    /// The istiods of the Istio `default` answer their injection webhooks from now on.
    pub fn inject(&self) {
        for revision in REVISIONS {
            let name = if revision == "default" {
                "istiod".to_owned()
            } else {
                format!("istiod-{revision}")
            };
            let to = Destination::service("istio-system", &name, "/inject");
            self.cluster
                .handle_webhook(&to, move |review| reviewed(&review, injection(&review, revision)));
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
            let dead = state.faults.has_crashed(client);
            state.faults.restart_client(client);
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

impl WebhookTransport for Injectors {
    fn call(&self, call: WebhookCall) -> ReplyFuture {
        let review = reviewed(&call.body, json!({"allowed": true}));
        Box::pin(std::future::ready(WebhookReply::Response(
            200,
            review.to_string(),
        )))
    }
}

/// Whose istiods answer.
const REVISIONS: [&str; 4] = ["default", "default-v1-27-9", "default-v1-28-2", "default-v1-29-1"];

/// What Istio knows of how traffic is caught.
const MODES: [&str; 3] = ["REDIRECT", "TPROXY", "NONE"];
const MODE: &str = "sidecar.istio.io/interceptionMode";

/// As istiod answers: it marks pods, and refuses what it cannot read.
fn injection(review: &Value, revision: &str) -> Value {
    let annotations = &review["request"]["object"]["metadata"]["annotations"];
    if let Some(mode) = annotations[MODE].as_str().filter(|mode| !MODES.contains(mode)) {
        let message = format!("invalid value '{mode}' for annotation '{MODE}'");
        return json!({"allowed": false, "status": {"message": message}});
    }
    let missing = annotations
        .is_null()
        .then(|| json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    let mark = json!({"op": "add", "path": "/metadata/annotations/istio.io~1rev", "value": revision});
    let patch: Vec<Value> = missing.into_iter().chain([mark]).collect();
    let patch = STANDARD.encode(Value::from(patch).to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

fn reviewed(review: &Value, mut response: Value) -> Value {
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}
