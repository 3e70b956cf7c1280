//! Control loop of the controller: reconciles due resources until the future is dropped.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::Method;
use kube::Client;
use mainstay_api::istio_operator::{API_VERSION, PLURAL};
use mainstay_catalog::Catalog;
use mainstay_cluster::connect::{Fence, Meter, guard};
use mainstay_cluster::install::Installer;
use mainstay_cluster::write::Writer;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::install::{Reconciler, Requeue};
use super::resource::ResourceWriter;
use super::shared::Shared;
use super::sinks::{ObjectSink, OperatorSink};
use crate::clock::Clock;
use crate::control_loop::{CRD_CHECK_INTERVAL, FENCED_INTERVAL, time_to_next_iteration};
use crate::delivery::Name;
use crate::report::{Observer, Outcome, Report};
use crate::watch::{SMALL_RELIST_INTERVAL, Target, follow_forever};

/// Age at which a list of owned objects is repeated before the next watch. It is longer because these lists
/// are larger.
const MAX_OBJECT_LIST_AGE: Duration = Duration::from_mins(10);
/// Query parameter that selects objects with an owning resource.
const OWNED_SELECTOR: &str = "labelSelector=install.operator.istio.io%2Fowning-resource&";

/// Options of the controller.
#[derive(Clone, Debug)]
pub struct IstioOperatorOptions {
    /// The only revision that this operator is responsible for; `None` for all.
    pub revision: Option<String>,
    /// Maximum number of resources that are reconciled at the same time.
    pub max_concurrent: usize,
}

impl Default for IstioOperatorOptions {
    fn default() -> Self {
        Self {
            revision: None,
            max_concurrent: crate::DEFAULT_MAX_CONCURRENT_RECONCILES,
        }
    }
}

/// The controller for `IstioOperator`s with its dependencies.
pub struct IstioOperatorController {
    /// Client for the cluster.
    pub client: Client,
    /// Charts to install from.
    pub catalog: Arc<Catalog>,
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
    pub options: IstioOperatorOptions,
}

impl fmt::Debug for IstioOperatorController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IstioOperatorController({})", self.identity)
    }
}

impl IstioOperatorController {
    /// Waits until the CRD is installed, then reconciles until the future is dropped.
    pub async fn run(self) {
        let client = guard(self.client, self.fence.clone(), self.meter);
        let writer = Writer::new(client.clone());
        while !is_crd_installed(&writer).await {
            sleep(CRD_CHECK_INTERVAL).await;
        }
        let shared = Arc::new(Shared::new(self.clock, self.observer));
        let mut watches = JoinSet::new();
        let sink = OperatorSink {
            shared: shared.clone(),
            names: BTreeSet::new(),
        };
        watches.spawn(follow_forever(client.clone(), operator_target(), sink));
        let reconciler = Reconciler {
            catalog: self.catalog,
            installer: Installer::new(client.clone(), Duration::ZERO),
            resources: ResourceWriter {
                writer,
                shared: shared.clone(),
                identity: self.identity,
            },
            revision: self.options.revision,
            known_kinds: Mutex::default(),
            new_kinds: Mutex::default(),
            shared,
        };
        let work = Loop {
            client,
            fence: self.fence,
            max_concurrent: self.options.max_concurrent.max(1),
            watches,
        };
        work.run(&reconciler).await;
    }
}

/// Whether the API server serves `IstioOperator`s.
pub(super) async fn is_crd_installed(writer: &Writer) -> bool {
    let path = format!("/apis/{API_VERSION}");
    let list = writer.call(Method::GET, &path, None).await.unwrap_or_default();
    let resources = list.get("resources").and_then(Value::as_array);
    resources
        .into_iter()
        .flatten()
        .any(|one| one.get("name").and_then(Value::as_str) == Some(PLURAL))
}

fn operator_target() -> Target {
    Target {
        path: format!("/apis/{API_VERSION}/{PLURAL}"),
        selector: "",
        is_metadata: false,
        is_optional: true,
        max_list_age: SMALL_RELIST_INTERVAL,
    }
}

struct Loop {
    client: Client,
    fence: Fence,
    max_concurrent: usize,
    watches: JoinSet<()>,
}

impl Loop {
    async fn run(mut self, reconciler: &Reconciler) {
        let shared = &reconciler.shared;
        let mut running: FuturesUnordered<BoxFuture<'_, (Name, Requeue)>> = FuturesUnordered::new();
        loop {
            let may_start = self.fence.is_open() && shared.with(|index| index.is_listed);
            while may_start && running.len() < self.max_concurrent {
                let now = shared.now();
                let Some(name) = shared.with(|index| index.queue.start_next(now)) else {
                    break;
                };
                running.push(Box::pin(reconcile(reconciler, name)));
            }
            self.start_watches(reconciler);
            shared.report_gauges();
            let has_capacity = running.len() < self.max_concurrent;
            let wait = time_to_next_due(shared, may_start);
            tokio::select! {
                () = shared.enqueued.notified(), if has_capacity => {}
                Some((name, requeue)) = running.next() => finish_reconcile(shared, &name, requeue),
                () = sleep(wait) => {}
            }
        }
    }

    /// Starts watches for the new kinds of plans.
    fn start_watches(&mut self, reconciler: &Reconciler) {
        let mut kinds = reconciler
            .new_kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for kind in kinds.drain(..) {
            let target = Target {
                path: kind.path(),
                selector: OWNED_SELECTOR,
                is_metadata: false,
                is_optional: true,
                max_list_age: MAX_OBJECT_LIST_AGE,
            };
            let sink = ObjectSink {
                shared: reconciler.shared.clone(),
                path: kind.path(),
                kind: kind.kind,
                names: BTreeSet::new(),
            };
            self.watches
                .spawn(follow_forever(self.client.clone(), target, sink));
        }
    }
}

fn time_to_next_due(shared: &Shared, may_start: bool) -> Duration {
    if !may_start {
        return FENCED_INTERVAL;
    }
    let due = shared.with(|index| index.queue.next_due());
    time_to_next_iteration(shared.now(), due)
}

/// Reconciles a resource. A panic (a bug) is reported as a failure, so that it affects no other resource.
async fn reconcile(reconciler: &Reconciler, name: Name) -> (Name, Requeue) {
    let start = Instant::now();
    let done = AssertUnwindSafe(reconciler.reconcile(&name)).catch_unwind().await;
    let (requeue, is_panic) = match done {
        Ok(requeue) => (requeue, false),
        Err(_) => (Requeue::Backoff("internal error: a panic".to_owned()), true),
    };
    let outcome = match &requeue {
        _ if is_panic => Outcome::Panicked,
        Requeue::Backoff(message) => Outcome::Failed(message),
        Requeue::OnEvent | Requeue::After(_) | Requeue::Conflict(_) => Outcome::Succeeded,
    };
    let duration = start.elapsed();
    let report = Report::InstallationReconciled { outcome, duration };
    reconciler.shared.observer.report(&report);
    (name, requeue)
}

fn finish_reconcile(shared: &Shared, name: &Name, requeue: Requeue) {
    let now = shared.now();
    shared.with(|index| match requeue {
        Requeue::OnEvent => index.queue.succeed(name),
        Requeue::After(time) => {
            index.queue.succeed(name);
            let at = now.checked_add(time).unwrap_or(jiff::Timestamp::MAX);
            index.queue.enqueue(name.clone(), at);
        }
        Requeue::Backoff(message) => {
            tracing::warn!(object = %name, message, "reconciliation of an IstioOperator failed");
            index.queue.fail(name, now);
        }
        Requeue::Conflict(message) => {
            if index.queue.conflict(name, now) {
                tracing::warn!(object = %name, message, "repeated conflicts with other clients");
            }
        }
    });
}
