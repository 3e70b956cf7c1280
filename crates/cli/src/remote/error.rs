//! Errors of downloads. Nothing has been written when one occurs.

use crate::error::{CliError, Kind};

/// Error of a download.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("invalid address {address:?}: {reason}")]
    Address { address: String, reason: &'static str },
    #[error("cannot reach {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("{address} responded with status {status}")]
    Status { address: String, status: u16 },
    #[error("response of {address} exceeds {limit} bytes")]
    TooLarge { address: String, limit: u64 },
    #[error("response of {address} is truncated: {reason}")]
    Truncated { address: String, reason: String },
    #[error("{address} redirects more than {limit} times")]
    Redirects { address: String, limit: usize },
    #[error("{address} redirects to {target:?}: {reason}")]
    Redirect {
        address: String,
        target: String,
        reason: &'static str,
    },
    #[error("{address} requires a token from another host, {host}")]
    TokenHost { address: String, host: String },
    #[error("{address} requires a login: {reason}")]
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
    #[error("{address} has no sha256 digest of chart {chart:?}")]
    NoDigest { address: String, chart: String },
    #[error("digest mismatch of {address}: got sha256:{found}, expected sha256:{expected}")]
    Digest {
        address: String,
        expected: String,
        found: String,
    },
    #[error("invalid archive of chart {chart:?}: {source}")]
    Archive {
        chart: String,
        source: ArchiveContentError,
    },
    #[error("cannot read the system's certificates: {0}")]
    Certificates(String),
}

/// Error of a digest given on the command line.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("must be sha256: and 64 hexadecimal digits")]
pub(crate) struct DigestError;

/// Defect of an archive with a valid digest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveContentError {
    #[error(transparent)]
    Archive(mainstay_chart::ArchiveError),
    #[error(transparent)]
    Chart(Box<mainstay_chart::ChartError>),
    #[error("contains {found} instead of {expected}")]
    Another { found: String, expected: String },
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
                "check the network, HTTPS_PROXY and NO_PROXY, or use another source with --repo; nothing was written".into()
            }
            Self::NoVersion { newest, .. } if !newest.is_empty() => format!("use one of the newest versions: {}", newest.join(", ")),
            Self::Digest { .. } => "check the source: the response is not the published archive; nothing was written".into(),
            Self::TokenHost { host, .. } => format!("use --token-host {host} if you trust it; nothing was written"),
            Self::Certificates(_) => "install the ca-certificates package, or set SSL_CERT_FILE".into(),
            Self::Address { .. } => "use https://HOST/PATH of a Helm repository or oci://HOST/PATH of a registry".into(),
            _ => "nothing was written".into(),
        }
    }
}

impl From<RemoteError> for CliError {
    fn from(error: RemoteError) -> Self {
        Self::new(error.kind(), error.to_string()).hint(error.hint())
    }
}
