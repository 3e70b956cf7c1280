//! Errors of the catalog and their hints.

use std::path::PathBuf;

use crate::flavour::Flavour;
use crate::version::Version;

/// An error of the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The text does not have the form `X.Y.Z[-pre]`.
    #[error("{0:?} is not a version (expected X.Y.Z, for example 1.29.1)")]
    BadVersion(String),
    /// No layer contains any version.
    #[error("no charts found: this build embeds none, and the catalog is empty")]
    Empty,
    /// The name is unknown.
    #[error("Istio version {name:?} is not in the catalog")]
    UnknownVersion {
        /// The requested name.
        name: String,
        /// The name as a version, if it is one.
        version: Option<Version>,
        /// At most five known names: the nearest versions, or those with a similar spelling.
        nearest: Vec<String>,
    },
    /// The version exists, but no layer contains its charts.
    #[error("the charts of Istio {0} are not available")]
    NotAvailable(Version),
    /// The version has reached its end of life and is permanently rejected.
    #[error("Istio version {name:?} has reached its end of life and cannot be installed")]
    EndOfLife {
        /// The requested name.
        name: String,
        /// The oldest installable version.
        oldest: Option<Version>,
    },
    /// The version does not have the chart.
    #[error("Istio {version} has no chart {chart:?} for the {flavour}")]
    UnknownChart {
        /// The requested version.
        version: Version,
        /// The requested flavour.
        flavour: Flavour,
        /// The requested name.
        chart: String,
        /// Names of the charts that the version has.
        charts: Vec<String>,
    },
    /// The version does not have the profile.
    #[error("Istio {version} has no profile {profile:?} for the {flavour}")]
    UnknownProfile {
        /// The requested version.
        version: Version,
        /// The requested flavour.
        flavour: Flavour,
        /// The requested name.
        profile: String,
    },
    /// The version does not have the add-on.
    #[error("Istio {version} has no add-on {addon:?}")]
    UnknownAddon {
        /// The requested version.
        version: Version,
        /// The requested name.
        addon: String,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A directory can be neither replaced nor restored.
    #[error(
        "cannot write {}; its previous content is in {}",
        path.display(),
        aside.display()
    )]
    NotRestored {
        /// Path of the directory.
        path: PathBuf,
        /// Path of its previous content.
        aside: PathBuf,
        /// The system's error of the replacement.
        source: std::io::Error,
    },
    /// A file or directory is not safe to use.
    #[error("{} is rejected: {reason}", path.display())]
    Rejected {
        /// Path of the file or directory.
        path: PathBuf,
        /// Reason for the rejection.
        reason: &'static str,
    },
    /// A line of `charts.lock` is invalid.
    #[error("charts.lock line {line}: {reason}")]
    Lock {
        /// Line, counted from 1.
        line: usize,
        /// Reason why the line is invalid.
        reason: &'static str,
    },
    /// The derivation of a flavour failed.
    #[error("cannot derive the {flavour} charts of Istio {version}")]
    Derive {
        /// Version of the charts.
        version: Version,
        /// Flavour to derive.
        flavour: Flavour,
        /// Cause of the failure.
        source: crate::derive::DeriveError,
    },
    /// The embedded charts are damaged.
    #[error("the embedded charts are damaged: {0}")]
    Pack(&'static str),
    /// The embedded charts do not contain this directory.
    #[error("the embedded charts do not contain {0}")]
    NotPacked(String),
}

impl CatalogError {
    /// Returns a hint for the user.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty => Some(
                "run `cargo xtask charts` and build again, or `mainstay charts pull VERSION`, or specify a directory with --charts".into(),
            ),
            Self::UnknownVersion { version, nearest, .. } => Some(unknown_hint(version.as_ref(), nearest)),
            Self::NotAvailable(version) => Some(format!("run `mainstay charts pull {version}`")),
            Self::EndOfLife { oldest, .. } => oldest.as_ref().map(|oldest| format!("use {oldest} or later")),
            Self::UnknownChart { charts, .. } => Some(format!("choose one of {}", charts.join(", "))),
            _ => None,
        }
    }
}

fn unknown_hint(version: Option<&Version>, nearest: &[String]) -> String {
    let pull = version.map(|version| format!("if the version exists, run `mainstay charts pull {version}`"));
    match (nearest, pull) {
        ([], None) => "run `mainstay charts list` to show the installable versions".to_owned(),
        ([], Some(pull)) => format!("run `mainstay charts list` to show the installable versions; {pull}"),
        (names, None) => format!("did you mean {}?", alternatives(names)),
        (names, Some(pull)) => format!("did you mean {}? {pull}", alternatives(names)),
    }
}

/// Formats names as in `a, b or c`.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
