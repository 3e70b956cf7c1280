//! Does a plan keep its promises? Takes a snapshot and a plan, gives the invariants the plan would break. Knows no planner's
//! reasons: what it checks it works out for itself, from the snapshot.
//!
//! ```text
//! Snapshot, Plan ──check()──▶ Vec<Violation>      (empty for a good plan)
//! ```
//!
//! The numbers are those of the reliability plan. *Absent on purpose:* I13 (about waves of clusters) and I18 (about rendering).

mod identity;
mod injector;
mod migration;
mod order;
mod status;

use std::fmt;

use mainstay_mesh::{Plan, Snapshot, Subject};

/// What must always hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Never more workloads are disturbed by us than a batch holds.
    BatchSize,
    /// No workload is restarted while it is still coming up after we restarted it: how many of its pods go at once is for its own controller to
    /// decide, and it decides for one change at a time.
    NoRestartDuringRollout,
    /// A workload that has arrived is not moved again, and nobody moves one without being asked.
    NoRepeatedMove,
    /// Moved, failed, skipped and outstanding workloads are all there are.
    CompleteCounts,
    /// Within one migration the number of moved workloads never goes down.
    MonotonicProgress,
    /// A status is about the generation that was seen, never about an older one than before.
    ObservedGeneration,
    /// The moment of a condition changes if and only if its status does.
    TransitionTime,
    /// What anything refers to is never deleted; what may be, only after its grace period, and never when nobody can tell.
    NoDeleteInUse,
    /// Each injected namespace has one live injector: no tag moves to a revision that is not ready, no two objects serve one name.
    OneInjectorPerNamespace,
    /// Nothing that exists is changed or deleted without saying which version of it was seen.
    WritePreconditions,
    /// While a migration is paused nothing of it starts.
    PauseStartsNothing,
    /// After a failure nothing starts if that was asked for, and everything goes on if it was not.
    FailurePolicy,
    /// What does not carry our mark is never changed or deleted.
    OwnedObjectsOnly,
    /// A plan follows from the snapshot alone, and holds no step that changes nothing.
    MinimalPlan,
    /// Steps come in the order of what depends on what, the status last.
    StepOrder,
    /// A finalizer goes only after what it guards is known to be gone.
    FinalizerLast,
}

impl Invariant {
    /// All that are checked here.
    pub const ALL: [Self; 16] = [
        Self::BatchSize,
        Self::NoRestartDuringRollout,
        Self::NoRepeatedMove,
        Self::CompleteCounts,
        Self::MonotonicProgress,
        Self::ObservedGeneration,
        Self::TransitionTime,
        Self::NoDeleteInUse,
        Self::OneInjectorPerNamespace,
        Self::WritePreconditions,
        Self::PauseStartsNothing,
        Self::FailurePolicy,
        Self::OwnedObjectsOnly,
        Self::MinimalPlan,
        Self::StepOrder,
        Self::FinalizerLast,
    ];
}

/// A promise a plan would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// Whose plan it is.
    pub subject: Subject,
    /// How.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} broken by the plan of {}: {}",
            self.invariant, self.subject, self.detail
        )
    }
}

/// Everything `plan` would break if it were carried out on `snapshot`.
#[must_use]
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut found = Findings {
        subject: &plan.subject,
        broken: Vec::new(),
    };
    status::check(snapshot, plan, &mut found);
    identity::check(snapshot, plan, &mut found);
    injector::check(snapshot, plan, &mut found);
    migration::check(snapshot, plan, &mut found);
    order::check(snapshot, plan, &mut found);
    found.broken
}

/// What was found so far.
struct Findings<'a> {
    subject: &'a Subject,
    broken: Vec<Violation>,
}

impl Findings<'_> {
    /// Notes a breach unless `holds`.
    fn expect(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(Violation {
                invariant,
                subject: self.subject.clone(),
                detail: detail(),
            });
        }
    }
}
