//! What holds for the whole cluster: platform, images, TLS, FIPS. Takes what the rim found at start, gives plain data.

use std::collections::BTreeMap;

/// Everything that is not an object of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What kind of cluster it is.
    pub platform: Platform,
    /// Where the operator runs: releases of the whole cluster are kept there.
    pub operator_namespace: String,
    /// Images by version (`v1.29.1`), from the operator's configuration.
    pub images: BTreeMap<String, Images>,
    /// Whether the node the operator runs on is in FIPS mode.
    pub fips: bool,
    /// The cluster's TLS profile, where there is one and it is to be honoured.
    pub tls: Option<TlsProfile>,
    /// Values a distributor puts under the user's: version, then `istio` or `istiocni`.
    pub vendor_defaults: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// What kind of cluster it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Any Kubernetes.
    #[default]
    Kubernetes,
    /// `OpenShift`.
    OpenShift,
}

impl Platform {
    /// What `global.platform` says; nothing on plain Kubernetes.
    #[must_use]
    pub fn value(self) -> Option<&'static str> {
        match self {
            Self::Kubernetes => None,
            Self::OpenShift => Some("openshift"),
        }
    }

    /// The profile that applies when the user names none.
    #[must_use]
    pub fn default_profile(self) -> &'static str {
        self.value().unwrap_or("default")
    }
}

/// The images of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// The control plane.
    pub istiod: String,
    /// The sidecar.
    pub proxy: String,
    /// The network plug-in.
    pub cni: String,
    /// The node proxy.
    pub ztunnel: String,
}

/// What the cluster wants of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsProfile {
    /// Cipher suites by their IANA names, those nobody knows left out.
    pub ciphers: Vec<String>,
    /// The least version.
    pub min_version: Option<TlsVersion>,
    /// Groups for the key exchange, by any of their names.
    pub groups: Vec<String>,
}

/// A version of TLS that Envoy can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsVersion {
    /// As `MeshConfig` spells it.
    #[must_use]
    pub fn protocol(self) -> &'static str {
        match self {
            Self::V1_2 => "TLSV1_2",
            Self::V1_3 => "TLSV1_3",
        }
    }

    /// As istiod's flag spells it.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}
