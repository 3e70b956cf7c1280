//! Control loop of the mesh controllers: runs watches, makes plans and executes them until the operator is
//! stopped or loses the Lease.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kube::Client;
use mainstay_api::names;
use mainstay_catalog::Catalog;
use mainstay_cluster::apply::Engine;
use mainstay_cluster::connect::{Fence, Meter, guard};
use mainstay_cluster::event::Events;
use mainstay_cluster::lease::{Lease, LeaseOptions};
use mainstay_cluster::write::Writer;
use mainstay_mesh::plan::Plan;
use mainstay_mesh::{Library, Settings, Snapshot};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::clock::Clock;
use crate::control_loop::{MAX_ITERATION_INTERVAL, time_to_next_iteration};
use crate::delivery::{Delivery, DeliveryOptions};
use crate::execute::{Executor, Prober};
use crate::gauge::Gauges;
use crate::istio_operator::webhook::{Webhook, WebhookOptions};
use crate::istio_operator::{IstioOperatorController, IstioOperatorOptions};
use crate::reconciler::{EnqueueListener, NextPlan, PlanOutcome, Reconciler};
use crate::render::Renderer;
use crate::report::{Observer, Outcome, Report};
use crate::watch::all::Watches;

/// Maximum time to wait for running executions at shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// Default of `--max-concurrent-reconciles`. It is the default of the Sail Operator.
pub const DEFAULT_MAX_CONCURRENT_RECONCILES: usize = 5;

/// Callback for every plan and the snapshot from which it was made.
pub type PlanInspector = Arc<dyn Fn(&Snapshot, &Plan) + Send + Sync>;

/// Options of [`Operator::run`].
#[derive(Clone)]
pub struct Options {
    /// Namespace of the operator, which contains its Lease.
    pub namespace: String,
    /// Holder identity in the Lease.
    pub identity: String,
    /// Maximum number of plans that are executed concurrently.
    pub max_concurrent: usize,
    /// Whether the operator must acquire the Lease before it writes.
    pub leader_elect: bool,
    /// Receiver of the reports of the control loops.
    pub observer: Arc<dyn Observer>,
    /// Prober of remote control planes.
    pub prober: Arc<dyn Prober>,
    /// Callback for every plan, used by tests.
    pub inspect: Option<PlanInspector>,
    /// Options of application delivery; `None` disables it.
    pub delivery: Option<DeliveryOptions>,
    /// Options of the controller for `IstioOperator`s; `None` disables it.
    pub istio_operator: Option<IstioOperatorOptions>,
    /// Options of the validating webhook for `IstioOperator`s; `None` disables it.
    pub webhook: Option<WebhookOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "sail-operator".into(),
            identity: "mainstay".into(),
            max_concurrent: DEFAULT_MAX_CONCURRENT_RECONCILES,
            leader_elect: true,
            observer: Arc::new(()),
            prober: Arc::new(()),
            inspect: None,
            delivery: None,
            istio_operator: None,
            webhook: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("namespace", &self.namespace)
            .field("identity", &self.identity)
            .field("max_concurrent", &self.max_concurrent)
            .field("leader_elect", &self.leader_elect)
            .finish_non_exhaustive()
    }
}

/// Error that stops the operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The Lease was lost, and another process may be the leader.
    #[error("the Lease was lost: another process may be the leader")]
    LeaseLost,
}

/// State that is shared by watches and executions: reconciler, notification for new work, and observer.
pub(crate) struct Shared {
    reconciler: Mutex<Reconciler>,
    enqueued: Notify,
    pub(crate) observer: Arc<dyn Observer>,
}

impl Shared {
    pub(crate) fn new(reconciler: Reconciler, observer: Arc<dyn Observer>) -> Self {
        Self {
            reconciler: Mutex::new(reconciler),
            enqueued: Notify::new(),
            observer,
        }
    }

    /// Calls `act` with the locked reconciler, and notifies the loop if a subject was enqueued.
    ///
    /// A call that enqueues nothing must not notify the loop: the loop itself calls this function in every
    /// iteration, so that the notification would always be ready, and the loop would never yield to I/O
    /// while a subject waits for the end of its execution.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Reconciler) -> R) -> R {
        let mut reconciler = self.reconciler.lock().unwrap_or_else(PoisonError::into_inner);
        let before = reconciler.enqueue_count();
        let result = act(&mut reconciler);
        if reconciler.enqueue_count() != before {
            self.enqueued.notify_one();
        }
        result
    }
}

/// The operator with its dependencies.
#[derive(Clone)]
pub struct Operator {
    /// Client for the cluster.
    pub client: Client,
    /// Charts to install from.
    pub catalog: Arc<Catalog>,
    /// Cluster-wide settings of the planner.
    pub settings: Settings,
    /// Options of the operator.
    pub options: Options,
    /// Source of time.
    pub clock: Clock,
}

impl Operator {
    /// Runs all enabled controllers until `stop` completes or the Lease is lost.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), OperatorError> {
        let observer = self.options.observer.clone();
        let meter: Meter = Arc::new(move |verb, code| observer.report(&Report::ApiCall { verb, code }));
        let fence = if self.options.leader_elect {
            Fence::closed()
        } else {
            Fence::open()
        };
        let lease_client = guard(self.client.clone(), Fence::open(), meter.clone());
        let lease = self.lease(lease_client, &fence);
        let options = self.options.clone();
        let _controllers = self.start_controllers(&fence, &meter);
        let executor = self.executor(fence, meter);
        tokio::pin!(stop);
        run_as_leader(&executor, lease, &options, stop).await
    }

    /// Starts the other controllers that are enabled. They only write while this process is the leader, and
    /// end when the returned tasks are dropped.
    fn start_controllers(&self, fence: &Fence, meter: &Meter) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let Some(options) = self.options.delivery.clone() {
            let delivery = Delivery {
                client: self.client.clone(),
                fence: fence.clone(),
                meter: meter.clone(),
                clock: self.clock.clone(),
                identity: self.options.identity.clone(),
                observer: self.options.observer.clone(),
                options,
            };
            tasks.spawn(delivery.run());
        }
        if let Some(options) = self.options.istio_operator.clone() {
            let controller = IstioOperatorController {
                client: self.client.clone(),
                catalog: self.catalog.clone(),
                fence: fence.clone(),
                meter: meter.clone(),
                clock: self.clock.clone(),
                identity: self.options.identity.clone(),
                observer: self.options.observer.clone(),
                options,
            };
            tasks.spawn(controller.run());
        }
        if let Some(options) = self.options.webhook.clone() {
            let webhook = Webhook {
                client: self.client.clone(),
                catalog: self.catalog.clone(),
                fence: fence.clone(),
                meter: meter.clone(),
                clock: self.clock.clone(),
                namespace: self.options.namespace.clone(),
                options,
            };
            tasks.spawn(webhook.run());
        }
        tasks
    }

    fn lease(&self, client: Client, fence: &Fence) -> Option<Lease> {
        let clock = self.clock.clone();
        let now = Arc::new(move || clock.now());
        let options = &self.options;
        let lease = LeaseOptions {
            namespace: &options.namespace,
            name: names::LEASE,
            identity: &options.identity,
        };
        options
            .leader_elect
            .then(|| Lease::new(lease, Writer::new(client), fence.clone(), now))
    }

    fn executor(self, fence: Fence, meter: Meter) -> Executor {
        let client = guard(self.client.clone(), fence, meter);
        let shared = Arc::new(Shared::new(self.reconciler(), self.options.observer.clone()));
        let writer = Writer::new(client.clone());
        Executor {
            watches: Watches::start(client.clone(), shared.clone()),
            shared,
            events: Events::new(writer.clone(), &self.options.identity),
            writer,
            engine: Engine::new(client.clone()),
            client,
            renderer: Arc::new(Renderer::new(self.catalog)),
            prober: self.options.prober,
            clock: self.clock,
            stopping: AtomicBool::new(false),
        }
    }

    fn reconciler(&self) -> Reconciler {
        let (library, problems) = Library::from_catalog(&self.catalog);
        for problem in problems {
            tracing::error!(
                error = &problem as &dyn std::error::Error,
                "skipping a version of the catalog"
            );
        }
        let settings = Arc::new(self.settings.clone());
        let max_concurrent = self.options.max_concurrent;
        let mut reconciler = Reconciler::new(self.clock.now(), settings, Arc::new(library), max_concurrent);
        let observer = self.options.observer.clone();
        reconciler.set_listener(EnqueueListener(Arc::new(move |subject, cause| {
            observer.report(&Report::Enqueued { subject, cause });
        })));
        reconciler
    }
}

/// Waits until every watch is listed and this process is the leader, then reconciles until `stop` completes
/// or the Lease is lost.
async fn run_as_leader(
    executor: &Executor,
    mut lease: Option<Lease>,
    options: &Options,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), OperatorError> {
    let observer = &options.observer;
    let ready = async {
        executor.watches.wait_until_listed().await;
        observer.report(&Report::Synced(true));
        if let Some(lease) = &mut lease {
            lease.acquire().await;
        }
        observer.report(&Report::Leading(true));
    };
    tokio::select! {
        () = report_while_waiting(ready, observer) => {}
        () = &mut stop => return Ok(()),
    }
    executor.shared.with(Reconciler::start_planning);
    let work = Loop {
        executor,
        inspect: options.inspect.clone(),
        running: FuturesUnordered::new(),
        gauges: Gauges::default(),
    };
    let lost = async {
        match &mut lease {
            Some(lease) => lease.renew_until_lost().await,
            None => futures::future::pending().await,
        }
    };
    let result = tokio::select! {
        () = work.run(stop) => Ok(()),
        () = lost => Err(OperatorError::LeaseLost),
    };
    observer.report(&Report::Leading(false));
    if let (Ok(()), Some(lease)) = (&result, &mut lease) {
        lease.release().await;
    }
    result
}

/// Waits for `ready`. Reports loop iterations in the meantime, so that the liveness probe succeeds.
async fn report_while_waiting(ready: impl Future<Output = ()>, observer: &Arc<dyn Observer>) {
    tokio::pin!(ready);
    loop {
        observer.report(&Report::LoopIteration);
        tokio::select! {
            () = &mut ready => return,
            () = sleep(MAX_ITERATION_INTERVAL) => {}
        }
    }
}

struct ExecutedPlan {
    plan: Plan,
    outcome: PlanOutcome,
    duration: Duration,
}

struct Loop<'a> {
    executor: &'a Executor,
    inspect: Option<PlanInspector>,
    running: FuturesUnordered<BoxFuture<'a, ExecutedPlan>>,
    gauges: Gauges,
}

impl Loop<'_> {
    /// Iterates until `stop` completes, then waits for the running executions.
    async fn run(mut self, mut stop: Pin<&mut impl Future<Output = ()>>) {
        loop {
            self.start_plans();
            let shared = &self.executor.shared;
            if shared.with(|reconciler| reconciler.migrates_workloads()) {
                self.executor.watches.follow_workloads();
            }
            shared.observer.report(&Report::LoopIteration);
            shared.with(|reconciler| self.gauges.report(reconciler, &shared.observer));
            let timeout = self.time_to_next_due();
            tokio::select! {
                () = shared.enqueued.notified(), if self.has_capacity() => {}
                Some(executed) = self.running.next() => self.finish_plan(executed),
                () = sleep(timeout) => {}
                () = &mut stop => break,
            }
        }
        self.shut_down().await;
    }

    async fn shut_down(&mut self) {
        self.executor.stopping.store(true, Ordering::Relaxed);
        let drained = async {
            while let Some(executed) = self.running.next().await {
                tracing::debug!(subject = %executed.plan.subject, "execution ended");
            }
        };
        if tokio::time::timeout(SHUTDOWN_GRACE_PERIOD, drained)
            .await
            .is_err()
        {
            tracing::warn!("an execution did not end within the shutdown grace period");
        }
    }

    /// Starts the execution of all plans that may be executed now.
    fn start_plans(&mut self) {
        loop {
            let start = Instant::now();
            let next = self.executor.shared.with(|reconciler| {
                let next = reconciler.next_plan(self.executor.clock.now());
                if let (Some(inspect), Some(NextPlan::Execute(plan) | NextPlan::Idle(plan))) =
                    (&self.inspect, &next)
                {
                    inspect(reconciler.snapshot(), plan);
                }
                next
            });
            let observer = &self.executor.shared.observer;
            match next {
                None => return,
                Some(NextPlan::Execute(plan)) => {
                    observer.report(&Report::Planned(&plan, start.elapsed()));
                    self.running.push(Box::pin(execute(self.executor, plan, start)));
                }
                Some(NextPlan::Idle(plan)) => {
                    observer.report(&Report::Planned(&plan, start.elapsed()));
                    observer.report(&Report::Reconciled {
                        plan: &plan,
                        outcome: Outcome::Noop,
                        duration: start.elapsed(),
                    });
                }
                Some(NextPlan::Panicked(subject)) => {
                    observer.report(&Report::Reconciled {
                        plan: &Plan::empty(subject),
                        outcome: Outcome::Panicked,
                        duration: start.elapsed(),
                    });
                }
            }
        }
    }

    fn finish_plan(&mut self, executed: ExecutedPlan) {
        let ExecutedPlan {
            plan,
            outcome,
            duration,
        } = executed;
        let shared = &self.executor.shared;
        let redacted;
        let reported = match &outcome {
            PlanOutcome::Succeeded | PlanOutcome::Interrupted => Outcome::Succeeded,
            PlanOutcome::Failed(failure) if failure.panicked => Outcome::Panicked,
            PlanOutcome::Failed(failure) if failure.is_conflict() => Outcome::Conflict,
            PlanOutcome::Failed(failure) => {
                redacted = failure.redacted();
                Outcome::Failed(&redacted)
            }
        };
        shared.observer.report(&Report::Reconciled {
            plan: &plan,
            outcome: reported,
            duration,
        });
        shared.with(|reconciler| reconciler.finish_plan(&plan, outcome, self.executor.clock.now()));
    }

    /// Whether another plan may start. If not, the loop ignores notifications for new work.
    fn has_capacity(&self) -> bool {
        self.running.is_empty() || self.executor.shared.with(|reconciler| reconciler.has_capacity())
    }

    fn time_to_next_due(&self) -> Duration {
        let due = self.executor.shared.with(|reconciler| reconciler.next_due());
        time_to_next_iteration(self.executor.clock.now(), Some(due))
    }
}

async fn execute(executor: &Executor, mut plan: Plan, start: Instant) -> ExecutedPlan {
    let (executed_steps, outcome) = executor.execute(&plan).await;
    if matches!(outcome, PlanOutcome::Succeeded) {
        plan.steps.truncate(executed_steps);
    }
    ExecutedPlan {
        plan,
        outcome,
        duration: start.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use jiff::Timestamp;
    use mainstay_api::ObjectKind;
    use serde_json::json;

    use super::*;

    fn shared() -> Shared {
        let (settings, library) = (Arc::default(), Arc::default());
        let reconciler = Reconciler::new(Timestamp::UNIX_EPOCH, settings, library, 2);
        Shared::new(reconciler, Arc::new(()))
    }

    /// Checks that the grace period of the pod is long enough to wait for executions and to release the
    /// Lease with one call.
    #[test]
    fn the_pods_grace_period_covers_the_shutdown() {
        let template = include_str!("../../../deploy/chart/templates/deployment.yaml");
        let line = template
            .lines()
            .find_map(|line| line.trim().strip_prefix("terminationGracePeriodSeconds: "));
        let period = Duration::from_secs(line.unwrap().parse().unwrap());
        assert!(period >= SHUTDOWN_GRACE_PERIOD + mainstay_cluster::lease::CALL_TIMEOUT);
    }

    fn is_notified(shared: &Shared) -> bool {
        shared.enqueued.notified().now_or_never().is_some()
    }

    #[test]
    fn only_calls_that_enqueue_a_subject_notify_the_loop() {
        let shared = shared();
        let istio = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "spec": {"version": "v1.29.1"}});
        shared.with(|reconciler| reconciler.observe_object(ObjectKind::Istio, istio).unwrap());
        assert!(is_notified(&shared));
        assert_eq!(
            shared.with(|reconciler| reconciler.depth()),
            1,
            "the subject still waits"
        );
        assert!(!is_notified(&shared), "a read");
    }
}
