//! Why a release could not be installed or removed, in Helm's words, with the class that says when to try again.

use std::time::Duration;

use mainstay_mesh::ErrorClass;

use crate::desired::{DesiredError, ObjectId};

/// Why the engine stopped.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// What was rendered makes no release.
    #[error("unable to build kubernetes objects from release manifest: {0}")]
    Desired(#[from] DesiredError),
    /// An object of that name is not ours. Nothing was touched.
    #[error(
        "unable to continue with install: {id} exists and cannot be imported into the current release: invalid ownership metadata; {why}"
    )]
    Foreign {
        /// Which object.
        id: Box<ObjectId>,
        /// What its marks say.
        why: String,
    },
    /// A wanted object is on its way out; it must be gone before it can come back.
    #[error("{0} is being deleted")]
    Deleting(Box<ObjectId>),
    /// The API server refused.
    #[error("{}{message}", context(*.verb, .id))]
    Rejected {
        /// What was asked.
        verb: Verb,
        /// Of which object.
        id: Box<ObjectId>,
        /// Its status code.
        code: u16,
        /// Its words.
        message: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The API server could not be asked, or its answer not be read.
    #[error("{}the API server cannot be reached", context(*.verb, .id))]
    Unreachable {
        /// What was asked.
        verb: Verb,
        /// Of which object.
        id: Box<ObjectId>,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server said something that is no answer.
    #[error("{}the API server's answer makes no sense", context(*.verb, .id))]
    Garbled {
        /// What was asked.
        verb: Verb,
        /// Of which object.
        id: Box<ObjectId>,
        /// Why.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The API server took too long. Whether it did what was asked is not known.
    #[error("{}no answer within {} s", context(*.verb, .id), .after.as_secs())]
    TimedOut {
        /// What was asked.
        verb: Verb,
        /// Of which object.
        id: Box<ObjectId>,
        /// How long we waited.
        after: Duration,
    },
}

/// What the API server was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Say what kinds there are.
    Discover,
    /// Show an object.
    Get,
    /// Make an object.
    Create,
    /// Change an object.
    Patch,
    /// Remove an object.
    Delete,
}

/// How Helm introduces an error.
fn context(verb: Verb, id: &ObjectId) -> String {
    match verb {
        Verb::Discover => format!("unable to recognize {:?}: ", id.group_kind()),
        Verb::Get => format!("could not get information about the resource {id}: "),
        Verb::Create => "failed to create resource: ".into(),
        Verb::Patch => format!("cannot patch {:?} with kind {}: ", id.name, id.kind),
        Verb::Delete => format!("failed to delete {id}: "),
    }
}

/// No server may keep us waiting longer than this.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl ApplyError {
    /// What kind of error it is, which decides when to try again.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            // Another object has the name by now.
            Self::Rejected {
                code: 422, message, ..
            } if message.contains("metadata.uid: Invalid value") => ErrorClass::Conflict,
            Self::Rejected { code, message, .. } => ErrorClass::from_status(*code, message),
            Self::Deleting(_) => ErrorClass::Transient,
            Self::Desired(_)
            | Self::Foreign { .. }
            | Self::Unreachable { .. }
            | Self::Garbled { .. }
            | Self::TimedOut { .. } => ErrorClass::Other,
        }
    }

    /// How long the server wants to be left alone, within reason.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => retry_after.map(|wait| wait.min(LONGEST_WAIT)),
            _ => None,
        }
    }

    /// Whether the server says that there is no such object.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rejected { code: 404, .. })
    }
}
