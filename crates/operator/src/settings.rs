//! What holds for the whole cluster, found at start: takes a client and what flags and files say, gives the planner's [`Settings`].

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

/// Where Kubernetes tells a pod its namespace.
pub const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Values of a distributor: version, then `istio` or `istiocni`.
pub type VendorDefaults = BTreeMap<String, BTreeMap<String, serde_json::Value>>;

/// What the distributor of this very build put under the user's values; nothing, as upstream's.
const BUILT_IN_DEFAULTS: &str = include_str!("settings/vendor_defaults.yaml");
/// How long the cluster may take for one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What flags, files and the environment say.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Where the operator runs.
    pub operator_namespace: String,
    /// What kind of cluster it is; found out unless told.
    pub platform: Option<Platform>,
    /// From the configuration file.
    pub images: ImagesByVersion,
    /// The distributor's values.
    pub vendor_defaults: VendorDefaults,
    /// Whether the node is in FIPS mode.
    pub fips: bool,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// For the planner.
    pub settings: Settings,
    /// What the cluster says of TLS, to notice when it says something else; only on `OpenShift`.
    pub tls: Option<ClusterTls>,
}

/// Why it could not be found out.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The cluster does not answer.
    #[error("the cluster cannot be reached: no answer within {} s", PATIENCE.as_secs())]
    Timeout,
    /// It cannot be asked.
    #[error("unable to detect platform")]
    Platform(#[source] Box<kube::Error>),
    /// TLS.
    #[error("unable to fetch TLS config")]
    Tls(#[from] TlsError),
    /// The distributor's file.
    #[error("failed to read vendor defaults {}", path.display())]
    VendorFile {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is in it.
    #[error("failed to read vendor defaults{}: {what}", path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    VendorDefaults {
        /// Which; none for the built-in ones.
        path: Option<PathBuf>,
        /// What is wrong.
        what: String,
    },
    /// Nobody says where we are.
    #[error(
        "can't determine namespace this operator is running in; if running outside of a pod, please set the POD_NAMESPACE environment variable"
    )]
    Namespace,
}

/// Asks the cluster what it is.
pub async fn detect(client: &Client, inputs: Inputs) -> Result<ClusterSettings, SettingsError> {
    let late = |_| SettingsError::Timeout;
    let platform = match inputs.platform {
        Some(platform) => platform,
        None => detect_platform(client).await?,
    };
    let tls = match platform {
        Platform::Kubernetes => None,
        Platform::OpenShift => Some(
            tokio::time::timeout(PATIENCE, tls::fetch(client))
                .await
                .map_err(late)??,
        ),
    };
    let profile = tls.as_ref().map(ClusterTls::for_mesh).transpose()?.flatten();
    if let Some(tls) = tls.as_ref().filter(|tls| tls.is_honoured()) {
        tell(tls);
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
    let asked = tokio::time::timeout(PATIENCE, platform::detect(client)).await;
    let answer = asked.map_err(|_| SettingsError::Timeout)?;
    let platform = answer.map_err(|error| SettingsError::Platform(Box::new(error)))?;
    tracing::info!(
        platform = platform.value().unwrap_or("kubernetes"),
        "detected platform"
    );
    Ok(platform)
}

fn tell(tls: &ClusterTls) {
    tracing::info!(
        ciphers = tls.profile.ciphers.join(","),
        least = tls.profile.min_tls_version,
        "using the cluster's TLS profile"
    );
    let unknown = tls.unknown_ciphers();
    if !unknown.is_empty() {
        tracing::info!(
            ciphers = unknown.join(","),
            "some ciphers of the TLS profile are not supported and are passed over"
        );
    }
}

/// Where the operator runs: what the environment says, else what the file says.
pub fn operator_namespace(environment: Option<String>, file: &Path) -> Result<String, SettingsError> {
    let said = environment.filter(|name| !name.is_empty());
    said.or_else(|| {
        std::fs::read_to_string(file)
            .ok()
            .map(|name| name.trim().to_owned())
    })
    .filter(|name| !name.is_empty())
    .ok_or(SettingsError::Namespace)
}

/// The distributor's values: from a file, else those of this build.
pub fn vendor_defaults(file: Option<&Path>) -> Result<VendorDefaults, SettingsError> {
    let text = match file {
        None => BUILT_IN_DEFAULTS.to_owned(),
        Some(path) => std::fs::read_to_string(path).map_err(|source| SettingsError::VendorFile {
            path: path.to_owned(),
            source,
        })?,
    };
    parse_defaults(&text).map_err(|what| SettingsError::VendorDefaults {
        path: file.map(Path::to_owned),
        what,
    })
}

fn parse_defaults(text: &str) -> Result<VendorDefaults, String> {
    let value = mainstay_yaml::parse(text, &Budget::default()).map_err(|error| error.to_string())?;
    let json = mainstay_yaml::to_json(&value).map_err(|error| error.to_string())?;
    let parsed: Option<VendorDefaults> = serde_json::from_str(&json)
        .map_err(|_| "expected versions with `istio` or `istiocni` below them".to_owned())?;
    let parsed = parsed.unwrap_or_default();
    for (version, kinds) in &parsed {
        if let Some((resource, _)) = kinds.iter().find(|(_, values)| !values.is_object()) {
            return Err(format!(
                "vendor defaults for resource '{resource}' (version '{version}') are not a map[string]any"
            ));
        }
    }
    Ok(parsed)
}

/// Whether this node is in FIPS mode, said once.
#[must_use]
pub fn fips_mode(file: &Path) -> bool {
    let enabled = fips::is_enabled(file);
    tracing::info!(file = %file.display(), enabled, "FIPS detection");
    enabled
}

#[cfg(test)]
mod tests;
