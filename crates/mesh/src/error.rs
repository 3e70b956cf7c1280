//! Errors of reconciliation and validation, with upstream's messages and the resulting requeue.

use mainstay_api::{ObjectKind, Reason};
use mainstay_catalog::Version;

use crate::plan::Requeue;

/// Class of an error. Determines when the subject is requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The API server does not serve all kinds yet.
    WarmingUp,
    /// Another client changed the object first.
    Conflict,
    /// An object does not exist, or does not exist yet.
    NotFound,
    /// A temporary error that is expected to resolve without a change of the object.
    Transient,
    /// The object is invalid. Only a change of the object resolves the error, and the change is an event.
    Validation,
    /// Another object already has the name.
    NameAlreadyExists,
    /// The API server did not process the request: it is overloaded, failing or unreachable.
    Unavailable,
    /// Any other error.
    Other,
}

impl ErrorClass {
    /// Returns the class of an error response of the API server.
    #[must_use]
    pub fn from_status(code: u16, message: &str) -> Self {
        match code {
            403 if message.contains("RESTMapping") => Self::WarmingUp,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// Returns when to requeue the subject.
    #[must_use]
    pub fn requeue(self) -> Requeue {
        match self {
            Self::WarmingUp | Self::Conflict | Self::NotFound | Self::Transient => Requeue::Immediately,
            Self::Validation => Requeue::OnEvent,
            Self::NameAlreadyExists | Self::Unavailable | Self::Other => Requeue::Backoff,
        }
    }
}

/// Validation errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A field is not set.
    #[error("{0} not set")]
    NotSet(&'static str),
    /// The target namespace does not exist.
    #[error("namespace {0:?} doesn't exist")]
    NoNamespace(String),
    /// The target namespace is being deleted.
    #[error("namespace {0:?} is being deleted")]
    NamespaceDeleted(String),
    /// The version is at end of life.
    #[error("version {0:?} is end-of-life and cannot be installed; use a supported version")]
    EndOfLife(String),
    /// `values.revision` of the default revision is set.
    #[error("values.revision must be \"\" when revision name is default")]
    DefaultRevision,
    /// `values.revision` differs from the name of the revision.
    #[error("values.revision does not match revision name")]
    WrongRevision,
    /// `values.global.istioNamespace` differs from the namespace of the revision.
    #[error("values.global.istioNamespace does not match namespace")]
    WrongNamespace,
    /// A reference to a kind that is not a control plane.
    #[error("unknown targetRef.kind")]
    UnknownTarget,
    /// A tag for a remote control plane.
    #[error("IstioRevisionTag cannot reference a remote IstioRevision")]
    RemoteTarget,
    /// The name of a profile is empty.
    #[error("profile name cannot be empty")]
    EmptyProfile,
    /// The name of a profile contains a path.
    #[error("invalid profile name {0}")]
    BadProfile(String),
}

/// Errors while computing chart values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// A profile cannot be loaded.
    #[error(
        "failed to apply profile: failed to get values from profile [{}]: {problem}",
        quote_names(profiles)
    )]
    Profile {
        /// The requested profiles.
        profiles: Vec<String>,
        /// The cause.
        problem: ProfileProblem,
    },
    /// A value on a path is not a map.
    #[error(
        "failed to apply profile: failed to set global.platform: failed to get value global.platform: .global.platform accessor error: {found} is of the type {kind}, expected map[string]interface{{}}"
    )]
    NotAMap {
        /// The value.
        found: String,
        /// Its type in Go.
        kind: &'static str,
    },
    /// Vendor defaults are not a map.
    #[error(
        "failed to apply vendor defaults: failed to apply vendor defaults for {resource}: vendor defaults for resource '{kind}' (version '{version}') are not a map[string]any"
    )]
    VendorDefaults {
        /// `istio` or `istiocni`.
        resource: &'static str,
        /// `Istio` or `IstioCNI`.
        kind: &'static str,
        /// The version.
        version: String,
    },
}

/// Errors while loading a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileProblem {
    /// The name of the profile is invalid.
    #[error("validation error: {0}")]
    Name(Invalid),
    /// The profile does not exist.
    #[error("failed to read profile file {0}: open {0}: file does not exist")]
    Missing(String),
}

fn quote_names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(" ")
}

/// Errors that prevent an object from being reconciled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    /// The object is invalid.
    #[error("validation error: {0}")]
    Invalid(#[from] Invalid),
    /// An older tag has the same name.
    #[error("an IstioRevisionTag exists with this name")]
    TagExists,
    /// An older revision has the same name.
    #[error("an IstioRevision exists with this name")]
    RevisionExists,
    /// The target does not exist.
    #[error("referenced {} resource does not exist", .0.name())]
    RefNotFound(ObjectKind),
    /// An object between the reference and its target does not exist.
    #[error("{}", .0.not_found(.1))]
    Missing(ObjectKind, String),
    /// The target has no active revision yet.
    #[error("transient error: referenced Istio has no active revision")]
    NoActiveRevision,
    /// The version is unknown.
    #[error("failed to resolve {what}: version {version:?} not found")]
    UnknownVersion {
        /// Description of the version and its object, with upstream's wording.
        what: String,
        /// The requested version.
        version: String,
    },
    /// The charts of the version are not available.
    #[error(
        "the charts of Istio {0} are not available; run `mainstay charts pull {0}` and add the version with the printed digest \
         to `charts.pull` of the operator's Helm chart"
    )]
    ChartsUnavailable(Version),
    /// The charts of a revision's version are not available.
    #[error("failed to install/update Helm chart {chart:?}: the charts of Istio {version} are not available")]
    NoCharts {
        /// The chart.
        chart: &'static str,
        /// The version.
        version: String,
    },
    /// The values cannot be computed.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The active revision has another owner.
    #[error("IstioRevision {name:?} is controlled by {owner}")]
    ForeignRevision {
        /// The revision.
        name: String,
        /// Its controlling owner.
        owner: String,
    },
    /// The active revision is in another namespace, which is immutable.
    #[error("IstioRevision {name:?} is in namespace {namespace:?}, which cannot be changed")]
    OtherNamespace {
        /// The revision.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// A source cannot be read.
    #[error("{context}{error}")]
    Unreadable {
        /// Upstream's prefix of the error.
        context: &'static str,
        /// The error message.
        error: String,
    },
    /// An action failed.
    #[error("{prefix}{message}")]
    Failed {
        /// Upstream's prefix of the error.
        prefix: String,
        /// The error message.
        message: String,
        /// The class of the failure.
        class: ErrorClass,
    },
}

impl ReconcileError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_)
            | Self::Values(ValuesError::Profile {
                problem: ProfileProblem::Name(_),
                ..
            }) => ErrorClass::Validation,
            Self::TagExists | Self::RevisionExists => ErrorClass::NameAlreadyExists,
            Self::RefNotFound(_) | Self::Missing(..) => ErrorClass::NotFound,
            Self::NoActiveRevision | Self::ForeignRevision { .. } => ErrorClass::Transient,
            Self::Failed { class, .. } => *class,
            Self::UnknownVersion { .. }
            | Self::ChartsUnavailable(_)
            | Self::NoCharts { .. }
            | Self::Values(_)
            | Self::OtherNamespace { .. }
            | Self::Unreadable { .. } => ErrorClass::Other,
        }
    }

    /// Returns the reason of the `Reconciled` condition.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::TagExists | Self::RevisionExists => Reason::NameAlreadyExists,
            Self::RefNotFound(_) => Reason::RefNotFound,
            _ => Reason::ReconcileError,
        }
    }

    /// Returns the message of the `Reconciled` condition, on every kind except Istio.
    #[must_use]
    pub fn message(&self) -> String {
        match self.reason() {
            Reason::ReconcileError => format!("error reconciling resource: {self}"),
            _ => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_have_a_class_and_a_requeue() {
        let check = |code, message, expected: Requeue| {
            assert_eq!(ErrorClass::from_status(code, message).requeue(), expected);
        };
        check(403, "no RESTMapping for kind", Requeue::Immediately);
        check(403, "forbidden", Requeue::Backoff);
        check(404, "", Requeue::Immediately);
        check(409, "", Requeue::Immediately);
        check(429, "", Requeue::Backoff);
        check(500, "", Requeue::Backoff);
        check(422, "", Requeue::Backoff);
    }

    #[test]
    fn error_messages_equal_those_of_upstream() {
        let check = |error: ReconcileError, text: &str, requeue: Requeue| {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.class().requeue(), requeue, "{text}");
        };
        check(
            Invalid::NotSet("spec.version").into(),
            "validation error: spec.version not set",
            Requeue::OnEvent,
        );
        check(
            ReconcileError::TagExists,
            "an IstioRevisionTag exists with this name",
            Requeue::Backoff,
        );
        check(
            ReconcileError::Missing(ObjectKind::IstioRevision, "x".into()),
            "istiorevisions.sailoperator.io \"x\" not found",
            Requeue::Immediately,
        );
        check(
            ReconcileError::RefNotFound(ObjectKind::Istio),
            "referenced Istio resource does not exist",
            Requeue::Immediately,
        );
        check(
            ReconcileError::NoActiveRevision,
            "transient error: referenced Istio has no active revision",
            Requeue::Immediately,
        );
        let profiles = vec!["default".to_owned(), "external".to_owned()];
        let missing = ProfileProblem::Missing("v1.29.1/profiles/external.yaml".into());
        check(
            ValuesError::Profile {
                profiles: profiles.clone(),
                problem: missing,
            }
            .into(),
            "failed to apply profile: failed to get values from profile [\"default\" \"external\"]: failed to read profile file \
             v1.29.1/profiles/external.yaml: open v1.29.1/profiles/external.yaml: file does not exist",
            Requeue::Backoff,
        );
        let name = ProfileProblem::Name(Invalid::BadProfile("../x".into()));
        check(
            ValuesError::Profile {
                profiles,
                problem: name,
            }
            .into(),
            "failed to apply profile: failed to get values from profile [\"default\" \"external\"]: validation error: invalid \
             profile name ../x",
            Requeue::OnEvent,
        );
    }
}
