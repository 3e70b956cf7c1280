//! What can go wrong on a stage.

use mainstay_operator::OperatorError;

/// Why a play could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// No runtime.
    #[error("no runtime could be made")]
    Runtime(#[source] std::io::Error),
    /// Nothing to install.
    #[error(transparent)]
    Catalog(#[from] mainstay_catalog::CatalogError),
    /// A kind nobody serves.
    #[error("the embedded cluster does not serve {0}")]
    Unknown(String),
    /// The API refused.
    #[error("{call}: {message}")]
    Refused {
        /// What was asked for.
        call: String,
        /// The answer's status.
        code: u16,
        /// In its words.
        message: String,
    },
    /// The API could not be asked.
    #[error("{call}")]
    Call {
        /// What was asked for.
        call: String,
        /// Why it could not be.
        source: Box<kube::Error>,
    },
    /// The operator gave up.
    #[error("the operator stopped")]
    Operator(#[from] OperatorError),
    /// The operator is gone without a word.
    #[error("the operator panicked")]
    Vanished,
}

impl StageError {
    pub(super) fn of(call: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                call: call.to_owned(),
                code: status.code,
                message: status.message.clone(),
            },
            other => Self::Call {
                call: call.to_owned(),
                source: Box::new(other),
            },
        }
    }
}
