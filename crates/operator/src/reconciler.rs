//! Reconciler state: consumes watch events and write results, and returns the plans to execute.
//!
//! ```text
//! events, lists ──▶ Snapshot + Live ──enqueue──▶ Queue ──next_plan(now)──▶ Plan ──▶ (executor)
//!                        ▲                                                             │
//!                        └──────────────── responses, finish_plan() ◀──────────────────┘
//! ```
//!
//! It has no client, clock or task: callers pass the time, and the same sequence of calls returns the same
//! plans.
//!
//! Invariants: a subject has at most one running plan; a known object is never replaced by an older version;
//! no plan is made before every source was listed; a plan that changed nothing is not repeated without a
//! delay; an event that changes an object resets the back-off of its subject; plans of a workload migration
//! are executed one at a time.

mod cause;
mod objects;
mod outcome;
mod releases;
mod user_objects;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_api::ObjectKind;
use mainstay_cluster::live::Live;
use mainstay_mesh::migration::requests_migration;
use mainstay_mesh::plan::{Plan, ReleaseKey, Requeue, Step};
use mainstay_mesh::references::{Referrer, ReferrerKey};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{Action, AffectedSubjects, Library, Observation, Settings, Snapshot, Subject};

use crate::queue::Queue;
pub use objects::DecodeError;
pub use outcome::{PlanOutcome, StepFailure};
pub use releases::InstalledRelease;

/// Interval of full passes, in which every subject is planned even without an event.
const FULL_PASS_INTERVAL: Duration = Duration::from_mins(10);

/// Maximum delay before a plan that waits for another object is made again. Planning requires no API call.
const MAX_WAIT_DELAY: Duration = Duration::from_mins(1);

/// Result of planning the next subject.
#[derive(Clone, Debug)]
pub enum NextPlan {
    /// A plan that must be executed and then passed to [`Reconciler::finish_plan`].
    Execute(Plan),
    /// An empty plan. Its subject has been requeued as required.
    Idle(Plan),
    /// Planning for this subject panicked.
    Panicked(Subject),
}

/// In-memory state and work queue of the mesh controllers.
#[derive(Debug)]
pub struct Reconciler {
    snapshot: Snapshot,
    live: Live,
    queue: Queue,
    installed: BTreeMap<ReleaseKey, InstalledRelease>,
    failed: BTreeMap<Subject, FailedActions>,
    /// Steps of the last executed plan of each subject, until a plan of the subject is empty.
    last_steps: BTreeMap<Subject, Vec<Step>>,
    /// Subjects with an object that changed while their plan was executing.
    changed_while_running: BTreeSet<Subject>,
    /// The subject whose migration plan is executing, if any.
    running_migration: Option<Subject>,
    /// Subjects with a migration plan that waits for the end of the running one.
    waiting_for_migration: BTreeSet<Subject>,
    /// Number of consecutive conflicts of each subject.
    conflicts: BTreeMap<Subject, u32>,
    /// Last known resource versions of deleted objects.
    tombstones: BTreeMap<Subject, u64>,
    max_concurrent: usize,
    next_full_pass: Timestamp,
    is_planning: bool,
    listener: Option<EnqueueListener>,
}

/// Failed actions of a plan, and the time of their retry.
#[derive(Debug)]
struct FailedActions {
    actions: Vec<Action>,
    retry_at: Timestamp,
}

/// Callback for an enqueued subject and its cause.
pub type EnqueueCallback = Arc<dyn Fn(&Subject, &str) + Send + Sync>;

/// Listener for enqueued subjects and their causes.
#[derive(Clone)]
pub struct EnqueueListener(pub EnqueueCallback);

impl fmt::Debug for EnqueueListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnqueueListener")
    }
}

impl Reconciler {
    /// Creates an empty reconciler that runs at most `max_concurrent` plans concurrently.
    #[must_use]
    pub fn new(
        now: Timestamp,
        settings: Arc<Settings>,
        library: Arc<Library>,
        max_concurrent: usize,
    ) -> Self {
        Self {
            snapshot: Snapshot::new(now, settings, library),
            live: Live::default(),
            queue: Queue::default(),
            installed: BTreeMap::new(),
            failed: BTreeMap::new(),
            last_steps: BTreeMap::new(),
            changed_while_running: BTreeSet::new(),
            running_migration: None,
            waiting_for_migration: BTreeSet::new(),
            conflicts: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            max_concurrent: max_concurrent.max(1),
            next_full_pass: add_delay(now, FULL_PASS_INTERVAL),
            is_planning: false,
            listener: None,
        }
    }

    /// Returns the observed state.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the live versions of installed objects.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Returns the number of subjects in the ready queue.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queue.depth()
    }

    /// Returns the number of subjects enqueued so far, from which callers detect new work.
    #[must_use]
    pub fn enqueue_count(&self) -> u64 {
        self.queue.enqueue_count()
    }

    /// Whether the maximum number of concurrent plans is not reached.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.queue.running() < self.max_concurrent
    }

    /// Whether an Istio migrates workloads, so that workloads must be watched.
    #[must_use]
    pub fn migrates_workloads(&self) -> bool {
        self.snapshot.istios().iter().any(requests_migration)
    }

    /// Starts planning. Must be called after every watch was listed and this process became the leader.
    pub fn start_planning(&mut self) {
        self.is_planning = true;
        self.find_releases();
        self.enqueue_all();
    }

    /// Disables full passes, for callers that never miss an event.
    pub fn disable_full_pass(&mut self) {
        self.next_full_pass = Timestamp::MAX;
    }

    /// Registers a callback for each enqueued subject and its cause.
    pub fn set_listener(&mut self, listener: EnqueueListener) {
        self.listener = Some(listener);
    }

    /// Records an observation and enqueues the affected subjects.
    pub fn observe(&mut self, observation: Observation) {
        let cause = self
            .listener
            .is_some()
            .then(|| cause::from_observation(&observation));
        let affected = self.snapshot.observe(observation);
        self.enqueue(affected, || cause.unwrap_or_default());
    }

    /// Records the references of a namespace, pod or tag.
    pub fn observe_referrer(&mut self, referrer: Referrer<'_>) {
        let affected = self.snapshot.observe_referrer(referrer);
        self.enqueue(affected, || cause::from_referrer(referrer));
    }

    /// Removes the references of a deleted namespace or pod.
    pub fn remove_referrer(&mut self, key: ReferrerKey) {
        self.observe(Observation::ReferrerGone(key));
    }

    /// Sets the state of a source.
    pub fn set_source_state(&mut self, source: Source, state: SourceState) {
        self.observe(Observation::Source(source, state));
        if self.snapshot.is_complete() {
            self.live.mark_owners_complete();
        }
    }

    fn enqueue(&mut self, affected: AffectedSubjects, cause: impl FnOnce() -> String) {
        if let (Some(listener), false) = (&self.listener, affected.is_empty()) {
            let cause = cause();
            for subject in &affected {
                listener.0(subject, &cause);
            }
        }
        for subject in affected {
            self.queue.enqueue(subject);
        }
    }

    fn enqueue_all(&mut self) {
        let subjects: BTreeSet<Subject> = self.snapshot.subjects();
        self.enqueue(subjects, || "a full pass".to_owned());
    }

    /// Returns the next plan that may be executed at `now`, if any.
    pub fn next_plan(&mut self, now: Timestamp) -> Option<NextPlan> {
        self.snapshot.now = now;
        if !self.is_planning || !self.has_capacity() {
            return None;
        }
        if now >= self.next_full_pass {
            self.next_full_pass = add_delay(now, FULL_PASS_INTERVAL);
            self.queue.prune_rate_limits(now);
            self.enqueue_all();
        }
        loop {
            let subject = self.queue.start_next(now)?;
            if let Some(next) = self.plan(subject, now) {
                return Some(next);
            }
        }
    }

    /// Returns the time at which [`Reconciler::next_plan`] must be called again even without an event.
    #[must_use]
    pub fn next_due(&self) -> Timestamp {
        self.queue
            .next_time()
            .map_or(self.next_full_pass, |time| time.min(self.next_full_pass))
    }

    /// Plans for a subject. Returns `None` if the plan must wait.
    fn plan(&mut self, subject: Subject, now: Timestamp) -> Option<NextPlan> {
        // A panic leaves no partial state, because planning cannot change the snapshot.
        let planned = catch_unwind(AssertUnwindSafe(|| mainstay_mesh::plan(&self.snapshot, &subject)));
        let Ok(plan) = planned else {
            self.back_off(&subject, now);
            return Some(NextPlan::Panicked(subject));
        };
        if plan.is_empty() {
            self.finish_idle(&plan, now);
            return Some(NextPlan::Idle(plan));
        }
        if self.last_steps.get(&subject) == Some(&plan.steps) {
            self.last_steps.remove(&subject);
            self.back_off(&subject, now);
            return None;
        }
        let is_migration = self.is_migration(&plan);
        if is_migration && self.running_migration.is_some() {
            self.queue.finish(&subject);
            self.waiting_for_migration.insert(subject);
            return None;
        }
        if let Err(time) = self.queue.try_acquire(&subject, now) {
            self.queue.finish(&subject);
            self.queue.enqueue_at(subject, time);
            return None;
        }
        self.changed_while_running.remove(&subject);
        if is_migration {
            self.running_migration = Some(subject);
        }
        Some(NextPlan::Execute(plan))
    }

    /// Whether a plan is part of a workload migration. Such plans are executed one at a time, because the
    /// planner reads the size of the running batch from the snapshot, which must contain the result of the
    /// previous plan.
    fn is_migration(&self, plan: &Plan) -> bool {
        match &plan.subject {
            Subject::Workload(_) | Subject::Namespace(_) => true,
            Subject::Object(ObjectKind::Istio, _) => self.migrates_workloads(),
            Subject::Object(..) | Subject::Webhook(_) => false,
        }
    }

    /// Marks the migration plan of this subject as not running, and enqueues the subjects that wait for it.
    fn finish_migration(&mut self, subject: &Subject) {
        if self.running_migration.as_ref() == Some(subject) {
            self.running_migration = None;
            for waiting in std::mem::take(&mut self.waiting_for_migration) {
                self.queue.enqueue(waiting);
            }
        }
    }

    /// Whether a plan made at `now` still contains this action.
    pub(crate) fn is_still_planned(&mut self, subject: &Subject, action: &Action, now: Timestamp) -> bool {
        self.snapshot.now = now;
        let planned = catch_unwind(AssertUnwindSafe(|| mainstay_mesh::plan(&self.snapshot, subject)));
        planned.is_ok_and(|plan| plan.actions().any(|planned| planned == action))
    }

    /// Marks the subject of an empty plan as not running, and requeues it as required by the plan.
    fn finish_idle(&mut self, plan: &Plan, now: Timestamp) {
        let subject = &plan.subject;
        self.last_steps.remove(subject);
        self.queue.finish(subject);
        match plan.requeue {
            Requeue::OnEvent => self.queue.reset_backoff(subject),
            Requeue::At(time) if time > now => self.queue.enqueue_at(subject.clone(), time),
            // Without a delay, a time in the past would cause an endless loop of empty plans.
            Requeue::At(_) | Requeue::Immediately => {
                let delay = self.queue.next_delay(subject).min(MAX_WAIT_DELAY);
                self.queue.enqueue_at(subject.clone(), add_delay(now, delay));
            }
            Requeue::Backoff => {
                let delay = self.queue.next_delay(subject);
                self.queue.enqueue_at(subject.clone(), add_delay(now, delay));
            }
        }
    }

    fn back_off(&mut self, subject: &Subject, now: Timestamp) {
        let delay = self.queue.next_delay(subject);
        self.queue.finish(subject);
        self.queue.enqueue_at(subject.clone(), add_delay(now, delay));
    }
}

fn add_delay(now: Timestamp, delay: Duration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
