//! Errors of webhook calls, with the texts of the real API server.

/// Failure of a webhook call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WebhookError {
    /// The webhook could not be called, or its response is not an `AdmissionReview`.
    #[error("failed to call webhook: {0}")]
    Call(String),
    /// The review in the response is invalid.
    #[error("received invalid webhook response: {0}")]
    InvalidResponse(String),
    /// The patch is not base64-encoded JSON.
    #[error("received undecodable patch in webhook response: {0}")]
    UndecodablePatch(String),
    /// The patch is not a JSON patch.
    #[error("unsupported patch type {0:?}")]
    UnsupportedPatchType(String),
}

/// Failure to evaluate the match conditions of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConditionError {
    /// The expression does not compile.
    #[error("compilation failed: {0}")]
    Compile(#[from] crate::cel::CompileError),
    /// The type of the expression is not bool.
    #[error("must evaluate to bool but got {0}")]
    NotBool(String),
    /// The evaluation failed.
    #[error("expression '{expression}' resulted in error: {reason}")]
    Evaluate {
        expression: String,
        /// The error text of the evaluator.
        reason: String,
    },
    /// The cost budget of all conditions is exhausted.
    #[error("validation failed due to running out of cost budget, no further validation rules will be run")]
    Budget,
    /// Several conditions failed.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<ConditionError>),
}
