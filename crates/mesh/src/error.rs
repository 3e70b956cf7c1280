//! Why a plan cannot bring about what is asked: a table of the errors upstream reports, in its words, with the reaction to each.

use mainstay_api::{ObjectKind, Reason};
use mainstay_catalog::Version;

use crate::plan::Requeue;

/// What kind of error it is, which decides when to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The API server does not know all kinds yet.
    WarmingUp,
    /// Somebody else was faster.
    Conflict,
    /// Something is not there (yet).
    NotFound,
    /// It will right itself.
    Transient,
    /// Only a change by the user helps, and that is an event.
    Validation,
    /// The name belongs to another object.
    NameAlreadyExists,
    /// Nobody decided: the API server is busy, broken or out of reach.
    Unanswered,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// The class of a refusal by the API server.
    #[must_use]
    pub fn from_status(code: u16, message: &str) -> Self {
        match code {
            403 if message.contains("RESTMapping") => Self::WarmingUp,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 | 500..=599 => Self::Unanswered,
            _ => Self::Other,
        }
    }

    /// When to try again.
    #[must_use]
    pub fn requeue(self) -> Requeue {
        match self {
            Self::WarmingUp | Self::Conflict | Self::NotFound | Self::Transient => Requeue::Immediately,
            Self::Validation => Requeue::OnEvent,
            Self::NameAlreadyExists | Self::Unanswered | Self::Other => Requeue::Backoff,
        }
    }
}

/// What is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A field is not set.
    #[error("{0} not set")]
    NotSet(&'static str),
    /// The target namespace is not there.
    #[error("namespace {0:?} doesn't exist")]
    NoNamespace(String),
    /// The target namespace goes away.
    #[error("namespace {0:?} is being deleted")]
    NamespaceDeleted(String),
    /// The version is refused.
    #[error("version {0:?} is end-of-life and cannot be installed; use a supported version")]
    EndOfLife(String),
    /// The default revision names itself.
    #[error("values.revision must be \"\" when revision name is default")]
    DefaultRevision,
    /// A revision names another.
    #[error("values.revision does not match revision name")]
    WrongRevision,
    /// A revision lives elsewhere than it says.
    #[error("values.global.istioNamespace does not match namespace")]
    WrongNamespace,
    /// A reference to something else than a control plane.
    #[error("unknown targetRef.kind")]
    UnknownTarget,
    /// A tag for a control plane that is not here.
    #[error("IstioRevisionTag cannot reference a remote IstioRevision")]
    RemoteTarget,
    /// A profile without a name.
    #[error("profile name cannot be empty")]
    EmptyProfile,
    /// A profile whose name leads elsewhere.
    #[error("invalid profile name {0}")]
    BadProfile(String),
}

/// Why the values of a chart cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// A profile cannot be had.
    #[error(
        "failed to apply profile: failed to get values from profile [{}]: {problem}",
        quoted(profiles)
    )]
    Profile {
        /// The profiles asked for.
        profiles: Vec<String>,
        /// What is wrong.
        problem: ProfileProblem,
    },
    /// A path through the values meets something that is no map.
    #[error(
        "failed to apply profile: failed to set global.platform: failed to get value global.platform: .global.platform accessor error: {found} is of the type {kind}, expected map[string]interface{{}}"
    )]
    NotAMap {
        /// What is there.
        found: String,
        /// Its type in Go.
        kind: &'static str,
    },
    /// A distributor's defaults are no map.
    #[error(
        "failed to apply vendor defaults: failed to apply vendor defaults for {resource}: vendor defaults for resource '{kind}' (version '{version}') are not a map[string]any"
    )]
    VendorDefaults {
        /// `istio` or `istiocni`.
        resource: &'static str,
        /// `Istio` or `IstioCNI`.
        kind: &'static str,
        /// Of which version.
        version: String,
    },
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileProblem {
    /// Its name.
    #[error("validation error: {0}")]
    Name(Invalid),
    /// There is none of that name.
    #[error("failed to read profile file {0}: open {0}: file does not exist")]
    Missing(String),
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(" ")
}

/// Why what an object asks for cannot be brought about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    /// The object is wrong.
    #[error("validation error: {0}")]
    Invalid(#[from] Invalid),
    /// A tag of that name was first.
    #[error("an IstioRevisionTag exists with this name")]
    TagExists,
    /// A revision of that name was first.
    #[error("an IstioRevision exists with this name")]
    RevisionExists,
    /// The target is not there.
    #[error("referenced {} resource does not exist", .0.name())]
    RefNotFound(ObjectKind),
    /// Something on the way to the target is not there.
    #[error("{}", .0.not_found(.1))]
    Missing(ObjectKind, String),
    /// The target has not got so far.
    #[error("transient error: referenced Istio has no active revision")]
    NoActiveRevision,
    /// Nobody knows the version.
    #[error("failed to resolve {what}: version {version:?} not found")]
    UnknownVersion {
        /// Whose version.
        what: String,
        /// As it was asked for.
        version: String,
    },
    /// The charts of the version are not here.
    #[error("the charts of Istio {0} are not here; `mainstay charts pull {0}` adds them")]
    NotHere(Version),
    /// A revision is of a version whose charts are not here.
    #[error("failed to install/update Helm chart {chart:?}: the charts of Istio {version} are not here")]
    NoCharts {
        /// Which chart is wanted.
        chart: &'static str,
        /// Of which version.
        version: String,
    },
    /// The values cannot be computed.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The revision that should be active belongs to somebody else.
    #[error("IstioRevision {name:?} is controlled by {owner}")]
    ForeignRevision {
        /// The revision.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// The revision that should be active lives in another namespace, and cannot move.
    #[error("IstioRevision {name:?} is in namespace {namespace:?}, which cannot be changed")]
    OtherNamespace {
        /// The revision.
        name: String,
        /// Where it is.
        namespace: String,
    },
    /// Something cannot be read.
    #[error("{context}{error}")]
    Unreadable {
        /// How upstream introduces the error.
        context: &'static str,
        /// In the words of whoever refused.
        error: String,
    },
    /// An action failed.
    #[error("{prefix}{message}")]
    Failed {
        /// How upstream introduces the error.
        prefix: String,
        /// In the words of whoever refused.
        message: String,
        /// What kind of failure it was.
        class: ErrorClass,
    },
}

impl ReconcileError {
    /// What kind of error it is.
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
            | Self::NotHere(_)
            | Self::NoCharts { .. }
            | Self::Values(_)
            | Self::OtherNamespace { .. }
            | Self::Unreadable { .. } => ErrorClass::Other,
        }
    }

    /// The reason the `Reconciled` condition gives.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::TagExists | Self::RevisionExists => Reason::NameAlreadyExists,
            Self::RefNotFound(_) => Reason::RefNotFound,
            _ => Reason::ReconcileError,
        }
    }

    /// The message the `Reconciled` condition gives, on everything but an Istio.
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
    fn refusals_have_a_class_and_a_reaction() {
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
    fn errors_read_as_upstream_writes_them() {
        let check = |trouble: ReconcileError, text: &str, requeue: Requeue| {
            assert_eq!(trouble.to_string(), text);
            assert_eq!(trouble.class().requeue(), requeue, "{text}");
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
