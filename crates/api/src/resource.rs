//! Custom resources with metadata, spec and status. `apiVersion` and `kind` are determined by the type.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Conditions, ObjectMeta, OwnerReference, Reason, names};

/// One of the five kinds of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A mesh: one control plane, or several during an upgrade.
    Istio,
    /// One control plane.
    IstioRevision,
    /// An alias for a revision.
    IstioRevisionTag,
    /// Istio CNI.
    #[serde(rename = "IstioCNI")]
    IstioCni,
    /// ztunnel, the node proxy of ambient mode.
    ZTunnel,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Istio,
        Self::IstioRevision,
        Self::IstioRevisionTag,
        Self::IstioCni,
        Self::ZTunnel,
    ];

    /// Returns the value of `kind`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Istio => "Istio",
            Self::IstioRevision => "IstioRevision",
            Self::IstioRevisionTag => "IstioRevisionTag",
            Self::IstioCni => "IstioCNI",
            Self::ZTunnel => "ZTunnel",
        }
    }

    /// Returns the plural of the kind, as in URLs.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Istio => "istios",
            Self::IstioRevision => "istiorevisions",
            Self::IstioRevisionTag => "istiorevisiontags",
            Self::IstioCni => "istiocnis",
            Self::ZTunnel => "ztunnels",
        }
    }

    /// Returns the API server's error message for an object that does not exist.
    #[must_use]
    pub fn not_found(self, name: &str) -> String {
        format!("{}.{} {name:?} not found", self.plural(), names::GROUP)
    }
}

/// Spec of a kind, with the kind and the type of its status.
pub trait Kind: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// Kind of the objects with this spec.
    const KIND: ObjectKind;
    /// Type of the status.
    type Status: Status;
}

/// Fields that all types of status have.
pub trait Status: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// Returns the observed generation.
    fn observed_generation(&self) -> i64;
    /// Sets the observed generation.
    fn observe_generation(&mut self, generation: i64);
    /// Returns the conditions.
    fn conditions(&self) -> &Conditions;
    /// Returns a mutable reference to the conditions.
    fn conditions_mut(&mut self) -> &mut Conditions;
    /// Returns the state.
    fn state(&self) -> &Reason;
}

/// A custom resource.
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
    /// Returns the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns an owner reference to this object as the controlling owner.
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: names::API_VERSION.into(),
            kind: S::KIND.name().into(),
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
        object.serialize_field("apiVersion", names::API_VERSION)?;
        object.serialize_field("kind", S::KIND.name())?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        object.serialize_field("status", &self.status)?;
        object.end()
    }
}

/// Implements [`Status`] for a struct with the three common fields.
macro_rules! status {
    ($name:ident) => {
        impl crate::Status for $name {
            fn observed_generation(&self) -> i64 {
                self.observed_generation
            }
            fn observe_generation(&mut self, generation: i64) {
                self.observed_generation = generation;
            }
            fn conditions(&self) -> &crate::Conditions {
                &self.conditions
            }
            fn conditions_mut(&mut self) -> &mut crate::Conditions {
                &mut self.conditions
            }
            fn state(&self) -> &crate::Reason {
                &self.state
            }
        }
    };
}

pub(crate) use status;
