//! Where a reference leads: takes a `targetRef`, gives a revision. Also: which version a name stands for, whether a namespace
//! can be installed into.

use mainstay_api::{IstioRevision, ObjectKind, TargetKind, TargetReference};
use mainstay_catalog::Version;

use crate::snapshot::Source;
use crate::{Invalid, Resolution, Snapshot, Trouble};

/// The revision a reference leads to: that one, or the active one of an Istio.
pub(super) fn resolve<'a>(
    snapshot: &'a Snapshot,
    target: &TargetReference,
) -> Result<&'a IstioRevision, Trouble> {
    let name = match target.target() {
        TargetKind::Revision => target.name.as_str(),
        TargetKind::Istio => active_of(snapshot, &target.name)?,
        TargetKind::Unknown => return Err(Invalid::UnknownTarget.into()),
    };
    read(snapshot, ObjectKind::IstioRevision, "")?;
    let missing = || Trouble::Missing(ObjectKind::IstioRevision, name.to_owned());
    snapshot.revisions().get(name).ok_or_else(missing)
}

fn active_of<'a>(snapshot: &'a Snapshot, istio: &str) -> Result<&'a str, Trouble> {
    read(snapshot, ObjectKind::Istio, "")?;
    let missing = || Trouble::Missing(ObjectKind::Istio, istio.to_owned());
    let active = &snapshot
        .istios()
        .get(istio)
        .ok_or_else(missing)?
        .status
        .active_revision_name;
    if active.is_empty() {
        Err(Trouble::NoActiveRevision)
    } else {
        Ok(active)
    }
}

/// Whether a kind can be read.
pub(super) fn read(snapshot: &Snapshot, kind: ObjectKind, context: &'static str) -> Result<(), Trouble> {
    readable(snapshot, Source::Objects(kind), context)
}

fn readable(snapshot: &Snapshot, source: Source, context: &'static str) -> Result<(), Trouble> {
    snapshot.readable(source).map_err(|error| Trouble::Unreadable {
        context,
        error: error.to_owned(),
    })
}

/// The version a name stands for. `what` says whose, as upstream does.
pub(super) fn version(
    snapshot: &Snapshot,
    name: &str,
    what: impl FnOnce() -> String,
) -> Result<Version, Trouble> {
    match snapshot.library.resolve(name) {
        Some(Resolution::Installable(version)) => Ok(version.clone()),
        Some(Resolution::NotHere(version)) => Err(Trouble::NotHere(version.clone())),
        Some(Resolution::EndOfLife) => Err(Invalid::EndOfLife(name.to_owned()).into()),
        None => Err(Trouble::UnknownVersion {
            what: what(),
            version: name.to_owned(),
        }),
    }
}

/// What every chart needs: a version, a namespace, and that the namespace is there to stay.
pub(super) fn check_place(snapshot: &Snapshot, version: &str, namespace: &str) -> Result<(), Trouble> {
    check_set("version", version)?;
    check_set("namespace", namespace)?;
    check_namespace(snapshot, namespace)
}

/// A field must not be empty.
pub(super) fn check_set(field: &'static str, value: &str) -> Result<(), Trouble> {
    if value.is_empty() {
        Err(Invalid::NotSet(field).into())
    } else {
        Ok(())
    }
}

/// A namespace must be there, and there to stay.
pub(super) fn check_namespace(snapshot: &Snapshot, name: &str) -> Result<(), Trouble> {
    readable(snapshot, Source::Namespaces, "get failed: ")?;
    match snapshot.namespace(name) {
        None => Err(Invalid::NoNamespace(name.to_owned()).into()),
        Some(namespace) if namespace.terminating => Err(Invalid::NamespaceDeleted(name.to_owned()).into()),
        Some(_) => Ok(()),
    }
}
