//! Facts about observed objects, reduced to what plans need.

use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::{ObjectKind, ObjectMeta};

use crate::error::ErrorClass;
use crate::plan::{Action, Release};

/// An existing namespace.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// UID of the namespace.
    pub uid: String,
    /// Resource version of the namespace.
    pub resource_version: String,
    /// Whether the namespace is being deleted.
    pub terminating: bool,
    /// Whether an annotation excludes the workloads of the namespace from migration.
    pub skip_migration: bool,
    /// Whether an annotation that controls migration has an invalid value.
    pub invalid_annotation: bool,
    /// Whether the namespace has the label `istio-injection: enabled`.
    pub injection_label: bool,
    /// Whether the namespace has the label `istio-injection` with another value. In this case, no webhook
    /// matches the pods of the namespace.
    pub injection_disabled: bool,
}

/// Replicas of an istiod Deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deployment {
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.readyReplicas`.
    pub ready: i32,
}

/// Pods of a `DaemonSet`.
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
    /// Metadata, with the annotations about probes.
    pub metadata: ObjectMeta,
    /// Client configuration of the first webhook, if there is one.
    pub client: Option<WebhookClient>,
}

/// `clientConfig` of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookClient {
    /// Service that the webhook refers to.
    pub service: Option<ServiceReference>,
    /// CA bundle; empty if unset.
    pub ca_bundle: Arc<[u8]>,
}

/// A Service with a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceReference {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Port of the Service. 443 if unset.
    pub port: Option<u16>,
}

/// Result of a probe of a remote control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// Time of the probe.
    pub at: Timestamp,
    /// Whether the control plane is ready.
    pub ready: bool,
    /// Cause of the failure; empty if there was a response.
    pub reason: String,
}

/// Observed state of a release that was compared with the cluster at least once.
#[derive(Clone, Debug, PartialEq)]
pub enum ReleaseFact {
    /// The live objects are equal to this release.
    Applied(Arc<Release>),
    /// Another client changed the live objects after they were applied.
    Drifted,
    /// Objects of the release exist, but were not compared.
    Present,
    /// No objects of the release exist.
    Absent,
}

/// The last failure of a subject. Removed when a later attempt succeeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The failed action. Plans without this action are not affected.
    pub action: Action,
    /// Class of the error.
    pub class: ErrorClass,
    /// The error message.
    pub message: String,
    /// Earliest time of the next attempt.
    pub retry_at: Timestamp,
}

/// A source of observations.
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
    /// The `DaemonSets` of `IstioCNI` and `ZTunnel`.
    DaemonSets,
    /// Mutating webhook configurations.
    Webhooks,
    /// Workloads. They are read only while an Istio migrates them, so no other plan waits for them.
    Workloads,
}

impl Source {
    /// All sources that plans wait for.
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

    /// Returns the plural as in upstream's error messages.
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

/// State of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// Not listed yet. No plan is made.
    #[default]
    Pending,
    /// Cannot be read, with the error. Conditions that depend on the source are unknown.
    Failing(String),
    /// Listed and watched.
    Ready,
}
