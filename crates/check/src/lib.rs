//! Checks a plan against the invariants. All expected values are derived from the snapshot, independently of
//! the planner. Only the migration settings are parsed by the parser that the planner uses.
//!
//! ```text
//! Snapshot, Plan ──check()──▶ Vec<Violation>      (empty for a valid plan)
//! ```

mod identity;
mod injector;
mod migration;
mod order;
mod status;

use std::fmt;

use mainstay_mesh::{Plan, Snapshot, Subject};

/// A property that no plan may violate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// The number of workloads that restart because of a migration is at most the batch size.
    BatchSize,
    /// No workload is restarted before the rollout after its previous restart is complete: its controller
    /// limits the number of unavailable pods for one rollout at a time only.
    NoRestartDuringRollout,
    /// A migrated workload is not restarted again, and no workload is restarted unless its Istio requests it.
    NoRepeatedMove,
    /// Migrated, failed, skipped and outstanding workloads add up to the total.
    CompleteCounts,
    /// Within one migration the number of migrated workloads never decreases.
    MonotonicProgress,
    /// The observed generation of a status never decreases and never exceeds the generation of the object.
    ObservedGeneration,
    /// The transition time of a condition changes if and only if its status does.
    TransitionTime,
    /// No revision or tag is deleted while it is in use, within its grace period, or while its use is
    /// unknown.
    NoDeleteInUse,
    /// Each injected namespace has one ready injector: no tag moves to a revision that is not ready, and no
    /// two objects serve one name.
    OneInjectorPerNamespace,
    /// Every change or deletion names the observed version of its object.
    WritePreconditions,
    /// While a migration is paused, no workload is restarted and no namespace is relabeled.
    PauseStartsNothing,
    /// While namespaces, pods or workloads cannot be read, no workload is restarted, no namespace is
    /// relabeled and no migration ends.
    ReadableSources,
    /// After a failure no batch starts under `FailFast`, and the migration continues otherwise.
    FailurePolicy,
    /// Only objects that the subject owns are changed or deleted.
    OwnedObjectsOnly,
    /// A plan is a function of the snapshot, and every step changes something.
    MinimalPlan,
    /// Steps are ordered by their dependencies, the status last.
    StepOrder,
    /// A finalizer is removed only after all releases that it protects are known to be uninstalled.
    FinalizerLast,
}

impl Invariant {
    /// All invariants.
    pub const ALL: [Self; 17] = [
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
        Self::ReadableSources,
        Self::FailurePolicy,
        Self::OwnedObjectsOnly,
        Self::MinimalPlan,
        Self::StepOrder,
        Self::FinalizerLast,
    ];
}

/// An invariant that a plan violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Violated invariant.
    pub invariant: Invariant,
    /// Subject of the plan.
    pub subject: Subject,
    /// Description of the violation.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} violated by the plan of {}: {}",
            self.invariant, self.subject, self.detail
        )
    }
}

/// Returns the invariants that `plan` violates when it is executed on `snapshot`.
#[must_use]
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut found = Findings {
        subject: &plan.subject,
        violations: Vec::new(),
    };
    status::check(snapshot, plan, &mut found);
    identity::check(snapshot, plan, &mut found);
    injector::check(snapshot, plan, &mut found);
    migration::check(snapshot, plan, &mut found);
    order::check(snapshot, plan, &mut found);
    found.violations
}

/// Violations found so far.
struct Findings<'a> {
    subject: &'a Subject,
    violations: Vec<Violation>,
}

impl Findings<'_> {
    /// Records a violation unless `holds`.
    fn expect(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(Violation {
                invariant,
                subject: self.subject.clone(),
                detail: detail(),
            });
        }
    }
}
