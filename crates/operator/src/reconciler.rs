//! The middle of the loop: takes what watches and writes show, gives one plan at a time, and takes how it ended. No client, no
//! clock, no task: the moment is told, and the same story gives the same plans.
//!
//! ```text
//! seen, gone, listed ──▶ Snapshot + Live ──wake──▶ Queue ──next(now)──▶ Plan ──▶ (executor) ──done()──┐
//!         ▲                                                                                          │
//!         └──────────────────────────── what the writes answered ◀───────────────────────────────────┘
//! ```
//!
//! *Invariants:* no subject is worked on twice at once; nothing known goes back to an older version; no plan is made before
//! every source was listed; a plan that changes nothing is not carried out again at once.

mod cause;
mod objects;
mod others;
mod outcome;
mod releases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_cluster::live::Live;
use mainstay_mesh::migration::requests_migration;
use mainstay_mesh::plan::{Plan, ReleaseKey, Requeue, Step};
use mainstay_mesh::references::{Referrer, ReferrerKey};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{Action, AffectedSubjects, Library, Observation, Settings, Snapshot, Subject};

use crate::queue::Queue;
pub use objects::DecodeError;
pub use outcome::{PlanOutcome, StepFailure};
pub use releases::Installed;

/// Every subject is looked at this often, whatever was heard.
const FULL_PASS: Duration = Duration::from_mins(10);

/// A plan that waits for something else looks again at least this often; it costs no call.
const LONGEST_SOON: Duration = Duration::from_mins(1);

/// What to do next.
#[derive(Clone, Debug)]
pub enum NextPlan {
    /// Carry out this plan, then tell [`Reconciler::finish_plan`].
    Execute(Plan),
    /// There was nothing to do about a subject.
    Idle(Plan),
    /// Planning for this subject panicked.
    Panicked(Subject),
}

/// Everything the operator knows, and whose turn it is.
#[derive(Debug)]
pub struct Reconciler {
    snapshot: Snapshot,
    live: Live,
    queue: Queue,
    installed: BTreeMap<ReleaseKey, Installed>,
    failed: BTreeMap<Subject, (Action, Timestamp)>,
    /// What was last carried out for a subject, while it has not come to rest.
    last: BTreeMap<Subject, Vec<Step>>,
    tombstones: BTreeMap<Subject, u64>,
    max_concurrent: usize,
    next_pass: Timestamp,
    is_open: bool,
    listener: Option<EnqueueListener>,
}

/// What a [`EnqueueListener`] does with a subject and what woke it.
pub type EnqueueCallback = Arc<dyn Fn(&Subject, &str) + Send + Sync>;

/// Hears which subject is woken, and by what.
#[derive(Clone)]
pub struct EnqueueListener(pub EnqueueCallback);

impl fmt::Debug for EnqueueListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnqueueListener")
    }
}

impl Reconciler {
    /// An empty one, which makes at most so many plans at once.
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
            last: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            max_concurrent: max_concurrent.max(1),
            next_pass: later(now, FULL_PASS),
            is_open: false,
            listener: None,
        }
    }

    /// What was observed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What is there of what was installed.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// How many subjects wait for their turn.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queue.depth()
    }

    /// Whether another plan may be carried out now.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.queue.running() < self.max_concurrent
    }

    /// Whether some Istio moves workloads, so that they must be watched.
    #[must_use]
    pub fn migrates_workloads(&self) -> bool {
        self.snapshot.istios().iter().any(requests_migration)
    }

    /// Lets plans be made: every watch has been listed, and nobody else leads.
    pub fn start_planning(&mut self) {
        self.is_open = true;
        self.find_releases();
        self.enqueue_all();
    }

    /// Makes no full passes: for whoever tells every event himself, and so can miss none.
    pub fn disable_full_pass(&mut self) {
        self.next_pass = Timestamp::MAX;
    }

    /// Lets somebody hear which subject is woken by what.
    pub fn set_listener(&mut self, listener: EnqueueListener) {
        self.listener = Some(listener);
    }

    /// Takes in what was seen.
    pub fn observe(&mut self, seen: Observation) {
        let cause = self.listener.is_some().then(|| cause::of(&seen));
        let woken = self.snapshot.observe(seen);
        self.wake(woken, || cause.unwrap_or_default());
    }

    /// Takes in what a pod says.
    pub fn observe_referrer(&mut self, referrer: Referrer<'_>) {
        let woken = self.snapshot.observe_referrer(referrer);
        self.wake(woken, || cause::of_referrer(referrer));
    }

    /// A namespace or a pod is gone.
    pub fn remove_referrer(&mut self, key: ReferrerKey) {
        self.observe(Observation::ReferrerGone(key));
    }

    /// Whether a source can be believed.
    pub fn set_source_state(&mut self, source: Source, state: SourceState) {
        self.observe(Observation::Source(source, state));
    }

    fn wake(&mut self, woken: AffectedSubjects, cause: impl FnOnce() -> String) {
        if let (Some(listener), false) = (&self.listener, woken.is_empty()) {
            let cause = cause();
            for subject in &woken {
                listener.0(subject, &cause);
            }
        }
        for subject in woken {
            self.queue.wake(subject);
        }
    }

    fn enqueue_all(&mut self) {
        let all: BTreeSet<Subject> = self.snapshot.subjects();
        self.wake(all, || "a full pass".to_owned());
    }

    /// What to do next, if anything can be done now.
    pub fn next_plan(&mut self, now: Timestamp) -> Option<NextPlan> {
        self.snapshot.now = now;
        if !self.is_open || !self.has_capacity() {
            return None;
        }
        if now >= self.next_pass {
            self.next_pass = later(now, FULL_PASS);
            self.queue.tidy(now);
            self.enqueue_all();
        }
        loop {
            let subject = self.queue.take(now)?;
            if let Some(next) = self.consider(subject, now) {
                return Some(next);
            }
        }
    }

    /// When to ask again, events aside.
    #[must_use]
    pub fn next_due(&self) -> Timestamp {
        self.queue
            .next_moment()
            .map_or(self.next_pass, |moment| moment.min(self.next_pass))
    }

    /// The plan for a subject, unless it has to wait.
    fn consider(&mut self, subject: Subject, now: Timestamp) -> Option<NextPlan> {
        // A plan is a function of the snapshot, which it cannot change: nothing is left half done by a panic.
        let planned = catch_unwind(AssertUnwindSafe(|| mainstay_mesh::plan(&self.snapshot, &subject)));
        let Ok(plan) = planned else {
            self.put_off(&subject, now);
            return Some(NextPlan::Panicked(subject));
        };
        if plan.is_empty() {
            self.rest(&plan, now);
            return Some(NextPlan::Idle(plan));
        }
        if self.last.get(&subject) == Some(&plan.steps) {
            self.last.remove(&subject);
            self.put_off(&subject, now);
            return None;
        }
        if let Err(moment) = self.queue.spend(&subject, now) {
            self.queue.done(&subject);
            self.queue.wake_at(subject, moment);
            return None;
        }
        Some(NextPlan::Execute(plan))
    }

    /// Whether a plan made now would still have this action.
    pub(crate) fn still_plans(&mut self, subject: &Subject, action: &Action, now: Timestamp) -> bool {
        self.snapshot.now = now;
        let planned = catch_unwind(AssertUnwindSafe(|| mainstay_mesh::plan(&self.snapshot, subject)));
        planned.is_ok_and(|plan| plan.actions().any(|planned| planned == action))
    }

    /// Nothing is to be done about a subject until something happens.
    fn rest(&mut self, plan: &Plan, now: Timestamp) {
        let subject = &plan.subject;
        self.last.remove(subject);
        self.queue.done(subject);
        match plan.requeue {
            Requeue::OnEvent => self.queue.forgive(subject),
            Requeue::At(moment) if moment > now => self.queue.wake_at(subject.clone(), moment),
            // A moment that has passed would come again and again, without end.
            Requeue::At(_) | Requeue::Immediately => {
                let delay = self.queue.delay(subject).min(LONGEST_SOON);
                self.queue.wake_at(subject.clone(), later(now, delay));
            }
            Requeue::Backoff => {
                let delay = self.queue.delay(subject);
                self.queue.wake_at(subject.clone(), later(now, delay));
            }
        }
    }

    fn put_off(&mut self, subject: &Subject, now: Timestamp) {
        let delay = self.queue.delay(subject);
        self.queue.done(subject);
        self.queue.wake_at(subject.clone(), later(now, delay));
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
