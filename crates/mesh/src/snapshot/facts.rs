//! Facts about things that are not ours, trimmed to what a decision needs. Types only.

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::{ObjectKind, ObjectMeta};

use crate::error::ErrorClass;
use crate::plan::{Action, Release};

/// A namespace that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its identity.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether it asks that its workloads be left alone.
    pub skip_migration: bool,
    /// Whether it asks for injection by the label that knows no revision.
    pub injection_label: bool,
}

/// How far an istiod Deployment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deployment {
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
}

/// How far a `DaemonSet` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DaemonSet {
    /// `status.currentNumberScheduled`.
    pub scheduled: i32,
    /// `status.numberReady`.
    pub ready: i32,
}

/// The injector's webhook configuration of a revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Webhook {
    /// Who it is; of its annotations only those about probing matter.
    pub metadata: ObjectMeta,
    /// How its first webhook is reached; nothing if it has none.
    pub client: Option<WebhookClient>,
}

/// `clientConfig` of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookClient {
    /// The Service it names.
    pub service: Option<ServiceReference>,
    /// The authority it trusts; empty when nobody has set it.
    pub ca_bundle: Arc<[u8]>,
}

/// A Service with a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port, 443 if unset.
    pub port: Option<u16>,
}

/// What a remote control plane answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// When it was asked.
    pub at: Timestamp,
    /// Whether it is ready.
    pub ready: bool,
    /// Why it could not be asked; empty for any answer.
    pub reason: String,
}

/// What is known of a release. Of one that was never looked at nothing is.
#[derive(Clone, Debug, PartialEq)]
pub enum ReleaseFact {
    /// What is there was found or made equal to this.
    Applied(Arc<Release>),
    /// It was, and then something else changed it.
    Drifted,
    /// Something is there.
    Present,
    /// Nothing is there.
    Absent,
}

/// The last attempt on a subject failed at this action. It is dropped when a later attempt gets past it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What failed. A plan that no longer holds this very action is not held back by it.
    pub action: Action,
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// In the words of whoever refused.
    pub message: String,
    /// Not to be tried again before.
    pub retry_at: Timestamp,
}

/// What is read from the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// One of our kinds.
    Objects(ObjectKind),
    /// Namespaces.
    Namespaces,
    /// Pods.
    Pods,
    /// istiod's Deployments.
    Deployments,
    /// The `DaemonSets` of plug-in and node proxy.
    DaemonSets,
    /// Mutating webhook configurations.
    Webhooks,
    /// Workloads of any kind. They are read only while an Istio moves them, so nothing else waits for them.
    Workloads,
}

impl Source {
    /// All that plans wait for.
    pub const ALL: [Self; 10] = [
        Self::Objects(ObjectKind::Istio),
        Self::Objects(ObjectKind::IstioRevision),
        Self::Objects(ObjectKind::IstioRevisionTag),
        Self::Objects(ObjectKind::IstioCni),
        Self::Objects(ObjectKind::ZTunnel),
        Self::Namespaces,
        Self::Pods,
        Self::Deployments,
        Self::DaemonSets,
        Self::Webhooks,
    ];

    /// The plural that error messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Objects(ObjectKind::Istio) => "Istios",
            Self::Objects(ObjectKind::IstioRevision) => "IstioRevisions",
            Self::Objects(ObjectKind::IstioRevisionTag) => "IstioRevisionTags",
            Self::Objects(ObjectKind::IstioCni) => "IstioCNIs",
            Self::Objects(ObjectKind::ZTunnel) => "ZTunnels",
            Self::Namespaces => "namespaces",
            Self::Pods => "pods",
            Self::Deployments => "Deployments",
            Self::DaemonSets => "DaemonSets",
            Self::Webhooks => "MutatingWebhookConfigurations",
            Self::Workloads => "workloads",
        }
    }
}

/// Whether a source can be believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// Not listed yet: no plan is made before it is.
    #[default]
    Pending,
    /// It cannot be read, for this reason: what depends on it is unknown.
    Failing(String),
    /// Listed, and watched since.
    Ready,
}
