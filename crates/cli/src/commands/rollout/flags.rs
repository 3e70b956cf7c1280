//! Values of flags that several commands share.

use jiff::SignedDuration;
use mainstay_api::GoDuration;
use mainstay_api::delivery::Provider;

/// Where a dry run happens.
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

/// Parses a duration such as `30s` or `5m`.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    GoDuration(text.to_owned())
        .span()
        .map_err(|error| error.to_string())
}
