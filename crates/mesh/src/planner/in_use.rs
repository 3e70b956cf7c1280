//! The `InUse` condition of revisions and tags.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, IstioRevision, IstioRevisionTag, ObjectKind, Reason, names,
};

use super::condition::unknown;
use super::target;
use crate::Snapshot;
use crate::error::ReconcileError;
use crate::snapshot::Source;

/// Returns the `InUse` condition of a revision.
pub(super) fn revision_condition(snapshot: &Snapshot, revision: &IstioRevision) -> Condition {
    condition("revision", &revision_used(snapshot, revision))
}

/// Returns the `InUse` condition of a tag.
pub(super) fn tag_condition(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Condition {
    condition("revision tag", &tag_used(snapshot, tag))
}

/// Reasons why the use of a revision or tag is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageError {
    /// A kind of referrers cannot be read.
    #[error("failed to list {kind}: {message}")]
    Unreadable { kind: &'static str, message: String },
    /// The target of a tag cannot be resolved.
    #[error(transparent)]
    Target(#[from] ReconcileError),
}

fn condition(what: &str, used: &Result<bool, UsageError>) -> Condition {
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
            return unknown(ConditionType::InUse, Reason::UsageCheckFailed, message);
        }
    };
    Condition::new(
        ConditionType::InUse,
        ConditionStatus::from(matches!(used, Ok(true))),
        reason,
        message,
    )
}

/// Whether a revision is in use. Unknown if any source cannot be read, even if another one shows a reference:
/// nothing is deleted either way.
pub(super) fn revision_used(snapshot: &Snapshot, revision: &IstioRevision) -> Result<bool, UsageError> {
    listed(snapshot, Source::Objects(ObjectKind::IstioRevisionTag))?;
    workloads_listed(snapshot)?;
    let referred_to = snapshot.references().uses_revision(revision.name());
    Ok(referred_to || is_default_for_all(revision.name(), revision))
}

fn tag_used(snapshot: &Snapshot, tag: &IstioRevisionTag) -> Result<bool, UsageError> {
    workloads_listed(snapshot)?;
    if snapshot.references().uses_tag(tag.name()) {
        return Ok(true);
    }
    let target = target::resolve(snapshot, &tag.spec.target_ref)?;
    Ok(is_default_for_all(tag.name(), target))
}

fn workloads_listed(snapshot: &Snapshot) -> Result<(), UsageError> {
    listed(snapshot, Source::Namespaces)?;
    listed(snapshot, Source::Pods)
}

fn listed(snapshot: &Snapshot, source: Source) -> Result<(), UsageError> {
    snapshot
        .readable(source)
        .map_err(|message| UsageError::Unreadable {
            kind: source.name(),
            message: message.to_owned(),
        })
}

/// With `enableNamespacesByDefault` the default revision injects every namespace without injection labels.
fn is_default_for_all(name: &str, revision: &IstioRevision) -> bool {
    name == names::DEFAULT_REVISION && revision.spec.enables_namespaces_by_default()
}
