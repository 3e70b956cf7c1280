//! Errors about the whole input. A problem of one object is a [`Finding`](crate::Finding) of its report.

/// Why nothing of an input could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// The text starts with the byte order mark of UTF-16.
    #[error("the text is UTF-16; save it as UTF-8")]
    Utf16,
    /// A pod template path that cannot be read.
    #[error(
        "pod template path {given:?}: {problem}; write KIND=path.to.template, such as Rollout=spec.template"
    )]
    PodTemplatePath {
        /// What was given.
        given: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}
