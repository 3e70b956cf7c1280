//! Readiness of the `DaemonSet` of `IstioCNI` or `ZTunnel`.

use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};

use super::condition::unknown_condition;
use crate::Snapshot;
use crate::snapshot::Source;

/// Returns the `Ready` condition of the object that installs a `DaemonSet`.
pub(super) fn ready_condition(snapshot: &Snapshot, namespace: &str, name: &str) -> Condition {
    if let Err(error) = snapshot.readable(Source::DaemonSets) {
        let message = format!("failed to get readiness: {error}");
        return unknown_condition(ConditionType::Ready, Reason::ReadinessCheckFailed, message);
    }
    let problem = match snapshot.daemonset(namespace, name) {
        None => Some(format!("{name} DaemonSet not found")),
        Some(found) if found.scheduled == 0 => Some(format!("no {name} pods are currently scheduled")),
        Some(found) if found.ready < found.scheduled => Some(format!("not all {name} pods are ready")),
        Some(_) => None,
    };
    let (status, reason) = match problem {
        None => (ConditionStatus::True, Reason::Ready),
        Some(_) => (ConditionStatus::False, Reason::DaemonSetNotReady),
    };
    Condition::new(ConditionType::Ready, status, reason, problem.unwrap_or_default())
}
