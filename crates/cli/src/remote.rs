//! Downloads release charts and verifies their digests. The only module with network access; writes nothing.
//!
//! Downloads are limited in bytes, redirects and time, and trusted only after their SHA-256 matches the index
//! or manifest. Names never become paths: archives are unpacked in memory by `mainstay-chart`.

mod address;
mod error;
mod helm_repo;
mod http;
mod oci;

use mainstay_catalog::Version;
use mainstay_catalog::derive::Files;

pub(crate) use error::RemoteError;
pub(crate) use http::{Client, sha256};

use crate::ui::Progress;
use address::Address;
use error::{ArchiveContentError, DigestError};

/// Istio's release repository.
pub(crate) const DEFAULT_REPOSITORY: &str = "https://istio-release.storage.googleapis.com/charts";

/// Charts of an Istio release.
pub(crate) const CHARTS: [&str; 5] = ["base", "istiod", "cni", "ztunnel", "gateway"];

/// Maximum size of an archive; Istio's are below 100 KiB.
const MAX_ARCHIVE: u64 = 20 << 20;

/// Parses a digest given on the command line.
pub(crate) fn parse_digest(text: &str) -> Result<String, DigestError> {
    match text.strip_prefix("sha256:") {
        Some(hex) if http::is_sha256(hex) => Ok(text.to_ascii_lowercase()),
        _ => Err(DigestError),
    }
}

/// A source of release charts.
pub(crate) enum Source {
    /// A Helm repository: `index.yaml` and archives.
    Repository(Address),
    /// An OCI registry: one repository per chart, one tag per version.
    Registry {
        address: Address,
        /// Hosts besides the registry's own that may issue tokens.
        token_hosts: Vec<String>,
    },
}

/// A release chart and the digest of the archive it came in.
pub(crate) struct Pulled {
    /// Name of the chart.
    pub(crate) chart: &'static str,
    /// Verified digest (`sha256:…`).
    pub(crate) digest: String,
    /// Files by path.
    pub(crate) files: Files,
}

impl Source {
    /// Parses `https://…`, `http://…` or `oci://…`. Without TLS only loopback is allowed, unless
    /// `plain_http`.
    pub(crate) fn parse(text: &str, plain_http: bool) -> Result<Self, RemoteError> {
        match text.strip_prefix("oci://") {
            Some(rest) => {
                let scheme = if plain_http { "http" } else { "https" };
                Ok(Self::Registry {
                    address: Address::parse(&format!("{scheme}://{rest}"), plain_http)?,
                    token_hosts: Vec::new(),
                })
            }
            None => Address::parse(text, plain_http).map(Self::Repository),
        }
    }

    /// Allows a registry to request tokens from `hosts`, besides its own.
    pub(crate) fn with_token_hosts(self, hosts: &[String]) -> Self {
        match self {
            Self::Registry { address, .. } => Self::Registry {
                address,
                token_hosts: hosts.to_vec(),
            },
            repository @ Self::Repository(_) => repository,
        }
    }

    /// Pulls every chart of `version`.
    pub(crate) fn pull(
        &self,
        client: &Client,
        version: &Version,
        progress: &Progress,
    ) -> Result<Vec<Pulled>, RemoteError> {
        let index = match self {
            Self::Repository(address) => Some(helm_repo::Index::fetch(client, address)?),
            Self::Registry { .. } => None,
        };
        let mut pulled = Vec::new();
        for chart in CHARTS {
            progress.step(&format!("pulling {chart} {version}"));
            let (bytes, digest) = match (self, &index) {
                (Self::Registry { address, token_hosts }, _) => {
                    let registry = oci::Registry {
                        client,
                        address,
                        token_hosts,
                    };
                    registry.fetch(chart, version)?
                }
                (_, Some(index)) => index.fetch_chart(client, chart, version)?,
                (Self::Repository(_), None) => continue,
            };
            let files = unpack(chart, version, &bytes)?;
            pulled.push(Pulled { chart, digest, files });
        }
        Ok(pulled)
    }
}

/// Unpacks an archive and checks that it contains the requested chart.
fn unpack(chart: &str, version: &Version, bytes: &[u8]) -> Result<Files, RemoteError> {
    let invalid = |source| RemoteError::Archive {
        chart: chart.to_owned(),
        source,
    };
    let files =
        mainstay_chart::read_archive(bytes).map_err(|error| invalid(ArchiveContentError::Archive(error)))?;
    let loaded = mainstay_chart::load_files(files.clone(), mainstay_chart::Dialect::default());
    let loaded = loaded.map_err(|error| invalid(ArchiveContentError::Chart(Box::new(error))))?;
    let found = &loaded.chart.metadata;
    if found.name != chart || found.version.trim_start_matches('v') != version.to_string() {
        let found = format!("{} {}", found.name, found.version);
        return Err(invalid(ArchiveContentError::Another {
            found,
            expected: format!("{chart} {version}"),
        }));
    }
    Ok(files
        .into_iter()
        .map(|file| (file.name, file.data.to_vec()))
        .collect())
}
