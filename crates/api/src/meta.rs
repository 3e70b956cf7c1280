//! Object metadata and owner references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Time, names};

/// Fields of `ObjectMeta` that plans require. Incomplete, so it must not be written back as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name of the object.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// UID, which the API server assigns.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Resource version, which changes with every write.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Generation, which the API server increments when the spec changes.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// Creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Time of the deletion request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners of the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers. The object is deleted when the list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl ObjectMeta {
    /// Whether the object is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether the object has our finalizer.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == names::FINALIZER)
    }

    /// Returns the controlling owner, or `None` if there is none.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether an owner with this UID exists. False for an empty UID.
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.owner_references.iter().any(|owner| owner.uid == uid)
    }
}

/// A reference to an owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether the owner is the controlling owner.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
    /// Whether foreground deletion of the owner waits until the object is deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub block_owner_deletion: bool,
}

/// Whether `a` takes precedence over `b` if both require the same name: the older object does, or the one
/// with the smaller UID if both were created at the same time.
#[must_use]
pub fn takes_precedence(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    (a.creation_timestamp, &a.uid) < (b.creation_timestamp, &b.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(second: i64, uid: &str) -> ObjectMeta {
        ObjectMeta {
            creation_timestamp: jiff::Timestamp::from_second(second)
                .ok()
                .map(Time::from_timestamp),
            uid: uid.into(),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn the_earlier_object_takes_precedence_then_the_smaller_uid() {
        assert!(
            takes_precedence(&created(1, "b"), &created(2, "a")),
            "object1 created earlier"
        );
        assert!(
            !takes_precedence(&created(2, "a"), &created(1, "b")),
            "object2 created earlier"
        );
        assert!(
            takes_precedence(&created(1, "a"), &created(1, "b")),
            "equal timestamp, object1 lower UID"
        );
        assert!(
            !takes_precedence(&created(1, "b"), &created(1, "a")),
            "equal timestamp, object2 lower UID"
        );
        assert!(
            !takes_precedence(&created(1, "a"), &created(1, "a")),
            "an object does not precede itself"
        );
    }

    #[test]
    fn ownership_is_decided_by_uid() {
        let owned = |uids: &[&str]| ObjectMeta {
            owner_references: uids
                .iter()
                .map(|uid| OwnerReference {
                    uid: (*uid).into(),
                    ..OwnerReference::default()
                })
                .collect(),
            ..ObjectMeta::default()
        };
        assert!(!owned(&[]).is_owned_by("a"), "no-owner");
        assert!(!owned(&["b"]).is_owned_by("a"), "wrong-owner");
        assert!(owned(&["a"]).is_owned_by("a"), "single-owner");
        assert!(owned(&["b", "a"]).is_owned_by("a"), "multiple-owners");
        assert!(!owned(&[""]).is_owned_by(""), "no-uid");
    }
}
