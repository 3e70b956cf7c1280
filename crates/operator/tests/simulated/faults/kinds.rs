//! Which faults strike which calls: takes the calls of a run, gives every strike. A table per sort of call.

use std::fmt;
use std::time::Duration;

use mainstay_sim::Cluster;
use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_sim::status::Status;

use crate::support::calls::{Call, OPERATOR, Sort};

/// One fault at one call.
pub(super) struct Strike {
    trigger: Trigger,
    fault: Fault,
    name: &'static str,
    line: String,
}

impl Strike {
    pub(super) fn arm(&self, cluster: &Cluster) {
        cluster.add_fault(Rule::once(OPERATOR, self.trigger.clone(), self.fault.clone()));
    }

    /// Whether an event never comes: then only a new list can show what happened.
    pub(super) fn hides_events(&self) -> bool {
        matches!(self.fault, Fault::SkipEvent(_) | Fault::Stale(_))
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} ({})", self.name, self.trigger, self.line)
    }
}

type Kinds = Vec<(&'static str, Fault)>;

/// Longer than any call may take.
const TOO_SLOW: Duration = Duration::from_secs(90);

/// What can happen to any call.
fn any() -> Kinds {
    vec![
        ("crash before", Fault::CrashBefore),
        ("crash after", Fault::CrashAfter),
        ("request lost", Fault::LoseRequest),
        ("429", Fault::throttled(2)),
        ("500", Fault::internal()),
        ("503", Fault::unavailable()),
        ("504", Fault::timeout()),
    ]
}

fn of_write() -> Kinds {
    let done = |status| Fault::RejectAfter(status);
    let mut kinds = any();
    kinds.extend([
        ("reply lost", Fault::LoseResponse),
        ("409", Fault::conflict()),
        ("timeout", Fault::Slow(TOO_SLOW)),
        ("done, then 500", done(Status::internal("injected fault"))),
        ("done, then 504", done(Status::timeout("injected fault", 0))),
    ]);
    kinds
}

fn of_read() -> Kinds {
    let mut kinds = any();
    kinds.extend([
        ("reply lost", Fault::LoseResponse),
        ("reply cut", Fault::Truncate),
        ("timeout", Fault::Slow(TOO_SLOW)),
        ("stale by 1", Fault::Stale(1)),
        ("stale by 5", Fault::Stale(5)),
        ("stale by 25", Fault::Stale(25)),
    ]);
    kinds
}

fn of_watch() -> Kinds {
    let gone = Status::new(410, "Expired", "too old resource version");
    let mut kinds = any();
    kinds.extend([
        ("410", Fault::Reject(gone)),
        ("watch dropped at once", Fault::DropWatch(0)),
        ("watch dropped after 1", Fault::DropWatch(1)),
        ("watch dropped after 4", Fault::DropWatch(4)),
        ("watch expired at once", Fault::ExpireWatch(0)),
        ("watch expired after 1", Fault::ExpireWatch(1)),
        ("watch expired after 4", Fault::ExpireWatch(4)),
        ("event 0 missed", Fault::SkipEvent(0)),
        ("event 1 missed", Fault::SkipEvent(1)),
        ("event 2 missed", Fault::SkipEvent(2)),
        ("event 4 missed", Fault::SkipEvent(4)),
        ("event 7 missed", Fault::SkipEvent(7)),
        ("event 0 twice", Fault::RepeatEvent(0)),
        ("event 2 twice", Fault::RepeatEvent(2)),
    ]);
    kinds
}

/// Every fault at every call.
pub(super) fn all(calls: &[Call]) -> Vec<Strike> {
    let mut strikes = Vec::new();
    let (mut writes, mut watches) = (0, 0);
    for (number, call) in calls.iter().enumerate() {
        let (trigger, kinds) = match call.sort {
            Sort::Write => (Trigger::Write(writes), of_write()),
            Sort::Watch => (Trigger::Watch(watches), of_watch()),
            Sort::Read => (Trigger::Request(number as u64), of_read()),
        };
        writes += u64::from(call.sort == Sort::Write);
        watches += u64::from(call.sort == Sort::Watch);
        strikes.extend(kinds.into_iter().map(|(name, fault)| Strike {
            trigger: trigger.clone(),
            fault,
            name,
            line: call.line.clone(),
        }));
    }
    strikes
}
