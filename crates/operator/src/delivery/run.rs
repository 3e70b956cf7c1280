//! The loop of the delivery controllers: keeps links, plans what is due and executes plans, until it is
//! dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use http::Method;
use jiff::Timestamp;
use kube::Client;
use mainstay_api::delivery::API_VERSION;
use mainstay_cluster::connect::{Fence, Meter};
use mainstay_cluster::remote::AddressPolicy;
use mainstay_cluster::write::Writer;
use mainstay_rollout::plan::{Plan, Requeue};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::analysis::{MetricSource, Prometheus};
use super::execute::{Executor, Outcome};
use super::index::HostKind;
use super::link::{self, Connector, LinkContext, NetworkConnector, RunningLink};
use super::names::{ClusterKey, Name, Subject};
use super::observed::text;
use super::shared::Shared;
use super::sinks::HostSink;
use crate::clock::Clock;
use crate::report::{Observer, Report};
use crate::watch::{Target, follow_forever};

mod subjects;

/// Maximum time between two iterations of the loop.
const MAX_ITERATION_INTERVAL: Duration = Duration::from_secs(20);
/// Interval at which a process that may not write checks whether it may.
const FENCED_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks whether the definitions are installed.
const DEFINITIONS_INTERVAL: Duration = Duration::from_mins(1);
/// Age at which a list of our kinds is repeated with the next watch.
const MAX_LIST_AGE: Duration = Duration::from_mins(3);
/// Attempts to plan a deployment while drift is found.
const MAX_PLANS: usize = 3;

/// Options of the delivery controllers.
#[derive(Clone)]
pub struct DeliveryOptions {
    /// Creates clients for other clusters.
    pub connector: Arc<dyn Connector>,
    /// Measures metrics.
    pub metrics: Arc<dyn MetricSource>,
    /// Maximum number of plans that are executed at the same time.
    pub max_concurrent: usize,
}

impl DeliveryOptions {
    /// Returns options that connect over the network, also to local addresses if `allow_local`.
    #[must_use]
    pub fn for_network(allow_local: bool) -> Self {
        let policy = AddressPolicy { allow_local };
        Self {
            connector: Arc::new(NetworkConnector { policy }),
            metrics: Arc::new(Prometheus { policy }),
            max_concurrent: crate::DEFAULT_MAX_CONCURRENT_RECONCILES,
        }
    }
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self::for_network(false)
    }
}

impl fmt::Debug for DeliveryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryOptions")
            .field("max_concurrent", &self.max_concurrent)
            .finish_non_exhaustive()
    }
}

/// The delivery controllers and what they need to run.
pub struct Delivery {
    /// A client for the host cluster.
    pub client: Client,
    /// Whether this process may write.
    pub fence: Fence,
    /// Counts API calls.
    pub meter: Meter,
    /// The source of time.
    pub clock: Clock,
    /// Identity of this process in events.
    pub identity: String,
    /// Receives reports.
    pub observer: Arc<dyn Observer>,
    /// Options.
    pub options: DeliveryOptions,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Delivery({})", self.identity)
    }
}

impl Delivery {
    /// Waits until the definitions are installed, then reconciles until the future is dropped.
    pub async fn run(self) {
        let shared = Arc::new(Shared::new(self.fence, self.meter, self.clock));
        let client = shared.guard(self.client);
        let host = Writer::new(client.clone());
        while !has_definitions(&host).await {
            sleep(DEFINITIONS_INTERVAL).await;
        }
        let watches = start_watches(&client, &shared);
        let work = Loop {
            executor: Executor {
                shared: shared.clone(),
                host,
                metrics: self.options.metrics,
                observer: self.observer,
                identity: self.identity,
            },
            context: LinkContext {
                shared: shared.clone(),
                host: client,
                connector: self.options.connector,
            },
            shared,
            links: BTreeMap::new(),
            max_concurrent: self.options.max_concurrent.max(1),
            _watches: watches,
        };
        work.run().await;
    }
}

/// Whether the API server serves all kinds of ours.
async fn has_definitions(host: &Writer) -> bool {
    let path = format!("/apis/{API_VERSION}");
    let Ok(list) = host.call(Method::GET, &path, None).await else {
        return false;
    };
    let resources = list.get("resources").and_then(Value::as_array);
    let served: BTreeSet<&str> = resources
        .into_iter()
        .flatten()
        .map(|one| text(one, "/name"))
        .collect();
    HostKind::ALL.iter().all(|kind| served.contains(kind.plural()))
}

fn start_watches(client: &Client, shared: &Arc<Shared>) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    for kind in HostKind::ALL {
        let target = Target {
            path: format!("/apis/{API_VERSION}/{}", kind.plural()),
            selector: "",
            is_metadata: false,
            is_optional: true,
            max_list_age: MAX_LIST_AGE,
        };
        let sink = HostSink {
            shared: shared.clone(),
            kind,
            names: BTreeSet::new(),
        };
        watches.spawn(follow_forever(client.clone(), target, sink));
    }
    watches
}

/// A link and the input of its last check.
struct KeptLink {
    _task: RunningLink,
    /// Generation of the Cluster object, and number of kinds to watch.
    seen: (i64, usize),
}

struct Loop {
    shared: Arc<Shared>,
    executor: Executor,
    context: LinkContext,
    links: BTreeMap<ClusterKey, KeptLink>,
    max_concurrent: usize,
    _watches: JoinSet<()>,
}

/// The result of a reconciliation.
struct Finished {
    subject: Subject,
    outcome: Outcome,
    requeue: Requeue,
}

impl Loop {
    async fn run(mut self) {
        let executor = &self.executor;
        let mut running: FuturesUnordered<BoxFuture<'_, Finished>> = FuturesUnordered::new();
        loop {
            keep_links(&self.shared, &self.context, &mut self.links);
            let may_write = self.shared.may_write();
            while may_write && running.len() < self.max_concurrent {
                let now = self.shared.now();
                let Some(subject) = self.shared.with(|index| index.queue.start_next(now)) else {
                    break;
                };
                running.push(Box::pin(reconcile(executor, subject)));
            }
            self.report();
            let has_capacity = running.len() < self.max_concurrent;
            let wait = self.time_to_next_due(may_write);
            tokio::select! {
                () = self.shared.enqueued.notified(), if has_capacity => {}
                Some(finished) = running.next() => finish(&self.shared, finished),
                () = sleep(wait) => {}
            }
        }
    }

    fn report(&self) {
        let objects = self.shared.with(|index| index.object_count());
        let cache = "delivery";
        self.executor.observer.report(&Report::Cached { cache, objects });
    }

    fn time_to_next_due(&self, may_write: bool) -> Duration {
        if !may_write {
            return FENCED_INTERVAL;
        }
        let due = self.shared.with(|index| index.queue.next_due());
        let wait = due.map(|due| due.duration_since(self.shared.now()));
        let wait = wait.map_or(MAX_ITERATION_INTERVAL, |wait| {
            Duration::try_from(wait).unwrap_or_default()
        });
        wait.clamp(Duration::from_millis(1), MAX_ITERATION_INTERVAL)
    }
}

/// Starts the links of new Clusters, ends those of deleted ones, and checks those whose input changed.
fn keep_links(shared: &Arc<Shared>, context: &LinkContext, links: &mut BTreeMap<ClusterKey, KeptLink>) {
    let wanted = shared.with(|index| {
        let mut wanted = BTreeMap::from([(ClusterKey::Host, 0)]);
        if index.is_host_listed() {
            for name in index.clusters.names() {
                let generation = index
                    .clusters
                    .get(name)
                    .map_or(0, |cluster| cluster.metadata.generation);
                wanted.insert(ClusterKey::Remote(name.clone()), generation);
            }
        }
        let types = |key: &ClusterKey| index.cluster(key).map_or(0, |state| state.types().count());
        wanted
            .into_iter()
            .map(|(key, generation)| {
                let seen = (generation, types(&key));
                (key, seen)
            })
            .collect::<BTreeMap<_, _>>()
    });
    links.retain(|key, _| {
        let is_wanted = wanted.contains_key(key);
        if !is_wanted {
            shared.set_writer(key, None);
            shared.with(|index| index.drop_link(key));
        }
        is_wanted
    });
    for (key, seen) in wanted {
        match links.get_mut(&key) {
            Some(kept) if kept.seen != seen => {
                kept.seen = seen;
                shared.request_check(&key);
            }
            Some(_) => {}
            None => {
                let task = link::start(context.clone(), key.clone());
                links.insert(key, KeptLink { _task: task, seen });
            }
        }
    }
}

fn finish(shared: &Shared, finished: Finished) {
    let Finished {
        subject,
        outcome,
        requeue,
    } = finished;
    let now = shared.now();
    shared.with(|index| match outcome {
        Outcome::Succeeded => {
            index.queue.succeed(&subject);
            match requeue {
                Requeue::OnEvent => {}
                Requeue::At(at) => index.queue.enqueue(subject, at),
                Requeue::Immediately => index.enqueue(subject),
            }
        }
        Outcome::Stale => index.queue.fail(&subject, now),
        Outcome::Failed(message) => {
            tracing::warn!(subject = %subject, message, "reconciliation failed");
            index.queue.fail(&subject, now);
        }
    });
}

async fn reconcile(executor: &Executor, subject: Subject) -> Finished {
    let (outcome, requeue) = match &subject {
        Subject::Cluster(name) => (executor.reconcile_cluster(name).await, Requeue::OnEvent),
        Subject::Application(name) => (executor.reconcile_application(name).await, Requeue::OnEvent),
        Subject::Deployment(name) => executor.reconcile_deployment(name).await,
    };
    Finished {
        subject,
        outcome,
        requeue,
    }
}

/// Plans a deployment. Returns `None` if it was deleted, or if something it depends on was not read yet: the
/// event of that object enqueues the deployment.
fn plan_deployment(
    shared: &Shared,
    name: &Name,
    now: Timestamp,
) -> Option<(mainstay_api::delivery::ApplicationDeployment, Plan)> {
    shared.with(|index| {
        for _ in 0..MAX_PLANS {
            let snapshot = index.snapshot(name, now)?;
            let mut plan = mainstay_rollout::plan(&snapshot);
            let is_resolved = index.clear_resolved_failures(name, &plan);
            if !index.note_plan(name, &plan) && !is_resolved {
                index.drop_waiting_steps(name, &mut plan, now);
                return Some((snapshot.deployment, plan));
            }
        }
        None
    })
}
