//! Real processes behind pods: takes a command and a probe, says when it is ready and when it has ended.

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

/// The making of a process, which may need to ask the cluster first.
pub type Making = Pin<Box<dyn Future<Output = Result<Backed, String>> + Send>>;

/// Decides which pods are real processes.
pub trait Backing: Send + Sync {
    /// The process behind a pod that has this address; none when its script shall do. Asked again for every start.
    fn back(&self, pod: &Value, ip: &str) -> Option<Making>;
}

/// A process to be started.
#[derive(Debug)]
pub struct Backed {
    /// How to start it.
    pub command: Command,
    /// How to find out whether it is ready.
    pub probe: Probe,
}

/// How to find out whether a process is ready.
#[derive(Clone, Debug)]
pub enum Probe {
    /// Somebody listens here.
    Tcp(SocketAddr),
    /// A read of this path is answered with 200.
    Http(SocketAddr, String),
}

/// What is told of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Ready(bool),
    Exited(i32),
}

/// A process that was started, or is about to be; dropped, it is killed.
#[derive(Debug)]
pub(super) struct Running {
    stop: Option<oneshot::Sender<Duration>>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts it; news come with `tag`.
    pub(super) fn start<T: Clone + Send + Sync + 'static>(
        making: Making,
        tag: T,
        news: mpsc::UnboundedSender<(T, News)>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let tell = |what| drop(news.send((tag.clone(), what)));
            let code = match begin(making).await {
                Ok((child, probe)) => watch(child, probe, stopped, &tell).await,
                Err(_) => NOT_STARTED,
            };
            tell(News::Exited(code));
        });
        Self {
            stop: Some(stop),
            task,
        }
    }

    /// Asks it to stop within `grace`; its exit is told as news.
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

/// As a shell says it of a command that it cannot start.
const NOT_STARTED: i32 = 127;
/// Between two probes, before and after the first success.
const EAGER: Duration = Duration::from_millis(50);
const CALM: Duration = Duration::from_secs(1);

async fn begin(making: Making) -> Result<(Child, Probe), String> {
    let mut backed = making.await?;
    let child = backed.command.kill_on_drop(true).spawn();
    Ok((child.map_err(|error| error.to_string())?, backed.probe))
}

async fn watch(
    mut child: Child,
    probe: Probe,
    mut stopped: oneshot::Receiver<Duration>,
    tell: &(dyn Fn(News) + Sync),
) -> i32 {
    let mut ready = false;
    loop {
        let look = async {
            tokio::time::sleep(if ready { CALM } else { EAGER }).await;
            probe.succeeds().await
        };
        tokio::select! {
            status = child.wait() => return status.ok().and_then(|status| status.code()).unwrap_or(KILLED),
            Ok(grace) = &mut stopped => return end(&mut child, grace).await,
            found = look => if found != ready {
                ready = found;
                tell(News::Ready(ready));
            },
        }
    }
}

/// What a process that a signal ended is said to have ended with.
const KILLED: i32 = 137;

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
    async fn succeeds(&self) -> bool {
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

/// The status code of a read: enough of HTTP for a probe.
async fn get(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.ok()?;
    std::str::from_utf8(&answer).ok()?.split(' ').nth(1)?.parse().ok()
}
