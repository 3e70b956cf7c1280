//! Serves a [`Hook`] over HTTPS on loopback with an ephemeral certificate.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mainstay_listen::{Limits, Server};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::hook::{Hook, HookAddress, HookReply};

/// Open connections are aborted when the server stops.
const LIMITS: Limits = Limits {
    connections: 64,
    shutdown_grace_period: Duration::ZERO,
};

/// Error of serving a webhook.
#[derive(Debug, thiserror::Error)]
pub enum HookServerError {
    /// The certificate cannot be generated.
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    /// The key is not supported.
    #[error("invalid key: {0}")]
    Key(&'static str),
    /// The TLS configuration is invalid.
    #[error(transparent)]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// No port could be opened.
    #[error(transparent)]
    Listen(#[from] std::io::Error),
}

/// Serves a webhook on a free port of loopback until its address is dropped.
pub async fn serve_hook(hook: Arc<Hook>) -> Result<HookAddress, HookServerError> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(HookServerError::Key)?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let url = format!("https://127.0.0.1:{port}/{}", hook.name);
    let ca = STANDARD.encode(made.cert.pem());
    if hook.is_unreachable() {
        // The port was free when it was reserved. The listener is dropped, so connections to it fail.
        return Ok(HookAddress {
            url,
            ca,
            guard: Box::new(()),
        });
    }
    let acceptor = TlsAcceptor::from(Arc::new(config));
    // The server stops when the guard is dropped.
    let (guard, stopped) = watch::channel(false);
    tokio::spawn(mainstay_listen::run(
        listener,
        LIMITS,
        HookServer { acceptor, hook },
        stopped,
    ));
    Ok(HookAddress {
        url,
        ca,
        guard: Box::new(guard),
    })
}

struct HookServer {
    acceptor: TlsAcceptor,
    hook: Arc<Hook>,
}

impl Server for HookServer {
    fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        serve_connection(stream, self.acceptor.clone(), Arc::clone(&self.hook))
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, hook: Arc<Hook>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| respond(request, Arc::clone(&hook)));
    // Errors are ignored: an aborted connection affects only its own request.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: Request<Incoming>, hook: Arc<Hook>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let review = serde_json::from_slice(&body).unwrap_or_default();
    let (code, text) = match hook.respond(&review) {
        HookReply::Response(code, text) => (code, text),
        HookReply::NoResponse | HookReply::Unreachable => std::future::pending().await,
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}
