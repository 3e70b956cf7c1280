//! The environment of a scenario run. Does not depend on the simulator or a real cluster.

use std::future::Future;
use std::sync::Arc;

use kube::Client;

use crate::hook::{Hook, HookAddress};
use crate::hook_server::HookServerError;

/// A command that the host cannot run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host has no kubelet that runs scripts.
    #[error("no kubelet")]
    NoKubelet,
    /// The script of a pod is invalid.
    #[error("invalid pod behavior: {0}")]
    PodBehavior(Box<dyn std::error::Error + Send + Sync>),
    /// A webhook cannot be served.
    #[error(transparent)]
    Hook(#[from] HookServerError),
}

/// A server and its environment.
pub trait Host {
    /// A client of `admin` (in `system:masters`), `alice` (in `team-a`) or `bob` (in `team-b`), whose uids
    /// are their names, without retries.
    fn client(&self, user: &str) -> Client;

    /// Waits between two attempts of `UNTIL`, on the host's clock.
    fn pause(&self) -> impl Future<Output = ()>;

    /// Sets the script of a workload's pods; fails if the host has no kubelet.
    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), HostError>;

    /// Makes a webhook reachable for the server: on loopback unless the server is in this process.
    fn serve_hook(&self, hook: Arc<Hook>) -> impl Future<Output = Result<HookAddress, HostError>> {
        async {
            crate::hook_server::serve_hook(hook)
                .await
                .map_err(HostError::Hook)
        }
    }
}
