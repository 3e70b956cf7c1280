//! One process of a pod: takes what was started, gives its probe, its end and its exit code. Dropped, it and its children are killed.

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
    /// Whether somebody has waited for its end already.
    pub(super) has_ended: bool,
    child: Child,
    group: Pid,
}

impl Process {
    /// It leads a group of its own.
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

    /// How to find out whether it is ready.
    pub(super) fn probe(&self, ip: Ipv4Addr) -> Option<Probe> {
        let (port, path) = self.container.probe.clone()?;
        Some(Probe::Http(SocketAddr::new(ip.into(), port), path))
    }

    /// Its exit code, once it has ended.
    pub(super) async fn wait(&mut self) -> i32 {
        let status = self.child.wait().await;
        self.has_ended = true;
        status.ok().and_then(|status| status.code()).unwrap_or(KILLED)
    }

    /// Asks it to end, and ends it when it has not by then.
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
        // The proxy is a child of its agent and would outlive it.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

/// All at once; true where there are none.
pub(super) async fn all_succeed(probes: &[Probe]) -> bool {
    let found = join_all(probes.iter().map(Probe::succeeds)).await;
    found.into_iter().all(|found| found)
}
