//! The environment in which a scenario runs. Independent of the simulator and of real clusters.

use std::future::Future;
use std::sync::Arc;

use kube::Client;

use crate::hook::{Hook, HookAddress};
use crate::hook_server::HookServerError;

/// Error of a command that the host cannot run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host has no kubelet that runs scripts.
    #[error("the host has no kubelet that runs scripts")]
    NoKubelet,
    /// The script of a pod is invalid.
    #[error("invalid pod behavior: {0}")]
    PodBehavior(Box<dyn std::error::Error + Send + Sync>),
    /// A webhook cannot be served.
    #[error(transparent)]
    Hook(#[from] HookServerError),
}

/// An API server and its environment.
pub trait Host {
    /// Returns a client for `admin` (in `system:masters`), `alice` (in `team-a`) or `bob` (in `team-b`).
    /// The uid of a user equals the name. The client does not retry.
    fn client(&self, user: &str) -> Client;

    /// Waits between two attempts of `UNTIL`, in the host's time.
    fn pause(&self) -> impl Future<Output = ()>;

    /// Whether controllers and caches of the server run concurrently with the script, so that a response may
    /// show a state between two others.
    fn is_concurrent(&self) -> bool {
        false
    }

    /// Sets the script of a workload's pods. Fails if the host has no kubelet.
    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), HostError>;

    /// Makes a webhook reachable for the API server. The webhook is served on loopback, unless the API
    /// server runs in this process.
    fn serve_hook(&self, hook: Arc<Hook>) -> impl Future<Output = Result<HookAddress, HostError>> {
        async {
            crate::hook_server::serve_hook(hook)
                .await
                .map_err(HostError::Hook)
        }
    }
}
