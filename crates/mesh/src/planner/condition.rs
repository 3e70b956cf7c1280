//! Conditions common to all kinds except Istio.

use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};

use crate::ReconcileError;

/// Returns the `Reconciled` condition.
pub(super) fn reconciled_condition(error: Option<&ReconcileError>) -> Condition {
    let (status, reason, message) = match error {
        None => (ConditionStatus::True, Reason::Reconciled, String::new()),
        Some(error) => (ConditionStatus::False, error.reason(), error.message()),
    };
    Condition::new(ConditionType::Reconciled, status, reason, message)
}

/// Returns an unknown condition with its cause.
pub(super) fn unknown_condition(kind: ConditionType, reason: Reason, message: String) -> Condition {
    Condition::new(kind, ConditionStatus::Unknown, reason, message)
}
