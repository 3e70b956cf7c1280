//! Runs pods as real processes: command, readiness probe and exit code.
#![allow(clippy::print_stderr, reason = "the output is the log of a pod")]

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::peer::PeerError;

/// Future that creates a pod's process. It may call the API first.
pub type PodProcessFuture = Pin<Box<dyn Future<Output = Result<PodProcess, PodProcessError>> + Send>>;

/// Error of creating a pod's process.
#[derive(Debug, thiserror::Error)]
pub enum PodProcessError {
    /// The pod lacks a field or part that the process needs.
    #[error("the pod has no {0}")]
    Missing(&'static str),
    /// The address of the pod or of the server is invalid.
    #[error("invalid address {0:?}")]
    Address(String),
    /// An init container failed.
    #[error("an init container ended with {0}")]
    InitContainer(ExitStatus),
    /// The files of the pod cannot be written.
    #[error("cannot write the files of the pod")]
    Files(#[from] io::Error),
    /// The token of the service account cannot be requested.
    #[error("cannot request a token of the service account")]
    Token(#[from] kube::Error),
    /// The binary is missing.
    #[error("the binary of the container is not available")]
    Binary(#[from] PeerError),
}

/// Selects the pods that are run as real processes.
pub trait PodBackend: Send + Sync {
    /// Returns the process of a pod with this address, or `None` if the pod follows its script. Called for
    /// every start of the container.
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture>;
}

/// The process of a pod.
pub struct PodProcess(Box<dyn FnOnce(KubeletChannel) -> PodLifetime + Send>);

/// Lifetime of a pod's process. Resolves to the exit code.
pub type PodLifetime = Pin<Box<dyn Future<Output = i32> + Send>>;

/// Channel between a pod's process and the kubelet.
pub struct KubeletChannel {
    stop: oneshot::Receiver<Duration>,
    ready: Box<dyn Fn(bool) + Send + Sync>,
}

impl KubeletChannel {
    /// Reports whether the pod is ready.
    pub fn set_ready(&self, ready: bool) {
        (self.ready)(ready);
    }

    /// Waits until the pod must stop, and returns the grace period.
    pub async fn stopped(&mut self) -> Duration {
        match (&mut self.stop).await {
            Ok(grace) => grace,
            // The kubelet was dropped, so this future will be dropped as well.
            Err(_) => std::future::pending().await,
        }
    }
}

impl PodProcess {
    /// Creates a pod process that runs a command.
    #[must_use]
    pub fn process(command: Command, probe: Probe) -> Self {
        Self::custom(|channel| Box::pin(run(command, probe, channel)))
    }

    /// Creates a pod process with a custom lifetime.
    #[must_use]
    pub fn custom(live: impl FnOnce(KubeletChannel) -> PodLifetime + Send + 'static) -> Self {
        Self(Box::new(live))
    }
}

/// Readiness probe.
#[derive(Clone, Debug)]
pub enum Probe {
    /// Succeeds if the port accepts connections.
    Tcp(SocketAddr),
    /// Succeeds if a GET request of this path returns 200.
    Http(SocketAddr, String),
}

/// Event of a pod's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessEvent {
    Ready(bool),
    Exited(i32),
}

/// A started process. It is killed when dropped.
#[derive(Debug)]
pub(super) struct Running {
    stop: Option<oneshot::Sender<Duration>>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts the process. Its events are sent together with `tag`.
    pub(super) fn start<T: Clone + Send + Sync + 'static>(
        process: PodProcessFuture,
        tag: T,
        events: mpsc::UnboundedSender<(T, ProcessEvent)>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let (sender, id) = (events.clone(), tag.clone());
            let channel = KubeletChannel {
                stop: stopped,
                ready: Box::new(move |ready| drop(sender.send((id.clone(), ProcessEvent::Ready(ready))))),
            };
            let code = match process.await {
                Ok(backed) => (backed.0)(channel).await,
                Err(error) => {
                    eprintln!(
                        "a pod's process was not started: {}",
                        mainstay_gostd::error::chain(&error)
                    );
                    NOT_STARTED
                }
            };
            let _ = events.send((tag, ProcessEvent::Exited(code)));
        });
        Self {
            stop: Some(stop),
            task,
        }
    }

    /// Requests that the process stops within `grace`. Its exit is sent as an event.
    pub(super) fn stop(&mut self, grace: Duration) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(grace);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Exit code of a shell for a command that cannot be started.
pub(crate) const NOT_STARTED: i32 = 127;
/// Probe interval before the first success.
pub(crate) const STARTUP_PROBE_INTERVAL: Duration = Duration::from_millis(50);
/// Probe interval after the first success.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

async fn run(mut command: Command, probe: Probe, mut channel: KubeletChannel) -> i32 {
    let Ok(mut child) = command.kill_on_drop(true).spawn() else {
        return NOT_STARTED;
    };
    let mut ready = false;
    loop {
        let next_probe = async {
            tokio::time::sleep(if ready {
                PROBE_INTERVAL
            } else {
                STARTUP_PROBE_INTERVAL
            })
            .await;
            probe.succeeds().await
        };
        tokio::select! {
            status = child.wait() => return status.ok().and_then(|status| status.code()).unwrap_or(KILLED),
            grace = channel.stopped() => return end(&mut child, grace).await,
            found = next_probe => if found != ready {
                ready = found;
                channel.set_ready(ready);
            },
        }
    }
}

/// Exit code of a process that was ended by a signal.
pub(crate) const KILLED: i32 = 137;

async fn end(child: &mut Child, grace: Duration) -> i32 {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    if let Ok(status) = timeout(grace, child.wait()).await {
        return status.ok().and_then(|status| status.code()).unwrap_or(KILLED);
    }
    let _ = child.kill().await;
    KILLED
}

impl Probe {
    pub(crate) async fn succeeds(&self) -> bool {
        match self {
            Self::Tcp(address) => timeout(PROBE_INTERVAL, TcpStream::connect(address))
                .await
                .is_ok_and(|stream| stream.is_ok()),
            Self::Http(address, path) => timeout(PROBE_INTERVAL, get(*address, path))
                .await
                .is_ok_and(|code| code.is_some_and(|code| code == 200)),
        }
    }
}

/// Sends a minimal GET request and returns the status code.
async fn get(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // Envoy does not support HTTP/1.0.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = [0; 12];
    stream.read_exact(&mut response).await.ok()?;
    std::str::from_utf8(&response)
        .ok()?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()
}
