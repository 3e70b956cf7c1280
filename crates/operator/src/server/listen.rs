//! Accepts and serves connections, with limits on their number and duration.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{Certificates, Handler};

/// Maximum number of concurrent connections. Further connections wait until one ends.
const MAX_CONNECTIONS: usize = 64;
/// Timeout of a TLS handshake, and of reading the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum duration of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time to wait for open connections at shutdown.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Delay after a failed accept. The most likely cause is a lack of file descriptors.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);
const MAX_HEADER_BYTES: usize = 16 << 10;

pub(super) async fn serve_connections(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! {
            permit = permits.clone().acquire_owned() => permit,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (certificates, handler, stop) = (certificates.clone(), handler.clone(), stop.clone());
        connections.spawn(async move {
            let _permit = permit;
            let _ = timeout(
                CONNECTION_TIMEOUT,
                serve_connection(stream, certificates, handler, stop),
            )
            .await;
        });
    }
    let _ = timeout(SHUTDOWN_GRACE_PERIOD, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn serve_connection(
    stream: TcpStream,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    stop: watch::Receiver<bool>,
) {
    let Some(certificates) = certificates else {
        return serve_http(stream, handler, stop).await;
    };
    let acceptor = TlsAcceptor::from(certificates.current());
    match timeout(HEADER_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve_http(stream, handler, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake of a metrics client failed"),
        Err(_) => tracing::debug!("TLS handshake of a metrics client timed out"),
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let response = handler(request);
        async move { Ok::<_, std::convert::Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // An error means that the connection was aborted, which is ignored.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
