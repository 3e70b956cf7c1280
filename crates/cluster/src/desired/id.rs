//! Identity of an object.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::DesiredError;

/// Identity of an object. The version only selects the API path: IDs that differ only in it are equal.
#[derive(Clone, Debug)]
pub struct ObjectId {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ObjectId {
    /// Returns the identity of an object. A missing namespace is empty.
    pub fn from_object(object: &Value) -> Result<Self, DesiredError> {
        let text = |at: &'static str, what: &'static str| {
            let found = object.pointer(at).and_then(Value::as_str);
            found
                .filter(|text| !text.is_empty())
                .ok_or(DesiredError::Incomplete(what))
        };
        let (group, version) = split_api_version(text("/apiVersion", "apiVersion")?);
        Ok(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind", "kind")?.to_owned(),
            namespace: text("/metadata/namespace", "namespace")
                .unwrap_or_default()
                .to_owned(),
            name: text("/metadata/name", "metadata.name")?.to_owned(),
        })
    }

    /// Returns group and version in the form of `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns kind and group in the form of an inventory: `Deployment.apps`.
    #[must_use]
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Removes the namespace of a cluster-scoped object. For a namespaced object without a namespace, sets
    /// that of the release.
    pub(super) fn set_namespace(&mut self, is_namespaced: bool, release_namespace: &str) {
        if !is_namespaced {
            self.namespace.clear();
        } else if self.namespace.is_empty() {
            release_namespace.clone_into(&mut self.namespace);
        }
    }

    fn key(&self) -> (&str, &str, &str, &str) {
        (&self.group, &self.kind, &self.namespace, &self.name)
    }
}

/// Splits an `apiVersion` into group and version.
pub(super) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ObjectId {}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for ObjectId {
    /// Formats the identity as Helm does: `Service "istiod" in namespace "istio-system"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:?} in namespace {:?}",
            self.kind, self.name, self.namespace
        )
    }
}
