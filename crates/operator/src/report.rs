//! Reports of the control loop for metrics, logs and health probes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay_mesh::references::Counts;
use mainstay_mesh::{Plan, Subject};

/// Receives the loop's reports. Implementations must be cheap: no I/O, no waiting.
pub trait Observer: Send + Sync {
    /// Receives a report.
    fn report(&self, report: &Report<'_>);
}

/// A report of the loop.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// The loop iterated; at least every 20 seconds, also without work and while another process leads.
    LoopIteration,
    /// Whether every watch was listed.
    Synced(bool),
    /// Whether this process leads.
    Leading(bool),
    /// A plan was made in this time.
    Planned(&'a Plan, Duration),
    /// A plan was executed, or was empty.
    Reconciled {
        /// The plan.
        plan: &'a Plan,
        /// Its outcome.
        outcome: Outcome<'a>,
        /// Time of planning and executing.
        duration: Duration,
    },
    /// An `IstioOperator` was reconciled.
    InstallationReconciled {
        /// The outcome.
        outcome: Outcome<'a>,
        /// Time of planning and executing.
        duration: Duration,
    },
    /// Number of `IstioOperator`s by state; empty for those without one.
    Installations(&'a BTreeMap<String, usize>),
    /// An object was written.
    Written {
        /// The kind of write: `create`, `apply`, `update`, `delete`, `status`, `finalizer`, `annotate`,
        /// `event`, `lease`.
        action: &'static str,
        /// The reason: one of our reasons, or what differed.
        reason: &'a str,
    },
    /// The API was called.
    ApiCall {
        /// The verb as Kubernetes names it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
        verb: &'static str,
        /// The status code; 0 without a response.
        code: u16,
    },
    /// Number of queued subjects.
    QueueDepth(usize),
    /// Number of objects in a cache.
    Cached {
        /// The name of the cache: a kind, or `managed`.
        cache: &'a str,
        /// Number of objects.
        objects: usize,
    },
    /// Number of referrers of a revision; `None` once the revision is deleted.
    InUse {
        /// Name of the revision.
        revision: &'a str,
        /// Referrers by kind.
        counts: Option<Counts>,
    },
    /// A subject was enqueued.
    Enqueued {
        /// The subject.
        subject: &'a Subject,
        /// The cause: kind and name of an object, or a timer.
        cause: &'a str,
    },
}

/// The outcome of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// There was nothing to do.
    Noop,
    /// Every step succeeded.
    Succeeded,
    /// A write conflicted with another writer; the subject is planned again at once.
    Conflict,
    /// A step failed; the text is the one in the status, without values.
    Failed(&'a str),
    /// A step or the planner panicked (a bug).
    Panicked,
}

impl Outcome<'_> {
    /// Returns the label value for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Succeeded => "success",
            Self::Conflict => "conflict",
            Self::Failed(_) => "error",
            Self::Panicked => "panic",
        }
    }
}

/// Discards every report.
impl Observer for () {
    fn report(&self, _: &Report<'_>) {}
}

/// Forwards reports to each observer in order.
impl Observer for Vec<Arc<dyn Observer>> {
    fn report(&self, report: &Report<'_>) {
        for observer in self {
            observer.report(report);
        }
    }
}
