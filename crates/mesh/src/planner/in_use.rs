//! The `InUse` condition of revisions and tags.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, IstioRevision, IstioRevisionTag, ObjectKind, Reason, names,
};

use super::condition::unknown_condition;
use super::target;
use crate::Snapshot;
use crate::error::ReconcileError;
use crate::snapshot::Source;

/// Returns the `InUse` condition of a revision.
pub(super) fn revision_condition(snapshot: &Snapshot, revision: &IstioRevision) -> Condition {
    in_use_condition("revision", &is_revision_in_use(snapshot, revision))
}

/// Returns the `InUse` condition of a tag.
pub(super) fn tag_condition(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Condition {
    in_use_condition("revision tag", &is_tag_in_use(snapshot, tag))
}

/// Errors while determining whether a revision or tag is in use.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    /// A kind of referrers cannot be read.
    #[error("failed to list {kind}: {message}")]
    Unreadable { kind: &'static str, message: String },
    /// The target of a tag cannot be resolved.
    #[error(transparent)]
    Target(#[from] ReconcileError),
}

fn in_use_condition(what: &str, used: &Result<bool, UsageError>) -> Condition {
    let (reason, message) = match used {
        Ok(true) => (
            Reason::ReferencedByWorkloads,
            "Referenced by at least one pod or namespace",
        ),
        Ok(false) => (
            Reason::NotReferencedByAnything,
            "Not referenced by any pod or namespace",
        ),
        Err(error) => {
            let message = format!("failed to determine if {what} is in use: {error}");
            return unknown_condition(ConditionType::InUse, Reason::UsageCheckFailed, message);
        }
    };
    Condition::new(
        ConditionType::InUse,
        ConditionStatus::from(matches!(used, Ok(true))),
        reason,
        message,
    )
}

/// Whether a revision is in use. Fails if any source cannot be read, even if another source contains a
/// reference: the revision is kept in both cases.
pub(super) fn is_revision_in_use(snapshot: &Snapshot, revision: &IstioRevision) -> Result<bool, UsageError> {
    check_readable(snapshot, Source::Objects(ObjectKind::IstioRevisionTag))?;
    check_workloads_readable(snapshot)?;
    let referred_to = snapshot.references().uses_revision(revision.name());
    Ok(referred_to || is_default_for_all(revision.name(), revision))
}

fn is_tag_in_use(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Result<bool, UsageError> {
    check_workloads_readable(snapshot)?;
    if snapshot.references().uses_tag(tag.name()) {
        return Ok(true);
    }
    let target = target::resolve(snapshot, &tag.spec.target_ref)?;
    Ok(is_default_for_all(tag.name(), target))
}

fn check_workloads_readable(snapshot: &Snapshot) -> Result<(), UsageError> {
    check_readable(snapshot, Source::Namespaces)?;
    check_readable(snapshot, Source::Pods)
}

fn check_readable(snapshot: &Snapshot, source: Source) -> Result<(), UsageError> {
    snapshot
        .readable(source)
        .map_err(|message| UsageError::Unreadable {
            kind: source.name(),
            message: message.to_owned(),
        })
}

/// Whether `name` is the default revision or tag and `enableNamespacesByDefault` is set, so that its injector
/// serves every namespace without injection labels.
fn is_default_for_all(name: &str, revision: &IstioRevision) -> bool {
    name == names::DEFAULT_REVISION && revision.spec.enables_namespaces_by_default()
}
