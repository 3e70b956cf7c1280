//! Standard finalizers, which the control plane handles and which have no domain.

/// Finalizer of a namespace, in `spec.finalizers`.
pub(crate) const KUBERNETES: &str = "kubernetes";
/// Finalizer of an object that orphans its dependents when it is deleted.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer of an object that is deleted after its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Returns whether `name` is a standard finalizer.
pub(crate) fn is_standard_finalizer(name: &str) -> bool {
    matches!(name, KUBERNETES | ORPHAN | FOREGROUND)
}
