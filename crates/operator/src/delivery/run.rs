//! Control loop of the delivery controllers: maintains the links to clusters, plans due subjects and
//! executes the plans, until the future is dropped.

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
use super::shared::Shared;
use super::sinks::HostSink;
use crate::clock::Clock;
use crate::control_loop::{CRD_CHECK_INTERVAL, FENCED_INTERVAL, time_to_next_iteration};
use crate::object::string_at;
use crate::report::{Observer, Report};
use crate::watch::{SMALL_RELIST_INTERVAL, Target, follow_forever};

mod subjects;

/// Maximum number of attempts to plan a deployment. A plan that finds drift, clears failures or adds
/// watched kinds is made again.
const MAX_PLANS: usize = 3;

/// Options of the delivery controllers.
#[derive(Clone)]
pub struct DeliveryOptions {
    /// Factory of clients for other clusters.
    pub connector: Arc<dyn Connector>,
    /// Source of metrics for the analysis of rollouts.
    pub metrics: Arc<dyn MetricSource>,
    /// Maximum number of plans that are executed at the same time.
    pub max_concurrent: usize,
}

impl DeliveryOptions {
    /// Returns options that connect over the network. Local addresses are allowed only if `allow_local` is
    /// set.
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

/// The delivery controllers with their dependencies.
pub struct Delivery {
    /// Client for the host cluster.
    pub client: Client,
    /// Fence that allows writes only while this process is the leader.
    pub fence: Fence,
    /// Counter of API calls.
    pub meter: Meter,
    /// Source of time.
    pub clock: Clock,
    /// Identity of this process in events.
    pub identity: String,
    /// Receiver of reports.
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
    /// Waits until the CRDs are installed, then reconciles until the future is dropped.
    pub async fn run(self) {
        let shared = Arc::new(Shared::new(self.fence, self.meter, self.clock));
        let client = shared.guard(self.client);
        let host = Writer::new(client.clone());
        while !are_crds_installed(&host).await {
            sleep(CRD_CHECK_INTERVAL).await;
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

/// Whether the API server serves every [`HostKind`].
async fn are_crds_installed(host: &Writer) -> bool {
    let path = format!("/apis/{API_VERSION}");
    let Ok(list) = host.call(Method::GET, &path, None).await else {
        return false;
    };
    let resources = list.get("resources").and_then(Value::as_array);
    let served: BTreeSet<&str> = resources
        .into_iter()
        .flatten()
        .map(|one| string_at(one, "/name"))
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
            max_list_age: SMALL_RELIST_INTERVAL,
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

/// A running link and the input of its last check.
struct ActiveLink {
    _task: RunningLink,
    /// Generation of the Cluster object, and number of watched kinds.
    input: (i64, usize),
}

struct Loop {
    shared: Arc<Shared>,
    executor: Executor,
    context: LinkContext,
    links: BTreeMap<ClusterKey, ActiveLink>,
    max_concurrent: usize,
    _watches: JoinSet<()>,
}

/// Result of a reconciliation.
struct ReconcileResult {
    subject: Subject,
    outcome: Outcome,
    requeue: Requeue,
}

impl Loop {
    async fn run(mut self) {
        let executor = &self.executor;
        let mut running: FuturesUnordered<BoxFuture<'_, ReconcileResult>> = FuturesUnordered::new();
        loop {
            update_links(&self.shared, &self.context, &mut self.links);
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
                Some(finished) = running.next() => finish_reconcile(&self.shared, finished),
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
        time_to_next_iteration(self.shared.now(), due)
    }
}

/// Starts the links of new Clusters, ends the links of deleted Clusters, and requests a check from each
/// link with changed input.
fn update_links(shared: &Arc<Shared>, context: &LinkContext, links: &mut BTreeMap<ClusterKey, ActiveLink>) {
    let desired = shared.with(|index| {
        let mut desired = BTreeMap::from([(ClusterKey::Host, 0)]);
        if index.is_host_listed() {
            for name in index.clusters.names() {
                let generation = index
                    .clusters
                    .get(name)
                    .map_or(0, |cluster| cluster.metadata.generation);
                desired.insert(ClusterKey::Remote(name.clone()), generation);
            }
        }
        let types = |key: &ClusterKey| index.cluster(key).map_or(0, |state| state.types().count());
        desired
            .into_iter()
            .map(|(key, generation)| {
                let input = (generation, types(&key));
                (key, input)
            })
            .collect::<BTreeMap<_, _>>()
    });
    links.retain(|key, _| {
        let is_wanted = desired.contains_key(key);
        if !is_wanted {
            shared.set_writer(key, None);
            shared.with(|index| index.drop_link(key));
        }
        is_wanted
    });
    for (key, input) in desired {
        match links.get_mut(&key) {
            Some(link) if link.input != input => {
                link.input = input;
                shared.request_check(&key);
            }
            Some(_) => {}
            None => {
                let task = link::start(context.clone(), key.clone());
                links.insert(key, ActiveLink { _task: task, input });
            }
        }
    }
}

fn finish_reconcile(shared: &Shared, finished: ReconcileResult) {
    let ReconcileResult {
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
        Outcome::Stale => {
            if index.queue.conflict(&subject, now) {
                tracing::warn!(subject = %subject, "repeated conflicts with other clients");
            }
        }
        Outcome::Failed(message) => {
            tracing::warn!(subject = %subject, message, "reconciliation failed");
            index.queue.fail(&subject, now);
        }
    });
}

async fn reconcile(executor: &Executor, subject: Subject) -> ReconcileResult {
    let (outcome, requeue) = match &subject {
        Subject::Cluster(name) => (executor.reconcile_cluster(name).await, Requeue::OnEvent),
        Subject::Application(name) => (executor.reconcile_application(name).await, Requeue::OnEvent),
        Subject::Deployment(name) => executor.reconcile_deployment(name).await,
    };
    ReconcileResult {
        subject,
        outcome,
        requeue,
    }
}

/// Plans a deployment. Returns `None` if it was deleted, or if an object or cluster that it depends on has
/// not been read yet. In the second case, a later event enqueues the deployment again.
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
            if !index.record_plan(name, &plan) && !is_resolved {
                index.drop_waiting_steps(name, &mut plan, now);
                return Some((snapshot.deployment, plan));
            }
        }
        None
    })
}
