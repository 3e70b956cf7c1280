//! One custom object: takes JSON, gives metadata, spec and status; writes `apiVersion` and `kind` from its type.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Conditions, ObjectMeta, OwnerReference, Reason, names};

/// Which of the five kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A mesh: one control plane, or several while it is upgraded.
    Istio,
    /// One control plane.
    IstioRevision,
    /// An alias for a revision.
    IstioRevisionTag,
    /// The network plug-in.
    #[serde(rename = "IstioCNI")]
    IstioCni,
    /// The node proxy of ambient mode.
    ZTunnel,
}

impl ObjectKind {
    /// All five.
    pub const ALL: [Self; 5] = [
        Self::Istio,
        Self::IstioRevision,
        Self::IstioRevisionTag,
        Self::IstioCni,
        Self::ZTunnel,
    ];

    /// As `kind` spells it.
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

    /// As the URL spells it.
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

    /// What the API server says of an object that is not there.
    #[must_use]
    pub fn not_found(self, name: &str) -> String {
        format!("{}.{} {name:?} not found", self.plural(), names::GROUP)
    }
}

/// The spec of a kind, which names the kind and its status.
pub trait Kind: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// Which kind.
    const KIND: ObjectKind;
    /// Its status.
    type Status: Status;
}

/// What every status has.
pub trait Status: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// The generation this status is about.
    fn observed_generation(&self) -> i64;
    /// Says which generation this status is about.
    fn observe_generation(&mut self, generation: i64);
    /// Its conditions.
    fn conditions(&self) -> &Conditions;
    /// Its conditions, to be changed.
    fn conditions_mut(&mut self) -> &mut Conditions;
    /// Its state.
    fn state(&self) -> &Reason;
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, bound(deserialize = "S: Kind"))]
pub struct Resource<S: Kind> {
    /// Who it is.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: S,
    /// What was found.
    pub status: S::Status,
}

impl<S: Kind> Resource<S> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The reference that makes another object its own, always as the one that controls.
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

/// Writes [`Status`] for a struct with the three usual fields.
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
