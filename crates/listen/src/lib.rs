//! Accepts TCP connections up to a limit, until stopped, and passes each connection to a [`Server`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Delay after a failed accept. The most likely cause is a lack of file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Limits of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent connections, at least 1. Further connections wait until one ends.
    pub connections: usize,
    /// Maximum time to wait for open connections at shutdown. The remaining connections are then aborted.
    pub shutdown_grace_period: Duration,
}

/// Handles the connections of a listener.
pub trait Server {
    /// Returns a task that serves one connection until it ends.
    fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static;

    /// Frees capacity. Called when a connection has to wait for another one to end, and after a failed
    /// accept. Does nothing by default.
    fn free_capacity(&self) {}
}

/// Accepts connections until `stop` is true, then closes the listener and waits for open connections. A
/// [`Server`] whose tasks should end at shutdown must observe `stop` itself.
pub async fn run(
    listener: TcpListener,
    limits: Limits,
    server: impl Server,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections.max(1)));
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let next = tokio::select! {
            next = next_connection(&listener, &permits, &server) => next,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let task = server.serve(next.stream);
        tasks.spawn(async move {
            task.await;
            drop(next.permit);
        });
    }
    drop(listener);
    let ended = async { while tasks.join_next().await.is_some() {} };
    // Dropping the tasks aborts those that remain.
    let _ = timeout(limits.shutdown_grace_period, ended).await;
}

/// An accepted connection and its permit, which counts toward the limit.
struct Accepted {
    stream: TcpStream,
    permit: Option<OwnedSemaphorePermit>,
}

async fn next_connection(listener: &TcpListener, permits: &Arc<Semaphore>, server: &impl Server) -> Accepted {
    let stream = loop {
        if let Ok((stream, _)) = listener.accept().await {
            break stream;
        }
        server.free_capacity();
        tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
    };
    if permits.available_permits() == 0 {
        server.free_capacity();
    }
    // The semaphore is never closed, so that a permit is always returned.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    Accepted { stream, permit }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Server that sends back every byte until the client closes the connection.
    #[derive(Clone)]
    struct Echo {
        pressure: watch::Sender<usize>,
    }

    impl Server for Echo {
        fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
            echo(stream)
        }

        fn free_capacity(&self) {
            self.pressure.send_modify(|count| *count += 1);
        }
    }

    async fn echo(mut stream: TcpStream) {
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte).await {
            let _ = stream.write_all(&byte).await;
        }
    }

    struct Running {
        address: SocketAddr,
        pressure: watch::Receiver<usize>,
        stop: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    async fn start(connections: usize) -> Running {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pressure, observed) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let limits = Limits {
            connections,
            shutdown_grace_period: Duration::from_millis(20),
        };
        let task = tokio::spawn(run(listener, limits, Echo { pressure }, stopped));
        Running {
            address,
            pressure: observed,
            stop,
            task,
        }
    }

    async fn exchange(stream: &mut TcpStream) {
        stream.write_all(b"a").await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"a");
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_waits_for_another_to_end() {
        let mut server = start(1).await;
        let mut first = TcpStream::connect(server.address).await.unwrap();
        exchange(&mut first).await;
        let mut second = TcpStream::connect(server.address).await.unwrap();
        server.pressure.wait_for(|count| *count == 1).await.unwrap();
        drop(first);
        exchange(&mut second).await;
    }

    #[tokio::test]
    async fn open_connections_are_aborted_after_the_grace_period() {
        let server = start(2).await;
        let mut open = TcpStream::connect(server.address).await.unwrap();
        exchange(&mut open).await;
        server.stop.send(true).unwrap();
        server.task.await.unwrap();
        assert_eq!(open.read(&mut [0]).await.unwrap_or_default(), 0);
        assert!(TcpStream::connect(server.address).await.is_err());
    }
}
