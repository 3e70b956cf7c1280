//! Kubernetes Events for changes of the status.

use mainstay_api::istio_operator::{InstallState, IstioOperatorStatus};
use mainstay_api::{ConditionType, Reason};

/// An event about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerEvent {
    /// Machine-readable reason of the event.
    pub reason: Reason,
    /// Whether the type of the event is `Warning`.
    pub is_warning: bool,
    /// Message for users.
    pub message: String,
}

impl ControllerEvent {
    /// Creates an event of type `Normal`.
    #[must_use]
    pub fn normal(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            is_warning: false,
            message: message.into(),
        }
    }

    fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            ..Self::normal(reason, message)
        }
    }
}

/// Returns the events for the transition from `old` to `new`.
#[must_use]
pub fn transition_events(old: &IstioOperatorStatus, new: &IstioOperatorStatus) -> Vec<ControllerEvent> {
    let mut events = Vec::new();
    let changed = |kind: ConditionType| {
        let (before, after) = (old.conditions.get(&kind), new.conditions.get(&kind));
        let is_equal =
            (before.status, &before.reason, &before.message) == (after.status, &after.reason, &after.message);
        (!is_equal).then_some(after)
    };
    let failed = changed(ConditionType::Reconciled).filter(|one| !one.is_true());
    events.extend(failed.map(|one| ControllerEvent::warning(one.reason, one.message)));
    let blocked = changed(ConditionType::DeletionBlocked).filter(mainstay_api::Condition::is_true);
    events.extend(blocked.map(|one| ControllerEvent::warning(one.reason, one.message)));
    let is_late = new.status == InstallState::Error && new.conditions.is_true(&ConditionType::Reconciled);
    if is_late && old.status != InstallState::Error {
        let message = new.message.clone();
        events.push(ControllerEvent::warning(Reason::ComponentsNotReady, message));
    }
    if new.status == InstallState::Healthy && old.status != InstallState::Healthy {
        let components: Vec<&str> = new.component_status.keys().map(String::as_str).collect();
        let message = format!("all components are ready: {}", components.join(", "));
        events.push(ControllerEvent::normal(Reason::InstallationCompleted, message));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use mainstay_api::{Condition, ConditionStatus};

    fn status(state: InstallState, reconciled: bool, message: &str) -> IstioOperatorStatus {
        let mut status = IstioOperatorStatus {
            status: state,
            ..IstioOperatorStatus::default()
        };
        let condition = Condition::new(
            ConditionType::Reconciled,
            ConditionStatus::from(reconciled),
            Reason::ReconcileError,
            message,
        );
        status.conditions.set(condition, Timestamp::UNIX_EPOCH);
        status
    }

    fn reasons(old: &IstioOperatorStatus, new: &IstioOperatorStatus) -> Vec<String> {
        let events = transition_events(old, new);
        events.iter().map(|one| one.reason.to_string()).collect()
    }

    #[test]
    fn each_change_is_reported_once() {
        let (none, failed) = (
            IstioOperatorStatus::default(),
            status(InstallState::Error, false, "a"),
        );
        assert_eq!(reasons(&none, &failed), ["ReconcileError"]);
        assert_eq!(reasons(&failed, &failed), [""; 0]);
        let other = status(InstallState::Error, false, "b");
        assert_eq!(reasons(&failed, &other), ["ReconcileError"], "another cause");
        let healthy = status(InstallState::Healthy, true, "");
        assert_eq!(reasons(&other, &healthy), ["InstallationCompleted"]);
        assert_eq!(reasons(&healthy, &healthy), [""; 0]);
        let late = status(InstallState::Error, true, "");
        assert_eq!(reasons(&healthy, &late), ["ComponentsNotReady"]);
    }
}
