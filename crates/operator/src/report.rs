//! What the loop tells: plain words between the loop and whoever counts, logs or answers probes. Decides nothing, keeps nothing.

use std::sync::Arc;
use std::time::Duration;

use mainstay_mesh::references::Counts;
use mainstay_mesh::{Plan, Subject};

/// Whoever wants to know what the loop does. Telling must cost next to nothing: no I/O, no waiting.
pub trait Observer: Send + Sync {
    /// Takes a report.
    fn report(&self, report: &Report<'_>);
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// The loop went round; at least every 20 seconds, also when there is nothing to do and while another one leads.
    LoopIteration,
    /// Whether every source was listed: from then on plans are made.
    Synced(bool),
    /// Whether this process leads.
    Leading(bool),
    /// A plan was made, which took so long.
    Planned(&'a Plan, Duration),
    /// A plan was carried out, or not; an empty one too.
    Reconciled {
        /// What was to be done.
        plan: &'a Plan,
        /// How it ended.
        outcome: Outcome<'a>,
        /// How long planning and doing took together.
        took: Duration,
    },
    /// Something was written.
    Written {
        /// What was done: `create`, `apply`, `update`, `delete`, `status`, `finalizer`, `annotate`, `event`, `lease`.
        action: &'static str,
        /// Why: a reason of ours, or what differed.
        reason: &'a str,
    },
    /// The API was called.
    ApiCall {
        /// The verb as Kubernetes counts it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
        verb: &'static str,
        /// The answer's status; 0 when there was none.
        code: u16,
    },
    /// So many subjects wait for their turn.
    QueueDepth(usize),
    /// So many objects are kept in memory.
    Cached {
        /// Where: a kind, or a name of ours.
        cache: &'a str,
        /// How many.
        objects: usize,
    },
    /// So many refer to a revision; `None` once the revision is gone.
    InUse {
        /// Its name.
        revision: &'a str,
        /// By kind of reference.
        counts: Option<Counts>,
    },
    /// A subject was put into the queue.
    Enqueued {
        /// The subject.
        subject: &'a Subject,
        /// The cause: kind and name of an object, or a timer.
        cause: &'a str,
    },
}

/// How a plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// There was nothing to do.
    Idle,
    /// All of it was done.
    Done,
    /// A step failed; the text is the one in the status, without values.
    Failed(&'a str),
    /// Our own fault: a panic, caught.
    Panicked,
}

impl Outcome<'_> {
    /// In one word, for counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "noop",
            Self::Done => "success",
            Self::Failed(_) => "error",
            Self::Panicked => "panic",
        }
    }
}

/// Nobody listens.
impl Observer for () {
    fn report(&self, _: &Report<'_>) {}
}

/// All of them listen, in this order.
impl Observer for Vec<Arc<dyn Observer>> {
    fn report(&self, report: &Report<'_>) {
        for observer in self {
            observer.report(report);
        }
    }
}
