//! Subjects of plans: our objects, webhook configurations of remote control planes, and the namespaces and
//! workloads that a migration changes.

use std::fmt;

use mainstay_api::ObjectKind;

use crate::workload::WorkloadKey;

/// Object that a plan is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One of our objects. All five kinds are cluster-scoped.
    Object(ObjectKind, String),
    /// The `MutatingWebhookConfiguration` of this name.
    Webhook(String),
    /// A namespace whose labels a migration changes.
    Namespace(String),
    /// A workload that a migration restarts.
    Workload(WorkloadKey),
}

impl Subject {
    /// Returns the subject for an Istio.
    pub fn istio(name: impl Into<String>) -> Self {
        Self::Object(ObjectKind::Istio, name.into())
    }

    /// Returns the subject for a revision.
    pub fn revision(name: impl Into<String>) -> Self {
        Self::Object(ObjectKind::IstioRevision, name.into())
    }

    /// Returns the subject for a tag.
    pub fn tag(name: impl Into<String>) -> Self {
        Self::Object(ObjectKind::IstioRevisionTag, name.into())
    }

    /// Returns the subject for an `IstioCNI`.
    pub fn cni(name: impl Into<String>) -> Self {
        Self::Object(ObjectKind::IstioCni, name.into())
    }

    /// Returns the subject for a `ZTunnel`.
    pub fn ztunnel(name: impl Into<String>) -> Self {
        Self::Object(ObjectKind::ZTunnel, name.into())
    }

    /// Returns the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Object(_, name) | Self::Webhook(name) | Self::Namespace(name) => name,
            Self::Workload(key) => key.name(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(kind, name) => write!(f, "{}/{name}", kind.name()),
            Self::Webhook(name) => write!(f, "MutatingWebhookConfiguration/{name}"),
            Self::Namespace(name) => write!(f, "Namespace/{name}"),
            Self::Workload(key) => write!(f, "{key}"),
        }
    }
}
