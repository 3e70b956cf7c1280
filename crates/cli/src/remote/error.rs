//! What can go wrong on the network: each variant names the address; nothing was written when one is seen.

use crate::error::{CliError, Kind};

/// Why charts could not be pulled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("{address:?} is no address to pull from: {reason}")]
    Address { address: String, reason: &'static str },
    #[error("cannot reach {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} answers {status}")]
    Status { address: String, status: u16 },
    #[error("{address} sends more than {limit} bytes")]
    TooLarge { address: String, limit: u64 },
    #[error("{address} ends early: {reason}")]
    Truncated { address: String, reason: String },
    #[error("{address} redirects more than {limit} times")]
    Redirects { address: String, limit: usize },
    #[error("{address} redirects to {target:?}: {reason}")]
    Redirect {
        address: String,
        target: String,
        reason: &'static str,
    },
    #[error("{address} wants a login that is not offered to everybody: {reason}")]
    Login { address: String, reason: String },
    #[error("cannot read {address}: {reason}")]
    Malformed { address: String, reason: String },
    #[error("{address} has no chart {chart:?}")]
    NoChart { address: String, chart: String },
    #[error("{address} has no version {version} of chart {chart:?}")]
    NoVersion {
        address: String,
        chart: String,
        version: String,
        newest: Vec<String>,
    },
    #[error("{address} names no sha256 digest for chart {chart:?}")]
    NoDigest { address: String, chart: String },
    #[error("the digest of {address} is sha256:{found}, but it should be sha256:{expected}")]
    Digest {
        address: String,
        expected: String,
        found: String,
    },
    #[error("the archive of chart {chart:?} is refused: {source}")]
    Archive { chart: String, source: ArchiveTrouble },
    #[error("cannot read the system's certificates: {0}")]
    Certificates(String),
}

/// Why an archive is refused although its digest is right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveTrouble {
    #[error(transparent)]
    Archive(mainstay_chart::ArchiveError),
    #[error(transparent)]
    Chart(Box<mainstay_chart::ChartError>),
    #[error("it holds {found}, not {wanted}")]
    Another { found: String, wanted: String },
}

impl RemoteError {
    fn kind(&self) -> Kind {
        match self {
            Self::Address { .. } => Kind::Usage,
            Self::Archive { .. } | Self::Digest { .. } => Kind::Chart,
            _ => Kind::Offline,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Unreachable { .. } => {
                "nothing was written; check the network, HTTPS_PROXY and NO_PROXY, or name another source with --repo".into()
            }
            Self::NoVersion { newest, .. } if !newest.is_empty() => format!("the newest there are {}", newest.join(", ")),
            Self::Digest { .. } => "nothing was written; what was sent is not what was published".into(),
            Self::Certificates(_) => "install the ca-certificates package, or name a bundle in SSL_CERT_FILE".into(),
            Self::Address { .. } => "expected https://HOST/PATH of a Helm repository or oci://HOST/PATH of a registry".into(),
            _ => "nothing was written".into(),
        }
    }
}

impl From<RemoteError> for CliError {
    fn from(error: RemoteError) -> Self {
        Self::new(error.kind(), error.to_string()).hint(error.hint())
    }
}
