//! THE RIM: the only module that talks to the network. Takes a version and an address, gives release charts whose digests
//! are verified. Writes nothing.
//!
//! Everything that arrives is bounded (bytes, redirects, time) and distrusted until its SHA-256 is the one that the index or
//! the manifest named. Names never become paths here: archives are unpacked in memory by `mainstay-chart`.

mod address;
mod error;
mod helm_repo;
mod http;
mod oci;
mod progress;

use mainstay_catalog::Version;
use mainstay_catalog::derive::Files;

pub(crate) use error::RemoteError;
pub(crate) use http::Client;
pub(crate) use progress::Progress;

use address::Address;
use error::ArchiveTrouble;

/// Where Istio publishes its releases.
pub(crate) const DEFAULT_REPOSITORY: &str = "https://istio-release.storage.googleapis.com/charts";

/// The charts of a release that Istio publishes.
pub(crate) const CHARTS: [&str; 5] = ["base", "istiod", "cni", "ztunnel", "gateway"];

/// The largest archive that is downloaded: Istio's are below 100 KiB.
const MAX_ARCHIVE: u64 = 20 << 20;

/// A source of release charts.
pub(crate) enum Source {
    /// A Helm repository: `index.yaml` and archives.
    Repository(Address),
    /// An OCI registry: one repository per chart, one tag per version.
    Registry(Address),
}

/// A release chart and the digest of the archive it came in.
pub(crate) struct Pulled {
    /// Which chart.
    pub(crate) chart: &'static str,
    /// `sha256:…`, as verified.
    pub(crate) digest: String,
    /// By their path in the chart.
    pub(crate) files: Files,
}

impl Source {
    /// `https://…`, `http://…` or `oci://…`. Without TLS only as far as `plain_http` or a loopback address allows.
    pub(crate) fn parse(text: &str, plain_http: bool) -> Result<Self, RemoteError> {
        match text.strip_prefix("oci://") {
            Some(rest) => {
                let scheme = if plain_http { "http" } else { "https" };
                Address::parse(&format!("{scheme}://{rest}"), plain_http).map(Self::Registry)
            }
            None => Address::parse(text, plain_http).map(Self::Repository),
        }
    }

    /// Every chart of `version`, or none.
    pub(crate) fn pull(
        &self,
        client: &Client,
        version: &Version,
        progress: &mut Progress,
    ) -> Result<Vec<Pulled>, RemoteError> {
        let index = match self {
            Self::Repository(address) => Some(helm_repo::Index::fetch(client, address)?),
            Self::Registry(_) => None,
        };
        let mut pulled = Vec::new();
        for chart in CHARTS {
            progress.step(&format!("pulling {chart} {version}"));
            let (bytes, digest) = match (self, &index) {
                (Self::Registry(address), _) => oci::fetch(client, address, chart, version)?,
                (_, Some(index)) => index.fetch_chart(client, chart, version)?,
                (Self::Repository(_), None) => continue,
            };
            let files = unpack(chart, version, &bytes)?;
            pulled.push(Pulled { chart, digest, files });
        }
        Ok(pulled)
    }
}

/// The files of an archive, if it is the chart it should be.
fn unpack(chart: &str, version: &Version, bytes: &[u8]) -> Result<Files, RemoteError> {
    let trouble = |source| RemoteError::Archive {
        chart: chart.to_owned(),
        source,
    };
    let files =
        mainstay_chart::read_archive(bytes).map_err(|error| trouble(ArchiveTrouble::Archive(error)))?;
    let loaded = mainstay_chart::load_files(files.clone(), mainstay_chart::Dialect::default());
    let loaded = loaded.map_err(|error| trouble(ArchiveTrouble::Chart(Box::new(error))))?;
    let found = &loaded.chart.metadata;
    if found.name != chart || found.version.trim_start_matches('v') != version.to_string() {
        let found = format!("{} {}", found.name, found.version);
        return Err(trouble(ArchiveTrouble::Another {
            found,
            wanted: format!("{chart} {version}"),
        }));
    }
    Ok(files
        .into_iter()
        .map(|file| (file.name, file.data.to_vec()))
        .collect())
}
