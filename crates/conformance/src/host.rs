//! Where scenarios run: what a server and its surroundings must offer. Knows neither the simulator nor a real cluster.

use std::future::Future;
use std::sync::Arc;

use kube::Client;

use crate::hook::{Hook, HookAddress};

/// A server and what stands around it.
pub trait Host {
    /// A client of `admin` (in `system:masters`), `alice` (in `team-a`) or `bob` (in `team-b`), whose uids are their names, without retries.
    fn client(&self, user: &str) -> Client;

    /// Awaited between two tries of `UNTIL`, so that the host's clock decides how long that takes.
    fn pause(&self) -> impl Future<Output = ()>;

    /// How the pods of a workload shall behave from now on, in the words of the script; an error when nobody plays the kubelet here.
    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), String>;

    /// Makes a webhook reachable for the server: on loopback unless the server is in this process.
    fn serve_hook(&self, hook: Arc<Hook>) -> impl Future<Output = Result<HookAddress, String>> {
        crate::hook_server::serve_hook(hook)
    }
}
