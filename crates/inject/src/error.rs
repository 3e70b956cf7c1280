//! Errors about the whole input. A problem of one object is a [`Finding`](crate::Finding) of its report.

/// An error of a run or of its options; no text is processed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// The text starts with the byte order mark of UTF-16.
    #[error("the text is UTF-16; save it as UTF-8")]
    Utf16,
    /// A pod template path cannot be parsed.
    #[error(
        "pod template path {given:?}: {problem}; write KIND=path.to.template, such as Rollout=spec.template"
    )]
    PodTemplatePath {
        /// The path as given.
        given: String,
        /// The syntax error.
        problem: &'static str,
    },
}
