//! What can go wrong in the catalog: one enum, each variant names the failed operation, [`CatalogError::hint`] what to do.

use std::path::PathBuf;

use crate::flavour::Flavour;
use crate::version::Version;

/// Why the catalog could not answer.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The text is no `X.Y.Z[-pre]`.
    #[error("{0:?} is not a version (expected X.Y.Z, for example 1.29.1)")]
    BadVersion(String),
    /// No layer holds a single version.
    #[error("there are no charts: this build embeds none, and the catalog is empty")]
    Empty,
    /// A name nobody knows.
    #[error("Istio version {name:?} is not in the catalog")]
    UnknownVersion {
        /// As it was asked for.
        name: String,
        /// What it would be, if it can be read as a version.
        version: Option<Version>,
        /// Names that are spelled nearly so.
        nearest: Vec<String>,
    },
    /// A version that exists, but whose charts are not here.
    #[error("the charts of Istio {0} are not here")]
    NotAvailable(Version),
    /// A name that is refused. Not the same as unknown: asking again later will not help.
    #[error("Istio version {name:?} has reached its end of life and cannot be installed")]
    EndOfLife {
        /// As it was asked for.
        name: String,
        /// The oldest that can be installed.
        oldest: Option<Version>,
    },
    /// The version has no such chart.
    #[error("Istio {version} has no chart {chart:?} for the {flavour}")]
    UnknownChart {
        /// Which version.
        version: Version,
        /// Which flavour.
        flavour: Flavour,
        /// As it was asked for.
        chart: String,
        /// Those it has.
        charts: Vec<String>,
    },
    /// The version has no such profile.
    #[error("Istio {version} has no profile {profile:?} for the {flavour}")]
    UnknownProfile {
        /// Which version.
        version: Version,
        /// Which flavour.
        flavour: Flavour,
        /// As it was asked for.
        profile: String,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file or directory is there, but not to be trusted.
    #[error("{} is refused: {reason}", path.display())]
    Refused {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
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
        flavour: Flavour,
        /// Which edit, and why.
        source: crate::derive::DeriveError,
    },
    /// The embedded charts are damaged.
    #[error("the embedded charts are damaged: {0}")]
    Pack(&'static str),
    /// The embedded charts lack this directory.
    #[error("the embedded charts hold no {0}")]
    NotPacked(String),
}

impl CatalogError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty => Some(
                "run `cargo xtask charts` and build again, or `mainstay charts pull VERSION`, or name a directory with --charts".into(),
            ),
            Self::UnknownVersion { version, nearest, .. } => Some(unknown_hint(version.as_ref(), nearest)),
            Self::NotAvailable(version) => Some(format!("`mainstay charts pull {version}` adds them")),
            Self::EndOfLife { oldest, .. } => oldest.as_ref().map(|oldest| format!("the oldest that can be installed is {oldest}")),
            Self::UnknownChart { charts, .. } => Some(format!("it has {}", charts.join(", "))),
            _ => None,
        }
    }
}

fn unknown_hint(version: Option<&Version>, nearest: &[String]) -> String {
    let near = match nearest {
        [] => "`mainstay charts list` shows what is there.".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    version.map_or(near.clone(), |version| {
        format!("{near} `mainstay charts pull {version}` adds it if it exists")
    })
}
