//! Namespaced resources of the delivery group.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::API_VERSION;
use crate::{ObjectMeta, OwnerReference};

/// Spec of a kind, with its name and the type of its status.
pub trait Kind: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// Value of `kind`.
    const KIND: &'static str;
    /// Plural of the kind, as in URLs.
    const PLURAL: &'static str;
    /// Type of the status.
    type Status: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned;
}

/// Status type of kinds without a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStatus {}

/// A resource of the delivery group.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, bound(deserialize = "S: Kind"))]
pub struct Resource<S: Kind> {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: S,
    /// Observed state.
    pub status: S::Status,
}

impl<S: Kind> Resource<S> {
    /// Creates a resource without a status.
    #[must_use]
    pub fn new(namespace: &str, name: &str, spec: S) -> Self {
        let metadata = ObjectMeta {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            spec,
            status: S::Status::default(),
        }
    }

    /// Returns the name of the resource.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the namespace of the resource.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns an owner reference to this object as the controlling owner.
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: API_VERSION.into(),
            kind: S::KIND.into(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: true,
            block_owner_deletion: true,
        }
    }
}

impl<S: Kind> Serialize for Resource<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut object = serializer.serialize_struct("Resource", 5)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", S::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        object.serialize_field("status", &self.status)?;
        object.end()
    }
}
