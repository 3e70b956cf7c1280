//! Does a plan keep its promises? Takes a snapshot and a plan, gives the invariants the plan would break. Knows no planner's
//! reasons: what it checks it works out for itself, from the snapshot.
//!
//! ```text
//! Snapshot, Plan ──check()──▶ Vec<Broken>      (empty for a good plan)
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
    I1,
    /// No workload is restarted while it is still coming up after we restarted it: how many of its pods go at once is for its own controller to
    /// decide, and it decides for one change at a time.
    I2,
    /// A workload that has arrived is not moved again, and nobody moves one without being asked.
    I3,
    /// Moved, failed, skipped and outstanding workloads are all there are.
    I4,
    /// Within one migration the number of moved workloads never goes down.
    I5,
    /// A status is about the generation that was seen, never about an older one than before.
    I6,
    /// The moment of a condition changes if and only if its status does.
    I7,
    /// What anything refers to is never deleted; what may be, only after its grace period, and never when nobody can tell.
    I8,
    /// Each injected namespace has one live injector: no tag moves to a revision that is not ready, no two objects serve one name.
    I9,
    /// Nothing that exists is changed or deleted without saying which version of it was seen.
    I10,
    /// While a migration is paused nothing of it starts.
    I11,
    /// After a failure nothing starts if that was asked for, and everything goes on if it was not.
    I12,
    /// What does not carry our mark is never changed or deleted.
    I14,
    /// A plan follows from the snapshot alone, and holds no step that changes nothing.
    I15,
    /// Steps come in the order of what depends on what, the status last.
    I16,
    /// A finalizer goes only after what it guards is known to be gone.
    I17,
}

impl Invariant {
    /// All that are checked here.
    pub const ALL: [Self; 16] = [
        Self::I1,
        Self::I2,
        Self::I3,
        Self::I4,
        Self::I5,
        Self::I6,
        Self::I7,
        Self::I8,
        Self::I9,
        Self::I10,
        Self::I11,
        Self::I12,
        Self::I14,
        Self::I15,
        Self::I16,
        Self::I17,
    ];
}

/// A promise a plan would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// Whose plan it is.
    pub subject: Subject,
    /// How.
    pub detail: String,
}

impl fmt::Display for Broken {
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
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Broken> {
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
    broken: Vec<Broken>,
}

impl Findings<'_> {
    /// Notes a breach unless `holds`.
    fn expect(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(Broken {
                invariant,
                subject: self.subject.clone(),
                detail: detail(),
            });
        }
    }
}
