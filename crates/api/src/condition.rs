//! Conditions, and upstream's rule for transition times.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::vocabulary::vocabulary;
use crate::{Reason, Time};

vocabulary! {
    /// Type of a condition.
    ConditionType {
        /// Whether the desired state of the object is in place.
        Reconciled = "Reconciled",
        /// Whether all components are running.
        Ready = "Ready",
        /// Whether the objects that the object depends on are healthy.
        DependenciesHealthy = "DependenciesHealthy",
        /// Whether any object refers to the object.
        InUse = "InUse",
        /// Whether the tags that an Istio manages are in place. Not upstream. Set only on an Istio that
        /// manages tags.
        TagsReconciled = "TagsReconciled",
        /// Whether all workloads are on the active revision. Not upstream. Set only on an Istio that
        /// migrates workloads.
        WorkloadsMigrated = "WorkloadsMigrated",
        /// Whether a rollout makes progress.
        Progressing = "Progressing",
        /// Whether all revisions of a deployment exist and have the components that routes refer to.
        RevisionsResolved = "RevisionsResolved",
        /// Whether all clusters of a deployment can be reached.
        ClustersReachable = "ClustersReachable",
        /// Whether routes have the weights of the current step.
        TrafficApplied = "TrafficApplied",
        /// Whether no analysis failed.
        AnalysisPassed = "AnalysisPassed",
        /// Whether the deletion of an installation is blocked.
        DeletionBlocked = "DeletionBlocked",
    }
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It cannot be determined whether the condition holds.
    #[default]
    Unknown,
}

impl<'de> Deserialize<'de> for ConditionStatus {
    /// Values other than `True` and `False` are parsed as `Unknown`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        })
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition: one aspect of an object's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type", skip_serializing_if = "ConditionType::is_empty")]
    pub kind: ConditionType,
    /// Status of the condition: True, False or Unknown.
    pub status: ConditionStatus,
    /// Reason as one `CamelCase` word.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub reason: Reason,
    /// Reason as a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time when the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// Creates a condition without a transition time, which [`Conditions::set`] adds.
    #[must_use]
    pub fn new(
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason,
            message: message.into(),
            last_transition_time: None,
        }
    }

    /// Whether the status is true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// Conditions of an object, in the order in which they were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(pub Vec<Condition>);

impl Conditions {
    /// Whether there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the condition of this type, or `None` if it is not set.
    #[must_use]
    pub fn find(&self, kind: &ConditionType) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == *kind)
    }

    /// Returns the condition of this type. If it is not set, returns an unknown one without a reason.
    #[must_use]
    pub fn get(&self, kind: &ConditionType) -> Condition {
        let missing = || Condition {
            kind: kind.clone(),
            ..Condition::default()
        };
        self.find(kind).cloned().unwrap_or_else(missing)
    }

    /// Whether the condition of this type is set and true.
    #[must_use]
    pub fn is_true(&self, kind: &ConditionType) -> bool {
        self.find(kind).is_some_and(Condition::is_true)
    }

    /// Sets a condition. Its transition time changes only if its status changes.
    pub fn set(&mut self, mut condition: Condition, now: Timestamp) {
        condition.last_transition_time = Some(Time::from_timestamp(now));
        let Some(known) = self.0.iter_mut().find(|known| known.kind == condition.kind) else {
            self.0.push(condition);
            return;
        };
        if known.status == condition.status {
            condition.last_transition_time = known.last_transition_time;
        }
        *known = condition;
    }
}

/// Returns the state of an object: the reason of the first condition that is not true, or `Healthy`.
#[must_use]
pub fn derive_state<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> Reason {
    let failing = conditions.into_iter().find(|condition| !condition.is_true());
    failing.map_or(Reason::Healthy, |condition| condition.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + 987).unwrap()
    }

    fn condition(kind: ConditionType, status: ConditionStatus, reason: Reason) -> Condition {
        Condition::new(kind, status, reason, "")
    }

    fn shown(conditions: &Conditions) -> Vec<String> {
        let show = |c: &Condition| {
            let since = c
                .last_transition_time
                .map_or(0, |time| time.timestamp().as_second());
            format!("{}={:?}/{}@{since}", c.kind, c.status, c.reason)
        };
        conditions.0.iter().map(show).collect()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        use ConditionStatus::{False, True};
        let mut conditions = Conditions::default();
        conditions.set(
            condition(ConditionType::Ready, False, Reason::IstiodNotReady),
            at(1),
        );
        conditions.set(
            condition(ConditionType::InUse, True, Reason::ReferencedByWorkloads),
            at(2),
        );
        conditions.set(
            condition(ConditionType::Ready, False, Reason::ReadinessCheckFailed),
            at(3),
        );
        assert_eq!(
            shown(&conditions),
            [
                "Ready=False/ReadinessCheckFailed@1",
                "InUse=True/ReferencedByWorkloads@2"
            ]
        );
        conditions.set(condition(ConditionType::Ready, True, Reason::Ready), at(4));
        assert_eq!(
            shown(&conditions),
            ["Ready=True/Ready@4", "InUse=True/ReferencedByWorkloads@2"]
        );
    }

    #[test]
    fn a_missing_condition_is_unknown_without_a_reason() {
        let missing = Conditions::default().get(&ConditionType::InUse);
        assert_eq!(
            (missing.status, missing.reason.name()),
            (ConditionStatus::Unknown, "")
        );
    }

    /// Returns the state for the status of the conditions `Reconciled`, `Ready` and `DependenciesHealthy`.
    fn state(
        reconciled: (ConditionStatus, Reason),
        ready: (ConditionStatus, Reason),
        healthy: (ConditionStatus, Reason),
    ) -> Reason {
        let conditions = [
            condition(ConditionType::Reconciled, reconciled.0, reconciled.1),
            condition(ConditionType::Ready, ready.0, ready.1),
            condition(ConditionType::DependenciesHealthy, healthy.0, healthy.1),
        ];
        derive_state(&conditions)
    }

    #[test]
    fn the_state_is_the_reason_of_the_first_condition_that_is_not_true() {
        use ConditionStatus::{False, True, Unknown};
        let fine = |reason: Reason| (True, reason);
        let reconciled = || fine(Reason::Reconciled);
        let ready = || fine(Reason::Ready);
        let healthy = || fine(Reason::DependenciesHealthy);
        let failed = || (False, Reason::ReconcileError);
        let waiting = || (False, Reason::IstiodNotReady);
        assert_eq!(
            state(reconciled(), ready(), healthy()),
            Reason::Healthy,
            "healthy"
        );
        assert_eq!(
            state(failed(), ready(), healthy()),
            Reason::ReconcileError,
            "not reconciled"
        );
        assert_eq!(
            state(reconciled(), waiting(), healthy()),
            Reason::IstiodNotReady,
            "not ready"
        );
        let unknown = (Unknown, Reason::ReadinessCheckFailed);
        assert_eq!(
            state(reconciled(), unknown, healthy()),
            Reason::ReadinessCheckFailed,
            "readiness unknown"
        );
        assert_eq!(
            state(failed(), waiting(), healthy()),
            Reason::ReconcileError,
            "not reconciled nor ready"
        );
        let alone = (False, Reason::IstioCniNotFound);
        assert_eq!(
            state(reconciled(), ready(), alone),
            Reason::IstioCniNotFound,
            "dependencies not ready"
        );
    }

    #[test]
    fn unknown_types_and_reasons_are_kept() {
        let text = r#"{"type":"Strange","status":"Maybe","reason":"Why"}"#;
        let read: Condition = serde_json::from_str(text).unwrap();
        assert_eq!(
            (read.status, read.reason.name(), read.kind.name()),
            (ConditionStatus::Unknown, "Why", "Strange")
        );
        let empty: Condition = serde_json::from_str("{}").unwrap();
        assert_eq!(empty, Condition::default());
    }
}
