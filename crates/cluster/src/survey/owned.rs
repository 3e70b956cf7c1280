//! Objects installed for an owner: one list per kind, metadata only.

use kube::Client;

use super::MANAGED;
use super::list::{Bare, Listed, list};
use crate::kinds::{InstalledKind, installed_kinds};
use crate::write::WriteError;

/// One installed object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedObject {
    /// `Deployment`.
    pub kind: &'static str,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Returns every object with this owner uid, and the kinds that could not be read with the reason.
pub async fn owned_objects(client: &Client, uid: &str) -> (Vec<OwnedObject>, Vec<(&'static str, String)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for kind in installed_kinds() {
        match of_kind(client, kind, uid).await {
            Ok(objects) => found.extend(objects),
            // Not every cluster serves every kind.
            Err(error) if error.is_not_found() => {}
            Err(error) => unread.push((kind.kind, error.message)),
        }
    }
    found.sort();
    (found, unread)
}

async fn of_kind(client: &Client, kind: InstalledKind, uid: &str) -> Result<Vec<OwnedObject>, WriteError> {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let path = format!("/{root}/{}/{}", kind.api_version(), kind.plural);
    let items = list::<Bare>(client, &path, MANAGED, Listed::Metadata).await?;
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
