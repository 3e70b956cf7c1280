//! Errors of installations.

use std::time::Duration;

use mainstay_manifest::ComponentName;

use crate::apply::ApplyError;
use crate::desired::{DesiredError, ObjectId};
use crate::write::WriteError;

/// Errors of installing, verifying and uninstalling.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The cluster cannot be read.
    #[error("cannot read {what}: {error}")]
    Read {
        /// Object or path that was read.
        what: String,
        /// The server's error.
        error: WriteError,
    },
    /// An object cannot be written.
    #[error("cannot write {what}: {error}")]
    Write {
        /// Object or path that was written.
        what: String,
        /// The server's error.
        error: WriteError,
    },
    /// A rendered object cannot be converted.
    #[error("a rendered object is invalid")]
    Object(#[source] Box<mainstay_yaml::Error>),
    /// A component cannot be applied.
    #[error("{}: {}", .0.title(), .1)]
    Apply(ComponentName, #[source] Box<ApplyError>),
    /// The cluster does not serve the kind of an object of a component.
    #[error(
        "{}: {}: the cluster does not serve {} in {}; install its definition, or disable the component or add-on that contains it",
        .component.title(), label(.id), .id.kind, .id.api_version()
    )]
    NotServed {
        /// Component that contains the object.
        component: ComponentName,
        /// Identity of the object.
        id: Box<ObjectId>,
    },
    /// A set cannot be written or pruned.
    #[error("set {set}: {error}")]
    Set {
        /// Key of the set, or kind and name of the object.
        set: String,
        /// Error of the apply engine.
        #[source]
        error: Box<ApplyError>,
    },
    /// A component was not ready in time.
    #[error("{}: not ready after {} s{}", .component.title(), .after.as_secs(), format_unready(.unready))]
    NotReady {
        /// Component that is not ready.
        component: ComponentName,
        /// Readiness timeout of a component.
        after: Duration,
        /// Objects that are not ready, with their reasons.
        unready: Vec<(ObjectId, String)>,
    },
    /// Some components were not installed. Their events contain the reasons.
    #[error("{failed} of {all} components failed")]
    Failed {
        /// Number of components that failed or were skipped.
        failed: usize,
        /// Number of components.
        all: usize,
    },
    /// Objects were not removed in time.
    #[error("objects are still being deleted: {count} left, such as {example} ({reason})")]
    NotDeleted {
        /// Number of remaining objects.
        count: usize,
        /// One of the remaining objects.
        example: String,
        /// Reason why the object still exists.
        reason: String,
    },
    /// No installation has this revision.
    #[error("no installation has the revision {0:?}")]
    UnknownRevision(String),
}

fn format_unready(unready: &[(ObjectId, String)]) -> String {
    let one = |(id, reason): &(ObjectId, String)| format!("\n  {}: {reason}", label(id));
    unready.iter().map(one).collect()
}

/// Formats an identity as `Deployment istio-system/istiod`.
pub(super) fn label(id: &ObjectId) -> String {
    if id.namespace.is_empty() {
        format!("{} {}", id.kind, id.name)
    } else {
        format!("{} {}/{}", id.kind, id.namespace, id.name)
    }
}

impl InstallError {
    /// Creates the error of applying a component.
    pub(super) fn apply(component: ComponentName, error: ApplyError) -> Self {
        match error {
            ApplyError::Desired(DesiredError::UnknownKind(id)) => Self::NotServed { component, id },
            error => Self::Apply(component, Box::new(error)),
        }
    }

    /// Creates a read error.
    pub(super) fn read(what: impl Into<String>, error: WriteError) -> Self {
        Self::Read {
            what: what.into(),
            error,
        }
    }
}
