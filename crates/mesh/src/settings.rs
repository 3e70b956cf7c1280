//! Settings of the operator and the cluster: platform, images, TLS, FIPS.

use std::collections::BTreeMap;

/// Settings that are not objects of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Platform of the cluster.
    pub platform: Platform,
    /// Namespace of the operator, in which cluster-wide releases are installed.
    pub operator_namespace: String,
    /// Images by version (`v1.29.1`), from the operator's configuration.
    pub images: BTreeMap<String, Images>,
    /// Whether the node the operator runs on is in FIPS mode.
    pub fips: bool,
    /// TLS profile of the cluster, if there is one and it is enabled.
    pub tls: Option<TlsProfile>,
    /// Vendor defaults by version, then by `istio` or `istiocni`.
    pub vendor_defaults: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}

/// Platform of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Any Kubernetes distribution except `OpenShift`.
    #[default]
    Kubernetes,
    /// `OpenShift`.
    OpenShift,
}

impl Platform {
    /// Returns the value of `global.platform`, or `None` on plain Kubernetes.
    #[must_use]
    pub fn value(self) -> Option<&'static str> {
        match self {
            Self::Kubernetes => None,
            Self::OpenShift => Some("openshift"),
        }
    }

    /// Returns the profile that applies unless the user sets one.
    #[must_use]
    pub fn default_profile(self) -> &'static str {
        self.value().unwrap_or("default")
    }
}

/// The images of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    /// Image of the control plane.
    pub istiod: String,
    /// Image of the sidecar.
    pub proxy: String,
    /// Image of the CNI node agent.
    pub cni: String,
    /// Image of ztunnel.
    pub ztunnel: String,
}

/// TLS profile of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsProfile {
    /// Known cipher suites by IANA name.
    pub ciphers: Vec<String>,
    /// Minimum version.
    pub min_version: Option<TlsVersion>,
    /// Key exchange groups, by any of their names.
    pub groups: Vec<String>,
}

/// TLS versions that can be configured in Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsVersion {
    /// Returns the name in `MeshConfig`.
    #[must_use]
    pub fn protocol(self) -> &'static str {
        match self {
            Self::V1_2 => "TLSV1_2",
            Self::V1_3 => "TLSV1_3",
        }
    }

    /// Returns the name in istiod's flag `--tls-min-version`.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}
