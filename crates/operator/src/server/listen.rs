//! Serves connections over HTTP/1.1, with TLS if there are certificates, within limits.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mainstay_listen::{Limits, Server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{Certificates, Handler};

/// Timeout of a TLS handshake, and of reading the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum duration of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(10);
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Limits of the endpoints of the operator.
const LIMITS: Limits = Limits {
    connections: 64,
    shutdown_grace_period: Duration::from_secs(2),
};

/// Serves `handler` until stopped.
pub(super) async fn serve_connections(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    stop: watch::Receiver<bool>,
) {
    let endpoint = Endpoint {
        certificates,
        handler,
        stop: stop.clone(),
    };
    mainstay_listen::run(listener, LIMITS, endpoint, stop).await;
}

struct Endpoint {
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    stop: watch::Receiver<bool>,
}

impl Server for Endpoint {
    fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let connection = serve_connection(
            stream,
            self.certificates.clone(),
            self.handler.clone(),
            self.stop.clone(),
        );
        async {
            let _ = timeout(CONNECTION_TIMEOUT, connection).await;
        }
    }
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
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
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
