//! The loop itself: takes a client and everything else the operator needs, runs until it is told to stop or may not go on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use kube::Client;
use mainstay_api::names;
use mainstay_catalog::Catalog;
use mainstay_cluster::apply::Engine;
use mainstay_cluster::connect::{Fence, Meter, guard};
use mainstay_cluster::event::Events;
use mainstay_cluster::lease::Lease;
use mainstay_cluster::write::Writer;
use mainstay_mesh::plan::Plan;
use mainstay_mesh::{Library, Settings, Snapshot};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::clock::Clock;
use crate::execute::{Executor, Prober};
use crate::gauge::Gauges;
use crate::reconciler::{EnqueueListener, NextPlan, PlanOutcome, Reconciler};
use crate::render::Renderer;
use crate::report::{Observer, Outcome, Report};
use crate::watch::all::Watches;

/// The loop goes round at least this often.
const TURN: Duration = Duration::from_secs(20);

/// How long what runs may take to end.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Told of every plan that is made, with what it was made from.
pub type PlanInspector = Arc<dyn Fn(&Snapshot, &Plan) + Send + Sync>;

/// How to run.
#[derive(Clone)]
pub struct Options {
    /// Where the operator runs, and its Lease lies.
    pub namespace: String,
    /// Who we are among several.
    pub identity: String,
    /// How many plans are carried out at once.
    pub max_concurrent: usize,
    /// Whether to wait until nobody else leads.
    pub leader_elect: bool,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// Who asks remote control planes.
    pub prober: Arc<dyn Prober>,
    /// Who looks at every plan, in tests.
    pub inspect: Option<PlanInspector>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "sail-operator".into(),
            identity: "mainstay".into(),
            max_concurrent: 1,
            leader_elect: true,
            observer: Arc::new(()),
            prober: Arc::new(()),
            inspect: None,
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

/// Why the operator cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// Another process leads now.
    #[error("the Lease was lost: another process may lead now")]
    LeaseLost,
}

/// What watches and executions share: the reconciler, a bell for when there is something to do, and whoever is told.
pub(crate) struct Shared {
    reconciler: Mutex<Reconciler>,
    bell: Notify,
    pub(crate) observer: Arc<dyn Observer>,
}

impl Shared {
    pub(crate) fn new(reconciler: Reconciler, observer: Arc<dyn Observer>) -> Self {
        Self {
            reconciler: Mutex::new(reconciler),
            bell: Notify::new(),
            observer,
        }
    }

    /// Reads or tells the reconciler something.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Reconciler) -> R) -> R {
        let mut reconciler = self.reconciler.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut reconciler);
        if reconciler.depth() > 0 {
            self.bell.notify_one();
        }
        result
    }
}

/// Keeps the mesh as its objects declare it, until `stop`.
pub async fn run(
    client: Client,
    catalog: Arc<Catalog>,
    settings: Settings,
    options: Options,
    clock: Clock,
    stop: impl Future<Output = ()>,
) -> Result<(), OperatorError> {
    let observer = options.observer.clone();
    let meter: Meter = Arc::new(move |verb, code| observer.report(&Report::ApiCall { verb, code }));
    let fence = if options.leader_elect {
        Fence::closed()
    } else {
        Fence::open()
    };
    let lease = lease(
        guard(client.clone(), Fence::open(), meter.clone()),
        &fence,
        &options,
        &clock,
    );
    let client = guard(client, fence, meter);
    let (library, problems) = Library::from_catalog(&catalog);
    for problem in problems {
        tracing::error!(
            error = &problem as &dyn std::error::Error,
            "a version is left out"
        );
    }
    let mut reconciler = Reconciler::new(
        clock.now(),
        Arc::new(settings),
        Arc::new(library),
        options.max_concurrent,
    );
    let observer = options.observer.clone();
    reconciler.set_listener(EnqueueListener(Arc::new(move |subject, cause| {
        observer.report(&Report::Enqueued { subject, cause });
    })));
    let shared = Arc::new(Shared::new(reconciler, options.observer.clone()));
    tokio::pin!(stop);
    let engine = Engine::new(client.clone());
    let watches = Watches::start(client.clone(), shared.clone());
    let writer = Writer::new(client.clone());
    let executor = Executor {
        shared,
        client,
        events: Events::new(writer.clone(), &options.identity),
        writer,
        engine,
        renderer: Arc::new(Renderer::new(catalog)),
        watches,
        prober: options.prober.clone(),
        clock,
        stopping: AtomicBool::new(false),
    };
    lead(&executor, lease, &options, stop).await
}

/// The Lease, if one is wanted.
fn lease(client: Client, fence: &Fence, options: &Options, clock: &Clock) -> Option<Lease> {
    let clock = clock.clone();
    let now = Arc::new(move || clock.now());
    let place = (options.namespace.as_str(), names::LEASE);
    options
        .leader_elect
        .then(|| Lease::new(place, &options.identity, Writer::new(client), fence.clone(), now))
}

/// Waits until everything was listed and nobody else leads, then works until told to stop or until somebody else leads.
async fn lead(
    executor: &Executor,
    mut lease: Option<Lease>,
    options: &Options,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), OperatorError> {
    let observer = &options.observer;
    let ready = async {
        executor.watches.listed().await;
        observer.report(&Report::Synced(true));
        if let Some(lease) = &mut lease {
            lease.acquire().await;
        }
        observer.report(&Report::Leading(true));
    };
    tokio::select! {
        () = waiting(ready, observer) => {}
        () = &mut stop => return Ok(()),
    }
    executor.shared.with(Reconciler::start_planning);
    let work = Loop {
        executor,
        inspect: options.inspect.clone(),
        running: FuturesUnordered::new(),
        gauges: Gauges::default(),
    };
    let kept = async {
        match &mut lease {
            Some(lease) => lease.keep().await,
            None => futures::future::pending().await,
        }
    };
    let result = tokio::select! {
        () = work.turn(stop) => Ok(()),
        () = kept => Err(OperatorError::LeaseLost),
    };
    observer.report(&Report::Leading(false));
    if let (Ok(()), Some(lease)) = (&result, &mut lease) {
        lease.release().await;
    }
    result
}

/// Waits, and tells now and then that it does.
async fn waiting(ready: impl Future<Output = ()>, observer: &Arc<dyn Observer>) {
    tokio::pin!(ready);
    loop {
        observer.report(&Report::LoopIteration);
        tokio::select! {
            () = &mut ready => return,
            () = sleep(TURN) => {}
        }
    }
}

/// A plan that was carried out, how it ended, and how long it took.
type Finished = (Plan, PlanOutcome, Duration);

struct Loop<'a> {
    executor: &'a Executor,
    inspect: Option<PlanInspector>,
    running: FuturesUnordered<BoxFuture<'a, Finished>>,
    gauges: Gauges,
}

impl Loop<'_> {
    /// Goes round until told to stop; then what runs is let end.
    async fn turn(mut self, mut stop: Pin<&mut impl Future<Output = ()>>) {
        loop {
            self.start();
            let shared = &self.executor.shared;
            if shared.with(|reconciler| reconciler.migrates_workloads()) {
                self.executor.watches.follow_workloads();
            }
            shared.observer.report(&Report::LoopIteration);
            shared.with(|reconciler| self.gauges.tell(reconciler, &shared.observer));
            let pause = self.pause();
            tokio::select! {
                () = shared.bell.notified(), if self.has_capacity() => {}
                Some(finished) = self.running.next() => self.finish(finished),
                () = sleep(pause) => {}
                () = &mut stop => break,
            }
        }
        self.executor.stopping.store(true, Ordering::Relaxed);
        let rest = async {
            while let Some(finished) = self.running.next().await {
                tracing::debug!(subject = %finished.0.subject, "ended");
            }
        };
        if tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
            tracing::warn!("a write did not end in time");
        }
    }

    /// Starts every plan that can be carried out now.
    fn start(&mut self) {
        loop {
            let begun = Instant::now();
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
                    observer.report(&Report::Planned(&plan, begun.elapsed()));
                    self.running.push(Box::pin(carry_out(self.executor, plan, begun)));
                }
                Some(NextPlan::Idle(plan)) => {
                    observer.report(&Report::Planned(&plan, begun.elapsed()));
                    observer.report(&Report::Reconciled {
                        plan: &plan,
                        outcome: Outcome::Idle,
                        took: begun.elapsed(),
                    });
                }
                Some(NextPlan::Panicked(subject)) => {
                    observer.report(&Report::Reconciled {
                        plan: &Plan::empty(subject),
                        outcome: Outcome::Panicked,
                        took: begun.elapsed(),
                    });
                }
            }
        }
    }

    fn finish(&mut self, (plan, ended, took): Finished) {
        let shared = &self.executor.shared;
        let redacted;
        let outcome = match &ended {
            PlanOutcome::Succeeded | PlanOutcome::Interrupted => Outcome::Done,
            PlanOutcome::Failed(failed) if failed.panicked => Outcome::Panicked,
            PlanOutcome::Failed(failed) => {
                redacted = failed.redacted();
                Outcome::Failed(&redacted)
            }
        };
        shared.observer.report(&Report::Reconciled {
            plan: &plan,
            outcome,
            took,
        });
        shared.with(|reconciler| reconciler.finish_plan(&plan, ended, self.executor.clock.now()));
    }

    /// The bell matters only while another plan could be started.
    fn has_capacity(&self) -> bool {
        self.running.is_empty() || self.executor.shared.with(|reconciler| reconciler.has_capacity())
    }

    fn pause(&self) -> Duration {
        let wake_at = self.executor.shared.with(|reconciler| reconciler.next_due());
        until(self.executor.clock.now(), wake_at).clamp(Duration::from_millis(1), TURN)
    }
}

fn until(now: Timestamp, moment: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default()
}

async fn carry_out(executor: &Executor, mut plan: Plan, begun: Instant) -> Finished {
    let (done, ended) = executor.execute(&plan).await;
    if matches!(ended, PlanOutcome::Succeeded) {
        plan.steps.truncate(done);
    }
    (plan, ended, begun.elapsed())
}
