//! Registry of running pods, through which tests access their networks and processes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::namespace::NetworkNamespace;

/// Running pods by `namespace/name`.
#[derive(Clone, Debug, Default)]
pub(super) struct Registry(Arc<Mutex<BTreeMap<String, Arc<RunningPod>>>>);

/// A running pod.
#[derive(Debug)]
pub(super) struct RunningPod {
    pub(super) namespace: NetworkNamespace,
    /// Whether the kubelet is no longer informed of exits and readiness.
    pub(super) unsupervised: AtomicBool,
    processes: Mutex<BTreeMap<String, i32>>,
}

impl RunningPod {
    pub(super) fn new(namespace: NetworkNamespace) -> Arc<Self> {
        Arc::new(Self {
            namespace,
            unsupervised: AtomicBool::new(false),
            processes: Mutex::default(),
        })
    }

    /// Records the process group of a container.
    pub(super) fn add_process(&self, container: &str, process: i32) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.insert(container.to_owned(), process);
    }

    /// Kills the process group of a container.
    pub(super) fn kill(&self, container: &str) -> io::Result<()> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let process = processes.get(container).ok_or(io::ErrorKind::NotFound)?;
        Ok(killpg(Pid::from_raw(*process), Signal::SIGKILL)?)
    }

    pub(super) fn is_unsupervised(&self) -> bool {
        self.unsupervised.load(Ordering::Relaxed)
    }
}

impl Registry {
    pub(super) fn add(&self, pod: &str, running_pod: &Arc<RunningPod>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(pod.to_owned(), Arc::clone(running_pod));
    }

    pub(super) fn remove(&self, pod: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(pod);
    }

    pub(super) fn find(&self, pod: &str) -> Option<Arc<RunningPod>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(pod).cloned()
    }
}
