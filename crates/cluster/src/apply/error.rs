//! Errors of installing and uninstalling releases, with Helm's messages and the class that determines
//! retries.

use std::time::Duration;

use mainstay_mesh::ErrorClass;

use crate::connect::MAX_RETRY_AFTER;
use crate::desired::{DesiredError, ObjectId};

/// Errors of the engine.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The rendered objects are invalid.
    #[error("unable to build kubernetes objects from release manifest: {0}")]
    Desired(#[from] DesiredError),
    /// An object that does not belong to the release has the same name. Nothing was written.
    #[error(
        "unable to continue with install: {id} exists and cannot be imported into the current release: invalid ownership metadata; {reason}"
    )]
    Foreign {
        /// Identity of the foreign object.
        id: Box<ObjectId>,
        /// Problem with its ownership metadata.
        reason: String,
    },
    /// A desired object is being deleted. It cannot be created again before it is removed.
    #[error("{0} is being deleted")]
    Deleting(Box<ObjectId>),
    /// The API server rejected the call.
    #[error("{}{message}", context(*.verb, .id))]
    Rejected {
        /// Verb of the call.
        verb: Verb,
        /// Object that the call is about.
        id: Box<ObjectId>,
        /// HTTP status code.
        code: u16,
        /// The server's message.
        message: String,
        /// Delay from the `Retry-After` header; `None` if the header is missing.
        retry_after: Option<Duration>,
    },
    /// The API server cannot be reached, or its response cannot be read.
    #[error("{}the API server cannot be reached", context(*.verb, .id))]
    Unreachable {
        /// Verb of the call.
        verb: Verb,
        /// Object that the call is about.
        id: Box<ObjectId>,
        /// Error of the client.
        #[source]
        source: Box<kube::Error>,
    },
    /// The response cannot be parsed.
    #[error("{}the API server's response cannot be parsed", context(*.verb, .id))]
    InvalidResponse {
        /// Verb of the call.
        verb: Verb,
        /// Object that the call is about.
        id: Box<ObjectId>,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// The call timed out. Its effect is unknown.
    #[error("{}no response within {} s", context(*.verb, .id), .after.as_secs())]
    TimedOut {
        /// Verb of the call.
        verb: Verb,
        /// Object that the call is about.
        id: Box<ObjectId>,
        /// Timeout of the call.
        after: Duration,
    },
}

/// Verbs of API calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// API discovery.
    Discover,
    /// Read an object.
    Get,
    /// Create an object.
    Create,
    /// Patch an object.
    Patch,
    /// Delete an object.
    Delete,
}

/// Returns the prefix that Helm adds to the server's message.
fn context(verb: Verb, id: &ObjectId) -> String {
    match verb {
        Verb::Discover => format!("unable to recognize {:?}: ", id.group_kind()),
        Verb::Get => format!("could not get information about the resource {id}: "),
        Verb::Create => "failed to create resource: ".into(),
        Verb::Patch => format!("cannot patch {:?} with kind {}: ", id.name, id.kind),
        Verb::Delete => format!("failed to delete {id}: "),
    }
}

impl ApplyError {
    /// Returns the error class, which determines retries.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            // An object with this name but another UID exists.
            Self::Rejected {
                code: 422, message, ..
            } if message.contains("metadata.uid: Invalid value") => ErrorClass::Conflict,
            Self::Rejected { code, message, .. } => ErrorClass::from_status(*code, message),
            Self::Deleting(_) => ErrorClass::Transient,
            Self::Desired(_)
            | Self::Foreign { .. }
            | Self::Unreachable { .. }
            | Self::InvalidResponse { .. }
            | Self::TimedOut { .. } => ErrorClass::Other,
        }
    }

    /// Returns the server's `Retry-After`, up to a maximum.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => retry_after.map(|wait| wait.min(MAX_RETRY_AFTER)),
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rejected { code: 404, .. })
    }
}
