//! One process of a pod: probe, stop and exit code. It and its children are killed when dropped.

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
    /// Whether its exit code was collected.
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

    /// Its readiness probe.
    pub(super) fn probe(&self, ip: Ipv4Addr) -> Option<Probe> {
        let (port, path) = self.container.probe.clone()?;
        Some(Probe::Http(SocketAddr::new(ip.into(), port), path))
    }

    /// Waits for the exit code.
    pub(super) async fn wait(&mut self) -> i32 {
        let status = self.child.wait().await;
        self.has_ended = true;
        status.ok().and_then(|status| status.code()).unwrap_or(KILLED)
    }

    /// Stops the process: SIGTERM, then SIGKILL after the grace period.
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
        // The proxy is a child of its agent and would survive it.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

/// Probes all of them concurrently; true for an empty list.
pub(super) async fn all_succeed(probes: &[Probe]) -> bool {
    let found = join_all(probes.iter().map(Probe::succeeds)).await;
    found.into_iter().all(|found| found)
}
