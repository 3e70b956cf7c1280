//! Errors that prevent a rehearsal.

use mainstay_harness::HarnessError;
use mainstay_sim::snapshot::SnapshotError;

/// Error that prevents a rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The snapshot cannot be read.
    #[error("cannot read the snapshot")]
    Snapshot(#[source] Box<SnapshotError>),
    /// An object of the input cannot exist in a cluster.
    #[error("invalid object {number} in the input: {defect}")]
    Object {
        /// Position of the object in the input, starting at 1.
        number: usize,
        /// Defect of the object.
        defect: InvalidObject,
    },
    /// A kind cannot be listed.
    #[error("cannot list {plural}: {message}")]
    Cluster {
        /// Plural name of the kind.
        plural: &'static str,
        /// Message of the API server.
        message: String,
    },
    /// The cluster does not serve the kind.
    #[error("this cluster has no definition of {plural}.sailoperator.io")]
    NoDefinitions {
        /// Plural name of the kind.
        plural: &'static str,
    },
    /// The input contains no Istio.
    #[error("no Istio in the input")]
    NoIstio,
    /// The input contains several Istios, and the request names none.
    #[error("several Istios found: {}", .0.join(", "))]
    SeveralIstios(Vec<String>),
    /// The requested Istio does not exist.
    #[error("Istio {name:?} not found: {}", known(.names))]
    UnknownIstio {
        /// Requested name.
        name: String,
        /// Names of the existing Istios.
        names: Vec<String>,
    },
    /// An Istio cannot be parsed.
    #[error("cannot parse Istio {name:?}")]
    Istio {
        /// Name of the Istio.
        name: String,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// The target version is not in the catalog.
    #[error("unknown version {0}")]
    Version(String),

    /// The embedded cluster failed.
    #[error(transparent)]
    Harness(Box<HarnessError>),
}

impl From<HarnessError> for RehearsalError {
    fn from(error: HarnessError) -> Self {
        Self::Harness(Box::new(error))
    }
}

fn known(names: &[String]) -> String {
    if names.is_empty() {
        "the input has none".to_owned()
    } else {
        format!("the input has {}", names.join(", "))
    }
}

/// Defect of an input object.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidObject {
    /// The document is not a map.
    #[error("not a map")]
    NotAMap,
    /// Kind or `apiVersion` is missing.
    #[error("kind or apiVersion is missing")]
    NoKind,
    /// The name is missing.
    #[error("{kind} without a name")]
    NoName {
        /// Kind of the object.
        kind: String,
    },
    /// The name is not valid in Kubernetes.
    #[error("invalid name of {kind}: {name:?}")]
    Name {
        /// Kind of the object.
        kind: String,
        /// Beginning of the name.
        name: String,
    },
    /// The namespace is not valid in Kubernetes.
    #[error("invalid namespace of {kind} {name:?}")]
    Namespace {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
    },
    /// The selector of a workload does not match its template.
    #[error("{kind} {name:?} does not select the pods of its template")]
    Selector {
        /// Kind of the workload.
        kind: String,
        /// Name of the workload.
        name: String,
    },
    /// The replica count of a workload is not a valid number of pods.
    #[error("invalid replicas of {kind} {name:?}")]
    Replicas {
        /// Kind of the workload.
        kind: String,
        /// Name of the workload.
        name: String,
    },
    /// The input has too many pods.
    #[error("more than {max} pods in total")]
    TooManyPods {
        /// Maximum number of pods.
        max: u64,
    },
}
