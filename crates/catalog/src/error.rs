//! What can go wrong in the catalogue: one enum, each variant names the failed operation.

use crate::version::Version;

/// Why the catalogue could not answer.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The text is no `X.Y.Z[-pre]`.
    #[error("{0:?} is not a version (expected X.Y.Z, for example 1.29.1)")]
    BadVersion(String),
    /// A line of `charts.lock` cannot be read.
    #[error("charts.lock line {line}: {reason}")]
    Lock {
        /// Counted from one.
        line: usize,
        /// What was expected.
        reason: &'static str,
    },
    /// The derivation of a flavour failed.
    #[error("cannot derive the {flavour} charts of Istio {version}")]
    Derive {
        /// Which version.
        version: Version,
        /// Which flavour.
        flavour: crate::Flavour,
        /// Which edit, and why.
        source: crate::derive::DeriveError,
    },
}
