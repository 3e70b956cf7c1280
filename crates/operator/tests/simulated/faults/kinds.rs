//! Faults of each kind of call.

use std::fmt;
use std::time::Duration;

use mainstay_sim::Cluster;
use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_sim::status::Status;

use crate::support::calls::{Call, CallKind, OPERATOR};

/// A fault at one call.
pub(super) struct InjectedFault {
    trigger: Trigger,
    fault: Fault,
    name: &'static str,
    line: String,
}

impl InjectedFault {
    pub(super) fn inject(&self, cluster: &Cluster) {
        cluster.add_fault(Rule::once(OPERATOR, self.trigger.clone(), self.fault.clone()));
    }

    /// Whether the fault drops events, so that the operator recovers only by a new list.
    pub(super) fn drops_events(&self) -> bool {
        matches!(self.fault, Fault::SkipEvent(_) | Fault::Stale(_))
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?} ({})", self.name, self.trigger, self.line)
    }
}

type Kinds = Vec<(&'static str, Fault)>;

/// Response time that is longer than the timeout of any call.
const SLOW_RESPONSE_TIME: Duration = Duration::from_secs(90);

/// Returns the faults that apply to any call.
fn common_faults() -> Kinds {
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

fn write_faults() -> Kinds {
    let reject_after = |status| Fault::RejectAfter(status);
    let mut kinds = common_faults();
    kinds.extend([
        ("response lost", Fault::LoseResponse),
        ("409", Fault::conflict()),
        ("timeout", Fault::Slow(SLOW_RESPONSE_TIME)),
        (
            "executed, then 500",
            reject_after(Status::internal("injected fault")),
        ),
        (
            "executed, then 504",
            reject_after(Status::timeout("injected fault", 0)),
        ),
    ]);
    kinds
}

fn read_faults() -> Kinds {
    let mut kinds = common_faults();
    kinds.extend([
        ("response lost", Fault::LoseResponse),
        ("response truncated", Fault::Truncate),
        ("timeout", Fault::Slow(SLOW_RESPONSE_TIME)),
        ("stale by 1", Fault::Stale(1)),
        ("stale by 5", Fault::Stale(5)),
        ("stale by 25", Fault::Stale(25)),
    ]);
    kinds
}

fn watch_faults() -> Kinds {
    let gone = Status::new(410, "Expired", "too old resource version");
    let mut kinds = common_faults();
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

/// Returns every fault at every call.
pub(super) fn all_faults(calls: &[Call]) -> Vec<InjectedFault> {
    let mut faults = Vec::new();
    let (mut writes, mut watches) = (0, 0);
    for (number, call) in calls.iter().enumerate() {
        let (trigger, kinds) = match call.kind {
            CallKind::Write => (Trigger::Write(writes), write_faults()),
            CallKind::Watch => (Trigger::Watch(watches), watch_faults()),
            CallKind::Read => (Trigger::Request(number as u64), read_faults()),
        };
        writes += u64::from(call.kind == CallKind::Write);
        watches += u64::from(call.kind == CallKind::Watch);
        faults.extend(kinds.into_iter().map(|(name, fault)| InjectedFault {
            trigger: trigger.clone(),
            fault,
            name,
            line: call.line.clone(),
        }));
    }
    faults
}
