//! Real processes behind pods: command, readiness probe and exit code.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// A process that is being created, which may need API calls first.
pub type PodProcessFuture = Pin<Box<dyn Future<Output = Result<PodProcess, String>> + Send>>;

/// Decides which pods are real processes.
pub trait PodBackend: Send + Sync {
    /// Returns the process for a pod with this address, or `None` if its script applies. Called for every
    /// start.
    fn back(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture>;
}

/// A process behind a pod.
pub struct PodProcess(Box<dyn FnOnce(KubeletChannel) -> PodLifetime + Send>);

/// The lifetime of a pod's process; resolves to its exit code.
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

    /// Waits until the pod must stop; returns the grace period.
    pub async fn stopped(&mut self) -> Duration {
        match (&mut self.stop).await {
            Ok(grace) => grace,
            // The kubelet is gone, and this future is dropped with it.
            Err(_) => std::future::pending().await,
        }
    }
}

impl PodProcess {
    /// A process that is started immediately.
    #[must_use]
    pub fn process(command: Command, probe: Probe) -> Self {
        Self::custom(|line| Box::pin(run(command, probe, line)))
    }

    /// A custom lifetime.
    #[must_use]
    pub fn custom(live: impl FnOnce(KubeletChannel) -> PodLifetime + Send + 'static) -> Self {
        Self(Box::new(live))
    }
}

/// Readiness probes.
#[derive(Clone, Debug)]
pub enum Probe {
    /// The port accepts connections.
    Tcp(SocketAddr),
    /// A GET of this path returns 200.
    Http(SocketAddr, String),
}

/// Events of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessEvent {
    Ready(bool),
    Exited(i32),
}

/// A started process; killed when dropped.
#[derive(Debug)]
pub(super) struct Running {
    stop: Option<oneshot::Sender<Duration>>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts the process; its events are sent with `tag`.
    pub(super) fn start<T: Clone + Send + Sync + 'static>(
        making: PodProcessFuture,
        tag: T,
        news: mpsc::UnboundedSender<(T, ProcessEvent)>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let (sender, id) = (news.clone(), tag.clone());
            let line = KubeletChannel {
                stop: stopped,
                ready: Box::new(move |ready| drop(sender.send((id.clone(), ProcessEvent::Ready(ready))))),
            };
            let code = match making.await {
                Ok(backed) => (backed.0)(line).await,
                Err(_) => NOT_STARTED,
            };
            let _ = news.send((tag, ProcessEvent::Exited(code)));
        });
        Self {
            stop: Some(stop),
            task,
        }
    }

    /// Requests a stop within `grace`; its exit is sent as an event.
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
/// Probe intervals before and after the first success.
pub(crate) const EAGER: Duration = Duration::from_millis(50);
pub(crate) const CALM: Duration = Duration::from_secs(1);

async fn run(mut command: Command, probe: Probe, mut line: KubeletChannel) -> i32 {
    let Ok(mut child) = command.kill_on_drop(true).spawn() else {
        return NOT_STARTED;
    };
    let mut ready = false;
    loop {
        let look = async {
            tokio::time::sleep(if ready { CALM } else { EAGER }).await;
            probe.succeeds().await
        };
        tokio::select! {
            status = child.wait() => return status.ok().and_then(|status| status.code()).unwrap_or(KILLED),
            grace = line.stopped() => return end(&mut child, grace).await,
            found = look => if found != ready {
                ready = found;
                line.set_ready(ready);
            },
        }
    }
}

/// Exit code of a process ended by a signal.
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
            Self::Tcp(address) => timeout(CALM, TcpStream::connect(address))
                .await
                .is_ok_and(|stream| stream.is_ok()),
            Self::Http(address, path) => timeout(CALM, get(*address, path))
                .await
                .is_ok_and(|code| code.is_some_and(|code| code == 200)),
        }
    }
}

/// The status code of a GET: enough HTTP for a probe.
async fn get(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // Envoy does not speak 1.0.
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
