//! A simulated kubelet for a real API server: schedules pods and sets their status by scripts, as the
//! simulator does.
//!
//! ```text
//! watch pods, nodes ─▶ KubeletSimulation: pods, timers ─▶ bind, patch status, delete
//!                        ▲ readiness, exits          │
//!                        └──────── processes ◀───────┘   for pods with a [`PodBackend`]
//! ```
//!
//! Pods follow [`Scripts`] as in the simulator. A pod can also be run as a real process.

mod api;
mod process;
mod simulation;

use std::sync::{Arc, Mutex, PoisonError};

use mainstay_sim::script::{Script, Scripts};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, ClusterError, KUBELET};
use api::Api;
#[cfg(feature = "mesh")]
pub(crate) use process::{KILLED, NOT_STARTED, PROBE_INTERVAL, STARTUP_PROBE_INTERVAL};
pub use process::{
    KubeletChannel, PodBackend, PodLifetime, PodProcess, PodProcessError, PodProcessFuture, Probe,
};
#[cfg(feature = "mesh")]
pub(crate) use simulation::ConstantBackoff;
use simulation::KubeletSimulation;

/// Options of the kubelet.
#[derive(Clone)]
pub struct KubeletOptions {
    /// Number of nodes, which are named `node-0`, `node-1` and so on.
    pub nodes: usize,
    /// Backend for pods that are run as real processes.
    pub backend: Option<Arc<dyn PodBackend>>,
}

impl std::fmt::Debug for KubeletOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} nodes, backed: {}", self.nodes, self.backend.is_some())
    }
}

impl Default for KubeletOptions {
    /// Returns options with three nodes and no real processes.
    fn default() -> Self {
        Self {
            nodes: 3,
            backend: None,
        }
    }
}

/// A running kubelet. Dropping it stops the kubelet and the processes of its pods.
#[derive(Debug)]
pub struct Kubelet {
    scripts: Arc<Mutex<Scripts>>,
    task: JoinHandle<()>,
}

/// Errors of the kubelet.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// A client could not be created.
    #[error("cannot create a client for the kubelet")]
    Cluster(#[from] ClusterError),
    /// A node could not be created.
    #[error("cannot create node {name}")]
    Node {
        /// Name of the node.
        name: String,
        /// Error of the API server.
        source: Box<kube::Error>,
    },
}

impl Kubelet {
    /// Creates the nodes and starts the kubelet and the scheduler.
    pub async fn start(cluster: &Cluster, options: KubeletOptions) -> Result<Self, KubeletError> {
        let api = Api {
            kubelet: cluster.client_with_agent(KUBELET, "kubelet")?,
            scheduler: cluster.client_with_agent(KUBELET, "kube-scheduler")?,
        };
        for number in 0..options.nodes {
            api.make_node(number).await?;
        }
        let scripts = Arc::new(Mutex::new(Scripts::default()));
        let simulation =
            KubeletSimulation::new(api, cluster.pod_network(), Arc::clone(&scripts), options.backend);
        Ok(Self {
            scripts,
            task: tokio::spawn(simulation.run()),
        })
    }

    /// Changes the scripts. The script of a pod is selected when the pod is scheduled, so scheduled pods
    /// are not affected.
    pub fn change_scripts(&self, change: impl FnOnce(&mut Scripts)) {
        change(&mut self.scripts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets the script for pods of a workload.
    pub fn set_script(&self, namespace: &str, workload: &str, script: Script) {
        self.change_scripts(|scripts| scripts.add_workload(namespace, workload, script));
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}
