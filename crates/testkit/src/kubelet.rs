//! A simulated kubelet for a real API server: schedules pods and sets their status by scripts, as the
//! simulator does.
//!
//! ```text
//! watch pods, nodes ─▶ KubeletSimulation: pods, timers ─▶ bind, patch status, delete
//!                        ▲ readiness, exits          │
//!                        └──────── processes ◀───────┘   for pods with a [`PodBackend`]
//! ```
//!
//! It also schedules pods. Pods follow [`Scripts`], the same as in the simulator; a pod can be a real process
//! instead.

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
    /// Number of nodes, called `node-0`, `node-1` and so on.
    pub nodes: usize,
    /// Backend for pods that are real processes.
    pub backing: Option<Arc<dyn PodBackend>>,
}

impl std::fmt::Debug for KubeletOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} nodes, backed: {}", self.nodes, self.backing.is_some())
    }
}

impl Default for KubeletOptions {
    /// Three nodes, no real processes.
    fn default() -> Self {
        Self {
            nodes: 3,
            backing: None,
        }
    }
}

/// A running kubelet; it and the processes of its pods end when dropped.
#[derive(Debug)]
pub struct Kubelet {
    scripts: Arc<Mutex<Scripts>>,
    task: JoinHandle<()>,
}

/// Errors of the kubelet.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// A client could not be created.
    #[error("the kubelet has no client")]
    Cluster(#[from] ClusterError),
    /// A node could not be created.
    #[error("making the node {name}")]
    Node {
        /// The name.
        name: String,
        /// The server's error.
        source: Box<kube::Error>,
    },
}

impl Kubelet {
    /// Creates the nodes and starts the kubelet.
    pub async fn start(cluster: &Cluster, options: KubeletOptions) -> Result<Self, KubeletError> {
        let api = Api {
            kubelet: cluster.client_with_agent(KUBELET, "kubelet")?,
            scheduler: cluster.client_with_agent(KUBELET, "kube-scheduler")?,
        };
        for number in 0..options.nodes {
            api.make_node(number).await?;
        }
        let scripts = Arc::new(Mutex::new(Scripts::default()));
        let play = KubeletSimulation::new(api, cluster.pod_network(), Arc::clone(&scripts), options.backing);
        Ok(Self {
            scripts,
            task: tokio::spawn(play.run()),
        })
    }

    /// Changes the scripts; a pod's script is selected when it is scheduled.
    pub fn change_scripts(&self, change: impl FnOnce(&mut Scripts)) {
        change(&mut self.scripts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets the script of a workload's pods.
    pub fn set_script(&self, namespace: &str, workload: &str, script: Script) {
        self.change_scripts(|scripts| scripts.add_workload(namespace, workload, script));
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}
