//! Probes remote control planes over HTTPS.
//!
//! Users with permission to edit a webhook configuration control the request. It is therefore restricted to
//! `https://SERVICE.NAMESPACE.svc:PORT/ready`, to the CA bundle of the webhook and to addresses that a
//! Service can have. Redirects are not followed, and the body is not read.

mod address;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use mainstay_cluster::tls::BundleVerifier;
use mainstay_mesh::plan::ProbeRequest;
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use address::{Address, Resolver, SystemResolver};

use crate::{ProbeOutcome, Prober};

/// Maximum timeout of a probe in seconds, even if the annotation sets a longer one.
const MAX_TIMEOUT_SECONDS: u32 = 30;
/// Maximum size of the response headers in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// A prober that uses HTTPS.
#[derive(Clone)]
pub struct HttpsProber {
    resolver: Arc<dyn Resolver>,
}

impl HttpsProber {
    /// Creates a prober that resolves addresses with `resolver`.
    pub fn new(resolver: impl Resolver + 'static) -> Self {
        Self {
            resolver: Arc::new(resolver),
        }
    }

    /// Probes the control plane that serves a webhook.
    pub async fn probe(&self, request: &ProbeRequest) -> ProbeOutcome {
        match self.is_ready(request).await {
            Ok(ready) => ProbeOutcome {
                ready,
                error: String::new(),
            },
            Err(error) => ProbeOutcome {
                ready: false,
                error: format_error(&request.url, &error),
            },
        }
    }

    /// Sends a probe, and returns whether the response has status 200.
    pub async fn is_ready(&self, request: &ProbeRequest) -> Result<bool, ProbeError> {
        let address = Address::parse(&request.url)?;
        let config = client_config(&request.ca_bundle)?;
        let limit = Duration::from_secs(request.timeout_seconds.clamp(1, MAX_TIMEOUT_SECONDS).into());
        let response = tokio::time::timeout(limit, self.send_request(&address, config)).await;
        response.unwrap_or(Err(ProbeError::Timeout(limit)))
    }

    async fn send_request(&self, address: &Address, config: ClientConfig) -> Result<bool, ProbeError> {
        let found = self
            .resolver
            .resolve(address)
            .await
            .map_err(ProbeError::Resolve)?;
        let stream = connect_to_any(&found).await.map_err(ProbeError::Connect)?;
        let name = ServerName::try_from(address.host.clone())?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(ProbeError::Tls)?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        let request = Request::get("/ready")
            .header(http::header::HOST, format!("{}:{}", address.host, address.port))
            .body(Empty::<Bytes>::new())?;
        let response = pin!(sender.send_request(request));
        // The connection must be polled while waiting for the response, and may end first.
        let response = match select(response, pin!(connection)).await {
            Either::Left((response, _)) => response,
            Either::Right((_, response)) => response.await,
        };
        Ok(response?.status() == StatusCode::OK)
    }
}

/// Connects to the first address that accepts the connection. Returns the last error if none does.
async fn connect_to_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn client_config(bundle: &[u8]) -> Result<ClientConfig, ProbeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = BundleVerifier::from_pem(bundle).map_err(|_| ProbeError::Bundle)?;
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let custom = versions
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = custom.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl Prober for HttpsProber {
    fn probe(&self, request: ProbeRequest) -> BoxFuture<'static, ProbeOutcome> {
        let prober = self.clone();
        Box::pin(async move { HttpsProber::probe(&prober, &request).await })
    }
}

/// Formats an error in the style of Go's HTTP client.
fn format_error(url: &str, error: &ProbeError) -> String {
    match error {
        ProbeError::Bundle | ProbeError::Url => error.to_string(),
        _ => format!("Get {url:?}: {}", mainstay_gostd::error::chain(error)),
    }
}

/// Error of a probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The URL does not refer to a Service of this cluster.
    #[error("only webhooks pointing to a Service are supported")]
    Url,
    /// The bundle contains no certificate.
    #[error("failed to append CA bundle to cert pool")]
    Bundle,
    /// The host has no address.
    #[error("lookup failed")]
    Resolve(#[source] io::Error),
    /// The connection failed.
    #[error("dial failed")]
    Connect(#[source] io::Error),
    /// The TLS handshake failed.
    #[error("tls")]
    Tls(#[source] io::Error),
    /// The host is not a valid DNS name for a certificate.
    #[error("the host is not a valid DNS name")]
    Name(#[from] InvalidDnsNameError),
    /// The TLS client cannot be configured.
    #[error("tls")]
    Setup(#[from] rustls::Error),
    /// The HTTP exchange failed.
    #[error("http")]
    Http(#[from] hyper::Error),
    /// The request is invalid.
    #[error("http")]
    Request(#[from] http::Error),
    /// There was no response within this time.
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
}

#[cfg(test)]
mod tests;
