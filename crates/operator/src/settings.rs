//! Detects the cluster-wide [`Settings`] of the planner at start from flags, files and the API.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use mainstay_mesh::{Platform, Settings};
use mainstay_yaml::Budget;

use crate::config::ImagesByVersion;
use crate::tls::{self, ClusterTls, TlsError};
use crate::{fips, platform};

/// File that contains the namespace of the pod.
pub const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Default values of a vendor by version and resource (`istio` or `istiocni`).
pub type VendorDefaults = BTreeMap<String, BTreeMap<String, serde_json::Value>>;

/// Vendor defaults of this build. They are empty, like those of the Sail Operator.
const BUILT_IN_DEFAULTS: &str = include_str!("settings/vendor_defaults.yaml");
/// Timeout of an API call during detection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Input of the detection from flags, files and the environment.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Namespace of the operator.
    pub operator_namespace: String,
    /// Platform; `None` to detect it.
    pub platform: Option<Platform>,
    /// Images from the configuration file.
    pub images: ImagesByVersion,
    /// Vendor defaults.
    pub vendor_defaults: VendorDefaults,
    /// Whether the node is in FIPS mode.
    pub fips: bool,
}

/// Detected settings of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Settings of the planner.
    pub settings: Settings,
    /// TLS configuration of the cluster at start, to detect later changes; `None` except on `OpenShift`.
    pub tls: Option<ClusterTls>,
}

/// Error of detecting the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The API server does not respond.
    #[error("the cluster cannot be reached: no response within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// The platform cannot be detected.
    #[error("unable to detect platform")]
    Platform(#[source] Box<kube::Error>),
    /// The TLS configuration cannot be read.
    #[error("unable to fetch TLS config")]
    Tls(#[from] TlsError),
    /// The file with vendor defaults cannot be read.
    #[error("failed to read vendor defaults {}", path.display())]
    VendorFile {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The vendor defaults are invalid.
    #[error("failed to read vendor defaults{}: {problem}", path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    VendorDefaults {
        /// Path of the file; `None` for the defaults of this build.
        path: Option<PathBuf>,
        /// Description of the problem.
        problem: VendorDefaultsError,
    },
    /// The namespace of the operator is unknown.
    #[error(
        "can't determine namespace this operator is running in; if running outside of a pod, please set the POD_NAMESPACE environment variable"
    )]
    Namespace,
}

/// Error of parsing vendor defaults.
#[derive(Debug, thiserror::Error)]
pub enum VendorDefaultsError {
    /// The text is not valid YAML.
    #[error("{0}")]
    Yaml(String),
    /// The text does not map versions to resources.
    #[error("expected versions with `istio` or `istiocni` below them")]
    Shape,
    /// The values of a resource are not a map.
    #[error("vendor defaults for resource '{resource}' (version '{version}') are not a map[string]any")]
    NotAMap {
        /// Name of the resource: `istio` or `istiocni`.
        resource: String,
        /// Istio version of the resource.
        version: String,
    },
}

/// Detects platform and TLS configuration of the cluster.
pub async fn detect(client: &Client, inputs: Inputs) -> Result<ClusterSettings, SettingsError> {
    let timed_out = |_| SettingsError::Timeout;
    let platform = match inputs.platform {
        Some(platform) => platform,
        None => detect_platform(client).await?,
    };
    let tls = match platform {
        Platform::Kubernetes => None,
        Platform::OpenShift => Some(
            tokio::time::timeout(REQUEST_TIMEOUT, tls::fetch(client))
                .await
                .map_err(timed_out)??,
        ),
    };
    let profile = tls.as_ref().map(ClusterTls::mesh_profile).transpose()?.flatten();
    if let Some(tls) = tls.as_ref().filter(|tls| tls.is_honored()) {
        log_profile(tls);
    }
    let settings = Settings {
        platform,
        operator_namespace: inputs.operator_namespace,
        images: inputs.images,
        fips: inputs.fips,
        tls: profile,
        vendor_defaults: inputs.vendor_defaults,
    };
    Ok(ClusterSettings { settings, tls })
}

async fn detect_platform(client: &Client) -> Result<Platform, SettingsError> {
    let detected = tokio::time::timeout(REQUEST_TIMEOUT, platform::detect(client)).await;
    let response = detected.map_err(|_| SettingsError::Timeout)?;
    let platform = response.map_err(|error| SettingsError::Platform(Box::new(error)))?;
    tracing::info!(
        platform = platform.value().unwrap_or("kubernetes"),
        "detected platform"
    );
    Ok(platform)
}

fn log_profile(tls: &ClusterTls) {
    tracing::info!(
        ciphers = tls.profile.ciphers.join(","),
        minVersion = tls.profile.min_tls_version,
        "using the cluster's TLS profile"
    );
    let unknown = tls.unknown_ciphers();
    if !unknown.is_empty() {
        tracing::info!(
            ciphers = unknown.join(","),
            "ignoring unsupported ciphers of the TLS profile"
        );
    }
}

/// Returns the namespace of the operator from the environment, or from the file if it is not set there.
pub fn operator_namespace(environment: Option<String>, file: &Path) -> Result<String, SettingsError> {
    let named = environment.filter(|name| !name.is_empty());
    named
        .or_else(|| {
            std::fs::read_to_string(file)
                .ok()
                .map(|name| name.trim().to_owned())
        })
        .filter(|name| !name.is_empty())
        .ok_or(SettingsError::Namespace)
}

/// Returns the vendor defaults from a file, or those of this build without a file.
pub fn vendor_defaults(file: Option<&Path>) -> Result<VendorDefaults, SettingsError> {
    let text = match file {
        None => BUILT_IN_DEFAULTS.to_owned(),
        Some(path) => std::fs::read_to_string(path).map_err(|source| SettingsError::VendorFile {
            path: path.to_owned(),
            source,
        })?,
    };
    parse_defaults(&text).map_err(|problem| SettingsError::VendorDefaults {
        path: file.map(Path::to_owned),
        problem,
    })
}

fn parse_defaults(text: &str) -> Result<VendorDefaults, VendorDefaultsError> {
    let value = mainstay_yaml::parse(text, &Budget::default())
        .map_err(|error| VendorDefaultsError::Yaml(error.to_string()))?;
    let json =
        mainstay_yaml::to_json(&value).map_err(|error| VendorDefaultsError::Yaml(error.to_string()))?;
    let parsed: Option<VendorDefaults> =
        serde_json::from_str(&json).map_err(|_| VendorDefaultsError::Shape)?;
    let parsed = parsed.unwrap_or_default();
    for (version, kinds) in &parsed {
        if let Some((resource, _)) = kinds.iter().find(|(_, values)| !values.is_object()) {
            return Err(VendorDefaultsError::NotAMap {
                resource: resource.clone(),
                version: version.clone(),
            });
        }
    }
    Ok(parsed)
}

/// Detects whether this node is in FIPS mode, and logs the result.
#[must_use]
pub fn fips_mode(file: &Path) -> bool {
    let enabled = fips::is_enabled(file);
    tracing::info!(file = %file.display(), enabled, "FIPS detection");
    enabled
}

#[cfg(test)]
mod tests;
