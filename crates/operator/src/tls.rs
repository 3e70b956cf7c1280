//! TLS profile of `OpenShift` clusters: ciphers, minimum version and groups from the `APIServer` object.
//!
//! The profile applies to the mesh and to the metrics server. As in the Sail Operator, the process exits
//! when the profile changes, and is restarted with the new one.

mod ciphers;
mod profiles;
mod server;

use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use mainstay_mesh::{TlsProfile, TlsVersion};
use serde::Deserialize;

pub use server::server_config;

/// Name of the only `APIServer` object.
const NAME: &str = "cluster";

/// TLS configuration of the cluster, with defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTls {
    /// TLS profile.
    pub profile: ProfileSpec,
    /// Adherence policy; may be empty.
    pub adherence: String,
}

/// A TLS profile in the terms of `OpenShift`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProfileSpec {
    /// OpenSSL or IANA names of ciphers.
    pub ciphers: Vec<String>,
    /// Minimum version, for example `VersionTLS12`.
    #[serde(rename = "minTLSVersion")]
    pub min_tls_version: String,
    /// Groups for the key exchange.
    pub groups: Vec<String>,
}

/// Error of reading the TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The object cannot be read.
    #[error("fetching TLS profile from APIServer: failed to get APIServer \"/cluster\"")]
    Get(#[source] Box<kube::Error>),
    /// The object cannot be decoded.
    #[error("fetching TLS profile from APIServer: cannot decode the object")]
    Decode(#[source] serde_json::Error),
    /// The profile type is `Custom`, but the custom profile is missing.
    #[error("fetching TLS profile from APIServer: custom TLS profile specified but Custom field is nil")]
    NoCustom,
    /// The TLS version is unknown.
    #[error("unknown tls version {0:?}")]
    Version(String),
}

/// Returns the API resource of `APIServer`s.
#[must_use]
pub fn api_resource() -> ApiResource {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "APIServer");
    ApiResource::from_gvk_with_plural(&kind, "apiservers")
}

/// Reads the TLS configuration of the cluster.
pub async fn fetch(client: &Client) -> Result<ClusterTls, TlsError> {
    let api: kube::Api<DynamicObject> = kube::Api::all_with(client.clone(), &api_resource());
    let object = api
        .get(NAME)
        .await
        .map_err(|error| TlsError::Get(Box::new(error)))?;
    ClusterTls::from_object(&object.data)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ApiServer {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    tls_adherence: String,
    tls_security_profile: Option<SecurityProfile>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SecurityProfile {
    #[serde(rename = "type")]
    kind: String,
    custom: Option<ProfileSpec>,
}

impl ClusterTls {
    /// Reads the TLS configuration from an `APIServer` object.
    pub fn from_object(object: &serde_json::Value) -> Result<Self, TlsError> {
        let object = ApiServer::deserialize(object).map_err(TlsError::Decode)?;
        Ok(Self {
            profile: profile_spec(object.spec.tls_security_profile)?,
            adherence: object.spec.tls_adherence,
        })
    }

    /// Whether the adherence policy requires the profile to be honored. An unknown policy counts as strict.
    #[must_use]
    pub fn is_honored(&self) -> bool {
        !matches!(self.adherence.as_str(), "" | "LegacyAdheringComponentsOnly")
    }

    /// Returns the TLS profile for the mesh, or `None` if the profile is not honored.
    pub fn mesh_profile(&self) -> Result<Option<TlsProfile>, TlsError> {
        if !self.is_honored() {
            return Ok(None);
        }
        Ok(Some(TlsProfile {
            ciphers: self
                .profile
                .ciphers
                .iter()
                .filter_map(|name| ciphers::iana_name(name))
                .map(str::to_owned)
                .collect(),
            min_version: self.min_version()?,
            groups: self.profile.groups.clone(),
        }))
    }

    /// Returns the ciphers of the profile that are not supported.
    #[must_use]
    pub fn unknown_ciphers(&self) -> Vec<&str> {
        let all = self.profile.ciphers.iter().map(String::as_str);
        all.filter(|name| ciphers::iana_name(name).is_none()).collect()
    }

    /// Returns the minimum version for the mesh. Returns `None` for versions below 1.2, because Envoy
    /// cannot be configured with them.
    fn min_version(&self) -> Result<Option<TlsVersion>, TlsError> {
        match self.profile.min_tls_version.as_str() {
            "VersionTLS10" | "VersionTLS11" => Ok(None),
            "" | "VersionTLS12" => Ok(Some(TlsVersion::V1_2)),
            "VersionTLS13" => Ok(Some(TlsVersion::V1_3)),
            other => Err(TlsError::Version(other.to_owned())),
        }
    }

    /// Returns the reason if `self`, the configuration at start, is outdated by `now`, otherwise `None`.
    #[must_use]
    pub fn outdated_by(&self, now: &Self) -> Option<&'static str> {
        if self.adherence != now.adherence {
            return Some("TLS adherence policy has changed, initiating shutdown to reload configuration");
        }
        let changed = self.profile != now.profile && self.is_honored();
        changed.then_some("TLS profile has changed, initiating shutdown to reload configuration")
    }
}

fn profile_spec(profile: Option<SecurityProfile>) -> Result<ProfileSpec, TlsError> {
    match profile {
        Some(profile) if profile.kind == "Custom" => profile.custom.ok_or(TlsError::NoCustom),
        Some(profile) => Ok(profiles::profile_by_name(&profile.kind)),
        None => Ok(profiles::profile_by_name("")),
    }
}

/// Waits until the TLS configuration makes `start` outdated, and returns the reason.
pub async fn wait_for_change(client: Client, start: ClusterTls) -> &'static str {
    use futures::TryStreamExt as _;
    use kube::runtime::{WatchStreamExt as _, watcher};
    let api: kube::Api<DynamicObject> = kube::Api::all_with(client, &api_resource());
    let only = watcher::Config::default().fields("metadata.name=cluster");
    let objects = watcher(api, only).default_backoff().applied_objects();
    futures::pin_mut!(objects);
    loop {
        match objects.try_next().await {
            Ok(Some(object)) => {
                let now = ClusterTls::from_object(&object.data).ok();
                if let Some(why) = now.and_then(|now| start.outdated_by(&now)) {
                    return why;
                }
            }
            // The watcher retries automatically.
            Err(error) => tracing::warn!(error = %error, "cannot watch the cluster's TLS profile"),
            Ok(None) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
