//! Helm repositories: downloads the archives listed in `index.yaml` and verifies their digests.

use mainstay_catalog::Version;
use mainstay_yaml::{Budget, Value, parse};

use super::MAX_ARCHIVE;
use super::address::Address;
use super::error::RemoteError;
use super::http::{Client, is_sha256, verify};

/// Maximum size of an index; Istio's is about 1 MiB.
const MAX_INDEX: u64 = 32 << 20;

/// Limits of an index. The nodes of a document take more memory than its text.
fn budget() -> Budget {
    Budget {
        nodes: 800_000,
        alias_expansion: 0,
        ..Budget::default()
    }
}

/// Index of a repository.
pub(crate) struct Index {
    /// Address of `index.yaml` after redirects; links are relative to it.
    address: Address,
    content: Value,
}

impl Index {
    /// Downloads and parses `index.yaml`.
    pub(crate) fn fetch(client: &Client, repository: &Address) -> Result<Self, RemoteError> {
        let reply = client.get(&repository.below("index.yaml"), &[], MAX_INDEX)?;
        let address = reply.address.clone();
        let content = parse(reply.success()?, &budget());
        let content = content.map_err(|error| RemoteError::Malformed {
            address: address.to_string(),
            reason: error.to_string(),
        })?;
        Ok(Self { address, content })
    }

    /// Downloads the archive of a chart; returns it with its digest.
    pub(crate) fn fetch_chart(
        &self,
        client: &Client,
        chart: &str,
        version: &Version,
    ) -> Result<(Vec<u8>, String), RemoteError> {
        let entry = self.entry(chart, version)?;
        let digest = entry.get("digest").and_then(Value::as_str).unwrap_or_default();
        let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
        if !is_sha256(digest) {
            return Err(RemoteError::NoDigest {
                address: self.address.to_string(),
                chart: chart.to_owned(),
            });
        }
        let address = self.archive(entry, chart)?;
        let bytes = client.get(&address, &[], MAX_ARCHIVE)?.success()?;
        verify(&address, &bytes, digest)?;
        Ok((bytes, format!("sha256:{}", digest.to_ascii_lowercase())))
    }

    fn entry(&self, chart: &str, version: &Version) -> Result<&Value, RemoteError> {
        let entries = self.content.at(&["entries", chart]).and_then(Value::as_list);
        let entries = entries.ok_or_else(|| RemoteError::NoChart {
            address: self.address.to_string(),
            chart: chart.to_owned(),
        })?;
        entries
            .iter()
            .find(|entry| version_of(entry).as_ref() == Some(version))
            .ok_or_else(|| RemoteError::NoVersion {
                address: self.address.to_string(),
                chart: chart.to_owned(),
                version: version.to_string(),
                newest: newest(entries),
            })
    }

    fn archive(&self, entry: &Value, chart: &str) -> Result<Address, RemoteError> {
        let urls = entry.get("urls").and_then(Value::as_list).unwrap_or_default();
        let malformed = |reason: String| RemoteError::Malformed {
            address: self.address.to_string(),
            reason,
        };
        let link = urls
            .first()
            .and_then(Value::as_str)
            .ok_or_else(|| malformed(format!("chart {chart:?} has no urls")))?;
        self.address
            .join(link)
            .map_err(|reason| malformed(format!("chart {chart:?} is at {link:?}: {reason}")))
    }
}

fn version_of(entry: &Value) -> Option<Version> {
    entry.get("version").and_then(Value::as_str)?.parse().ok()
}

/// Returns the three newest releases.
fn newest(entries: &[Value]) -> Vec<String> {
    let mut versions: Vec<Version> = entries
        .iter()
        .filter_map(version_of)
        .filter(Version::is_release)
        .collect();
    versions.sort();
    versions.dedup();
    versions.iter().rev().take(3).map(ToString::to_string).collect()
}
