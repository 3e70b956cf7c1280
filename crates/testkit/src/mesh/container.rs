//! A process of a pod: its probe, stop and exit code. It is killed with its children when dropped.

use std::net::{Ipv4Addr, SocketAddr};

use futures::future::join_all;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{Instant, timeout_at};

use super::pod::Container;
use crate::kubelet::{KILLED, Probe};

pub(super) struct Process {
    pub(super) container: Container,
    /// Whether the exit code was collected.
    pub(super) has_ended: bool,
    child: Child,
    group: Pid,
}

impl Process {
    /// Creates a process that is the leader of its process group.
    pub(super) fn new(container: Container, child: Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            container,
            has_ended: false,
            child,
            group: Pid::from_raw(id.unwrap_or(i32::MAX)),
        }
    }

    pub(super) fn group(&self) -> i32 {
        self.group.as_raw()
    }

    /// Returns the readiness probe.
    pub(super) fn probe(&self, ip: Ipv4Addr) -> Option<Probe> {
        let (port, path) = self.container.probe.clone()?;
        Some(Probe::Http(SocketAddr::new(ip.into(), port), path))
    }

    /// Waits for the process and returns its exit code.
    pub(super) async fn wait(&mut self) -> i32 {
        let status = self.child.wait().await;
        self.has_ended = true;
        status.ok().and_then(|status| status.code()).unwrap_or(KILLED)
    }

    /// Stops the process with SIGTERM, and with SIGKILL at the deadline. Returns its exit code.
    pub(super) async fn stop(&mut self, deadline: Instant) -> i32 {
        if !self.has_ended {
            let _ = kill(self.group, Signal::SIGTERM);
        }
        if let Ok(code) = timeout_at(deadline, self.wait()).await {
            return code;
        }
        let _ = killpg(self.group, Signal::SIGKILL);
        self.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The proxy is a child process of its agent and would otherwise continue to run.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

/// Probes concurrently and reports whether all probes succeed. True for an empty list.
pub(super) async fn all_succeed(probes: &[Probe]) -> bool {
    let found = join_all(probes.iter().map(Probe::succeeds)).await;
    found.into_iter().all(|found| found)
}
