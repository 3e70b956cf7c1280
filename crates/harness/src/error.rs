//! Errors of the harness.

use mainstay_operator::OperatorError;

/// Error of the harness.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The async runtime could not be created.
    #[error("cannot create the async runtime")]
    Runtime(#[source] std::io::Error),
    /// The catalog could not be read.
    #[error(transparent)]
    Catalog(#[from] mainstay_catalog::CatalogError),
    /// The definitions of Istio could not be read.
    #[error(transparent)]
    Definitions(#[from] mainstay_cluster::definitions::DefinitionsError),
    /// The simulated API does not serve this kind.
    #[error("the embedded cluster does not serve {0}")]
    UnknownKind(String),
    /// Objects could not be loaded into the cluster.
    #[error("cannot load {}", .0.join(", "))]
    NotLoaded(Vec<String>),
    /// The API rejected a request.
    #[error("{call}: {message}")]
    Rejected {
        /// Method and path of the request.
        call: String,
        /// Status code of the response.
        code: u16,
        /// Message of the API.
        message: String,
    },
    /// A request failed without a response.
    #[error("{call}")]
    Request {
        /// Method and path of the request.
        call: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// The operator failed.
    #[error("the operator stopped")]
    Operator(#[from] OperatorError),
    /// The operator's task panicked.
    #[error("the operator panicked")]
    OperatorPanicked,
}

impl HarnessError {
    pub(crate) fn from_call(call: String, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Rejected {
                call,
                code: status.code,
                message: status.message.clone(),
            },
            other => Self::Request {
                call,
                source: Box::new(other),
            },
        }
    }
}
