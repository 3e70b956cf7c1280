//! Connections: takes a listener and a handler, serves until told to stop. No connection keeps another one waiting for long.

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

/// As many connections as are served at once; more wait.
const MOST_CONNECTIONS: usize = 64;
/// How long shaking hands may take, and then each request's headers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may live. A scraper makes a new one.
const LIFETIME: Duration = Duration::from_mins(10);
/// How long answers under way may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// A socket that cannot be accepted is tried again after a while: most likely there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
const MOST_HEADERS: usize = 16 << 10;

pub(super) async fn run(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (certificates, handler, stop) = (certificates.clone(), handler.clone(), stop.clone());
        connections.spawn(async move {
            let _place = place;
            let _ = timeout(LIFETIME, connection(stream, certificates, handler, stop)).await;
        });
    }
    let _ = timeout(LAST_WORDS, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn connection(
    stream: TcpStream,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    stop: watch::Receiver<bool>,
) {
    let Some(certificates) = certificates else {
        return speak(stream, handler, stop).await;
    };
    let acceptor = TlsAcceptor::from(certificates.current());
    match timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, handler, stop).await,
        // Whoever hangs up or does not trust us says so itself.
        Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client of the metrics"),
        Err(_) => tracing::debug!("a client of the metrics did not finish TLS"),
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Handler,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client that breaks off is no news.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
