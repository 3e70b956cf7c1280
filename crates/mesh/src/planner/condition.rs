//! The condition every kind but Istio writes about itself: takes trouble or none, gives `Reconciled`.

use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};

use crate::ReconcileError;

/// Whether what the object asks for is in place.
pub(super) fn reconciled(error: Option<&ReconcileError>) -> Condition {
    let (status, reason, message) = match error {
        None => (ConditionStatus::True, Reason::Reconciled, String::new()),
        Some(error) => (ConditionStatus::False, error.reason(), error.message()),
    };
    Condition::new(ConditionType::Reconciled, status, reason, message)
}

/// A condition nobody can tell, and why.
pub(super) fn unknown(kind: ConditionType, reason: Reason, message: String) -> Condition {
    Condition::new(kind, ConditionStatus::Unknown, reason, message)
}
