//! Reports of the control loops for metrics, logs and health probes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mainstay_mesh::references::Counts;
use mainstay_mesh::{Plan, Subject};

/// A receiver of reports. Implementations must be fast, without I/O and without waiting.
pub trait Observer: Send + Sync {
    /// Receives a report.
    fn report(&self, report: &Report<'_>);
}

/// A report of a control loop.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// The loop iterated. It iterates at least every 20 seconds, also without work and while another
    /// process is the leader.
    LoopIteration,
    /// Whether every watch was listed.
    Synced(bool),
    /// Whether this process is the leader.
    Leading(bool),
    /// A plan was made. The duration is the time of planning.
    Planned(&'a Plan, Duration),
    /// A plan was executed, or was empty.
    Reconciled {
        /// Plan of the subject.
        plan: &'a Plan,
        /// Outcome of the plan.
        outcome: Outcome<'a>,
        /// Time of planning and executing.
        duration: Duration,
    },
    /// An `IstioOperator` was reconciled.
    InstallationReconciled {
        /// Outcome of the reconciliation.
        outcome: Outcome<'a>,
        /// Time of planning and executing.
        duration: Duration,
    },
    /// Number of `IstioOperator`s by state. The state of a resource without one is empty.
    Installations(&'a BTreeMap<String, usize>),
    /// An object was written.
    Written {
        /// Kind of write: `create`, `apply`, `update`, `delete`, `status`, `finalizer`, `annotate`,
        /// `event`, `lease`.
        action: &'static str,
        /// Reason of the step, or name of the difference to the live object.
        reason: &'a str,
    },
    /// An API call was completed.
    ApiCall {
        /// Verb in the terms of Kubernetes: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
        verb: &'static str,
        /// HTTP status code; 0 without a response.
        code: u16,
    },
    /// Number of queued subjects.
    QueueDepth(usize),
    /// Number of objects in a cache.
    Cached {
        /// Name of the cache: a kind, `managed`, `delivery` or `istio_operator`.
        cache: &'a str,
        /// Number of objects.
        objects: usize,
    },
    /// Referrers of a revision.
    InUse {
        /// Name of the revision.
        revision: &'a str,
        /// Number of referrers by kind of reference; `None` if the revision was deleted.
        counts: Option<Counts>,
    },
    /// A subject was enqueued.
    Enqueued {
        /// Enqueued subject.
        subject: &'a Subject,
        /// Cause: kind and name of an object, or a timer.
        cause: &'a str,
    },
}

/// Outcome of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The plan was empty.
    Noop,
    /// Every step succeeded.
    Succeeded,
    /// A write conflicted with a change by another client. The subject is planned again immediately.
    Conflict,
    /// A step failed. The text is the message in the status, with chart values replaced.
    Failed(&'a str),
    /// A step or the planner panicked (a bug).
    Panicked,
}

impl Outcome<'_> {
    /// Returns the value of the label `result` of metrics.
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
