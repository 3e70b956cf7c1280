//! WritePreconditions and OwnedObjectsOnly: takes every step that changes something that exists, checks which version it names and whose it is.

use mainstay_api::{ObjectKind, ObjectMeta};
use mainstay_mesh::plan::Precondition;
use mainstay_mesh::{Action, Plan, Snapshot, Subject};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    let owner = metadata(snapshot, &plan.subject)
        .map(|metadata| metadata.uid.clone())
        .unwrap_or_default();
    for action in plan.actions() {
        if let Some(seen) = action.precondition() {
            version(snapshot, seen, found);
        }
        match action {
            Action::Uninstall(key) => {
                found.expect(
                    Invariant::WritePreconditions,
                    !owner.is_empty() && key.owner == owner,
                    || format!("release {} is removed without saying that it is ours", key.name),
                );
            }
            Action::UpdateRevision(change) => mark(snapshot, &change.object, &owner, true, found),
            Action::DeleteRevision(seen) | Action::DeleteTag(seen) => {
                mark(snapshot, seen, &owner, false, found);
            }
            Action::UpdateTag(change) => mark(snapshot, &change.object, &owner, false, found),
            _ => {}
        }
    }
}

/// The version a write names is the one in the snapshot.
fn version(snapshot: &Snapshot, seen: &Precondition, found: &mut Findings<'_>) {
    let named = !seen.uid.is_empty() && !seen.resource_version.is_empty();
    let same = there(snapshot, &seen.subject) == Some((&seen.uid, &seen.resource_version));
    found.expect(Invariant::WritePreconditions, named && same, || {
        format!(
            "{} is written as {:?} at {:?}",
            seen.subject, seen.uid, seen.resource_version
        )
    });
}

/// The object is the subject's own, or nobody's where it may be taken over.
fn mark(snapshot: &Snapshot, seen: &Precondition, owner: &str, takes_over: bool, found: &mut Findings<'_>) {
    let ours = metadata(snapshot, &seen.subject).is_some_and(|object| {
        let nobodys = takes_over && object.controller().is_none();
        let controlled = object
            .controller()
            .is_none_or(|controller| controller.uid == owner);
        nobodys || (controlled && object.is_owned_by(owner))
    });
    found.expect(Invariant::OwnedObjectsOnly, ours, || {
        format!("{} is not ours", seen.subject)
    });
}

/// Identity and version of what is there.
fn there<'a>(snapshot: &'a Snapshot, subject: &Subject) -> Option<(&'a String, &'a String)> {
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
