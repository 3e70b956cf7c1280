//! Running pods: access to their networks and processes for tests.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::namespace::NetworkNamespace;

/// Running pods by `namespace/name`.
#[derive(Clone, Debug, Default)]
pub(super) struct Registry(Arc<Mutex<BTreeMap<String, Arc<Resident>>>>);

/// A running pod.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) namespace: NetworkNamespace,
    /// Whether exits and readiness are ignored.
    pub(super) neglected: AtomicBool,
    processes: Mutex<BTreeMap<String, i32>>,
}

impl Resident {
    pub(super) fn new(namespace: NetworkNamespace) -> Arc<Self> {
        Arc::new(Self {
            namespace,
            neglected: AtomicBool::new(false),
            processes: Mutex::default(),
        })
    }

    /// A container's process group.
    pub(super) fn note(&self, container: &str, process: i32) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.insert(container.to_owned(), process);
    }

    /// Kills a container.
    pub(super) fn kill(&self, container: &str) -> io::Result<()> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let process = processes.get(container).ok_or(io::ErrorKind::NotFound)?;
        Ok(killpg(Pid::from_raw(*process), Signal::SIGKILL)?)
    }

    pub(super) fn is_neglected(&self) -> bool {
        self.neglected.load(Ordering::Relaxed)
    }
}

impl Registry {
    pub(super) fn add(&self, pod: &str, resident: &Arc<Resident>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(pod.to_owned(), Arc::clone(resident));
    }

    pub(super) fn remove(&self, pod: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(pod);
    }

    pub(super) fn find(&self, pod: &str) -> Option<Arc<Resident>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(pod).cloned()
    }
}
