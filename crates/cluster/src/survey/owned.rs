//! Lists the objects that the operator installed for an owner.

use kube::Client;

use super::MANAGED;
use super::list::{MetadataOnly, ObjectContent, list};
use crate::kinds::{InstalledKind, installed_kinds};
use crate::write::WriteError;

/// An object that the operator installed for an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedObject {
    /// Kind, such as `Deployment`.
    pub kind: &'static str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// Returns every object whose owner has this UID, and the kinds that could not be listed with the error
/// message.
pub async fn owned_objects(client: &Client, uid: &str) -> (Vec<OwnedObject>, Vec<(&'static str, String)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for kind in installed_kinds() {
        match list_owned(client, kind, uid).await {
            Ok(objects) => found.extend(objects),
            // A cluster does not necessarily serve every kind.
            Err(error) if error.is_not_found() => {}
            Err(error) => unread.push((kind.kind, error.message)),
        }
    }
    found.sort();
    (found, unread)
}

async fn list_owned(client: &Client, kind: InstalledKind, uid: &str) -> Result<Vec<OwnedObject>, WriteError> {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let path = format!("/{root}/{}/{}", kind.api_version(), kind.plural);
    let items = list::<MetadataOnly>(client, &path, MANAGED, ObjectContent::Metadata).await?;
    let ours = items.into_iter().filter(|item| {
        item.metadata
            .owner_references
            .iter()
            .any(|owner| owner.uid == uid)
    });
    Ok(ours
        .map(|item| OwnedObject {
            kind: kind.kind,
            namespace: item.metadata.namespace,
            name: item.metadata.name,
        })
        .collect())
}
