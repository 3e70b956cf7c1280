//! Checks `WritePreconditions` and `OwnedObjectsOnly`: the version and the owner of every object that a step
//! changes.

use mainstay_api::{ObjectKind, ObjectMeta};
use mainstay_mesh::plan::Precondition;
use mainstay_mesh::{Action, Plan, Snapshot, Subject};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    let owner = metadata(snapshot, &plan.subject)
        .map(|metadata| metadata.uid.clone())
        .unwrap_or_default();
    for action in plan.actions() {
        if let Some(object) = action.precondition() {
            check_version(snapshot, object, found);
        }
        match action {
            Action::Uninstall(key) => {
                found.expect(
                    Invariant::WritePreconditions,
                    !owner.is_empty() && key.owner == owner,
                    || format!("release {} is removed without its owner", key.name),
                );
            }
            Action::UpdateRevision(change) => {
                check_owner(snapshot, &change.object, Ownership::adoptable(&owner), found);
            }
            Action::DeleteRevision(object) | Action::DeleteTag(object) => {
                check_owner(snapshot, object, Ownership::strict(&owner), found);
            }
            Action::UpdateTag(change) => {
                check_owner(snapshot, &change.object, Ownership::strict(&owner), found);
            }
            _ => {}
        }
    }
}

/// Checks that a write names the observed version of its object.
fn check_version(snapshot: &Snapshot, object: &Precondition, found: &mut Findings<'_>) {
    let named = !object.uid.is_empty() && !object.resource_version.is_empty();
    let same = observed_version(snapshot, &object.subject) == Some((&object.uid, &object.resource_version));
    found.expect(Invariant::WritePreconditions, named && same, || {
        format!(
            "{} is written with uid {:?} and resourceVersion {:?}, which were not observed",
            object.subject, object.uid, object.resource_version
        )
    });
}

/// Required owner of an object.
#[derive(Clone, Copy)]
struct Ownership<'a> {
    owner: &'a str,
    /// Whether an object without a controller may be adopted.
    adopts: bool,
}

impl<'a> Ownership<'a> {
    fn strict(owner: &'a str) -> Self {
        Self { owner, adopts: false }
    }

    fn adoptable(owner: &'a str) -> Self {
        Self { owner, adopts: true }
    }
}

fn check_owner(
    snapshot: &Snapshot,
    object: &Precondition,
    expected: Ownership<'_>,
    found: &mut Findings<'_>,
) {
    let is_owned = metadata(snapshot, &object.subject).is_some_and(|metadata| {
        let controller = metadata.controller();
        let is_adopted = expected.adopts && controller.is_none();
        let is_controlled = controller.is_none_or(|controller| controller.uid == expected.owner);
        is_adopted || (is_controlled && metadata.is_owned_by(expected.owner))
    });
    found.expect(Invariant::OwnedObjectsOnly, is_owned, || {
        format!("{} is not owned by the subject", object.subject)
    });
}

/// Returns the UID and the resource version of an observed object.
fn observed_version<'a>(snapshot: &'a Snapshot, subject: &Subject) -> Option<(&'a String, &'a String)> {
    match subject {
        Subject::Namespace(name) => {
            let namespace = snapshot.namespace(name)?;
            Some((&namespace.uid, &namespace.resource_version))
        }
        Subject::Workload(key) => {
            let workload = snapshot.workload(key)?;
            Some((&workload.uid, &workload.resource_version))
        }
        Subject::Object(..) | Subject::Webhook(_) => {
            let metadata = metadata(snapshot, subject)?;
            Some((&metadata.uid, &metadata.resource_version))
        }
    }
}

fn metadata<'a>(snapshot: &'a Snapshot, subject: &Subject) -> Option<&'a ObjectMeta> {
    match subject {
        Subject::Object(ObjectKind::Istio, name) => {
            snapshot.istios().get(name).map(|object| &object.metadata)
        }
        Subject::Object(ObjectKind::IstioRevision, name) => {
            snapshot.revisions().get(name).map(|object| &object.metadata)
        }
        Subject::Object(ObjectKind::IstioRevisionTag, name) => {
            snapshot.tags().get(name).map(|object| &object.metadata)
        }
        Subject::Object(ObjectKind::IstioCni, name) => {
            snapshot.cnis().get(name).map(|object| &object.metadata)
        }
        Subject::Object(ObjectKind::ZTunnel, name) => {
            snapshot.ztunnels().get(name).map(|object| &object.metadata)
        }
        Subject::Webhook(name) => snapshot.webhook(name).map(|webhook| &webhook.metadata),
        Subject::Namespace(_) | Subject::Workload(_) => None,
    }
}
