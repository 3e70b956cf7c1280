//! Values of flags that several commands share.

use mainstay_api::delivery::Provider;

/// Mode of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Without a cluster
    Client,
    /// On the API server, which stores nothing
    Server,
}

/// Provider of routes in clusters that are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AssumedProvider {
    /// Istio `VirtualService`
    Istio,
    /// Gateway API `HTTPRoute`
    Gateway,
    /// Kubernetes Ingress
    Ingress,
}

impl From<AssumedProvider> for Provider {
    fn from(provider: AssumedProvider) -> Self {
        match provider {
            AssumedProvider::Istio => Self::Istio,
            AssumedProvider::Gateway => Self::GatewayApi,
            AssumedProvider::Ingress => Self::Ingress,
        }
    }
}
