//! Resolves references and version names, and checks namespaces.

use mainstay_api::{IstioRevision, ObjectKind, TargetKind, TargetReference};
use mainstay_catalog::Version;

use crate::snapshot::Source;
use crate::{Invalid, ReconcileError, Resolution, Snapshot};

/// Returns the revision a reference resolves to: that revision, or the active one of an Istio.
pub(super) fn resolve<'a>(
    snapshot: &'a Snapshot,
    target: &TargetReference,
) -> Result<&'a IstioRevision, ReconcileError> {
    let name = match target.target() {
        TargetKind::Revision => target.name.as_str(),
        TargetKind::Istio => active_revision_of_istio(snapshot, &target.name)?,
        TargetKind::Unknown => return Err(Invalid::UnknownTarget.into()),
    };
    check_kind_readable(snapshot, ObjectKind::IstioRevision, "")?;
    let missing = || ReconcileError::Missing(ObjectKind::IstioRevision, name.to_owned());
    snapshot.revisions().get(name).ok_or_else(missing)
}

fn active_revision_of_istio<'a>(snapshot: &'a Snapshot, istio: &str) -> Result<&'a str, ReconcileError> {
    check_kind_readable(snapshot, ObjectKind::Istio, "")?;
    let missing = || ReconcileError::Missing(ObjectKind::Istio, istio.to_owned());
    let active = &snapshot
        .istios()
        .get(istio)
        .ok_or_else(missing)?
        .status
        .active_revision_name;
    if active.is_empty() {
        Err(ReconcileError::NoActiveRevision)
    } else {
        Ok(active)
    }
}

/// Checks that a kind can be read.
pub(super) fn check_kind_readable(
    snapshot: &Snapshot,
    kind: ObjectKind,
    context: &'static str,
) -> Result<(), ReconcileError> {
    check_source_readable(snapshot, Source::Objects(kind), context)
}

fn check_source_readable(
    snapshot: &Snapshot,
    source: Source,
    context: &'static str,
) -> Result<(), ReconcileError> {
    snapshot
        .readable(source)
        .map_err(|error| ReconcileError::Unreadable {
            context,
            error: error.to_owned(),
        })
}

/// Returns the version that a name resolves to. `what` returns upstream's description of the name for an
/// error.
pub(crate) fn resolve_version(
    snapshot: &Snapshot,
    name: &str,
    what: impl FnOnce() -> String,
) -> Result<Version, ReconcileError> {
    match snapshot.library.resolve(name) {
        Some(Resolution::Installable(version)) => Ok(version.clone()),
        Some(Resolution::ChartsUnavailable(version)) => {
            Err(ReconcileError::ChartsUnavailable(version.clone()))
        }
        Some(Resolution::EndOfLife) => Err(Invalid::EndOfLife(name.to_owned()).into()),
        None => Err(ReconcileError::UnknownVersion {
            what: what(),
            version: name.to_owned(),
        }),
    }
}

/// Checks that version and namespace are set, and that the namespace exists and is not being deleted.
pub(super) fn check_version_and_namespace(
    snapshot: &Snapshot,
    version: &str,
    namespace: &str,
) -> Result<(), ReconcileError> {
    check_set("version", version)?;
    check_set("namespace", namespace)?;
    check_namespace(snapshot, namespace)
}

/// Checks that a field is set.
pub(super) fn check_set(field: &'static str, value: &str) -> Result<(), ReconcileError> {
    if value.is_empty() {
        Err(Invalid::NotSet(field).into())
    } else {
        Ok(())
    }
}

/// Checks that a namespace exists and is not being deleted.
pub(super) fn check_namespace(snapshot: &Snapshot, name: &str) -> Result<(), ReconcileError> {
    check_source_readable(snapshot, Source::Namespaces, "get failed: ")?;
    match snapshot.namespace(name) {
        None => Err(Invalid::NoNamespace(name.to_owned()).into()),
        Some(namespace) if namespace.terminating => Err(Invalid::NamespaceDeleted(name.to_owned()).into()),
        Some(_) => Ok(()),
    }
}
