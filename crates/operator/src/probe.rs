//! Whether a remote control plane is ready: takes a question, asks over HTTPS, gives yes, no, or why it could not be asked.
//!
//! Whoever may edit a webhook configuration decides what is asked, so little is possible: only `https://SERVICE.NAMESPACE.svc:PORT/ready`,
//! only with the authority that stands there, never an address that no Service has, no redirect, no body read.

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
use mainstay_mesh::plan::ProbeRequest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use address::{Address, Resolver, SystemResolver};

use crate::Prober;

/// Nobody waits longer, whatever an annotation says.
const LONGEST: u32 = 30;
/// As many bytes of headers as are read.
const MOST_HEADERS: usize = 16 << 10;

/// Asks over HTTPS.
#[derive(Clone)]
pub struct HttpsProber {
    resolver: Arc<dyn Resolver>,
}

impl HttpsProber {
    /// Asks the addresses that `resolver` finds.
    pub fn new(resolver: impl Resolver + 'static) -> Self {
        Self {
            resolver: Arc::new(resolver),
        }
    }

    /// Whether it is ready, and why it could not be asked; the latter is empty for any answer.
    pub async fn probe(&self, request: &ProbeRequest) -> (bool, String) {
        match self.ask(request).await {
            Ok(ready) => (ready, String::new()),
            Err(error) => (false, told(&request.url, &error)),
        }
    }

    /// Whether it is ready: whether it answers with 200.
    pub async fn ask(&self, request: &ProbeRequest) -> Result<bool, ProbeError> {
        let address = Address::parse(&request.url)?;
        let trust = trust(&request.ca_bundle)?;
        let limit = Duration::from_secs(request.timeout_seconds.clamp(1, LONGEST).into());
        let answer = tokio::time::timeout(limit, self.get(&address, trust)).await;
        answer.unwrap_or(Err(ProbeError::Late(limit)))
    }

    async fn get(&self, address: &Address, trust: ClientConfig) -> Result<bool, ProbeError> {
        let found = self
            .resolver
            .resolve(address)
            .await
            .map_err(ProbeError::Resolve)?;
        let stream = dial(&found).await.map_err(ProbeError::Connect)?;
        let name = ServerName::try_from(address.host.clone())?;
        let connector = TlsConnector::from(Arc::new(trust));
        let stream = connector.connect(name, stream).await.map_err(ProbeError::Tls)?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MOST_HEADERS)
            .handshake(TokioIo::new(stream))
            .await?;
        let question = Request::get("/ready")
            .header(http::header::HOST, format!("{}:{}", address.host, address.port))
            .body(Empty::<Bytes>::new())?;
        let answer = pin!(sender.send_request(question));
        // The connection does the work while the answer is awaited, and may end first; both end here.
        let answer = match select(answer, pin!(connection)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, answer)) => answer.await,
        };
        Ok(answer?.status() == StatusCode::OK)
    }
}

/// The first address that answers.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn trust(bundle: &[u8]) -> Result<ClientConfig, ProbeError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle).flatten() {
        // One that is not understood counts as absent, as in Go.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(ProbeError::Bundle);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl Prober for HttpsProber {
    fn probe(&self, request: ProbeRequest) -> BoxFuture<'static, (bool, String)> {
        let prober = self.clone();
        Box::pin(async move { HttpsProber::probe(&prober, &request).await })
    }
}

/// As Go tells that a request failed.
fn told(url: &str, error: &ProbeError) -> String {
    match error {
        ProbeError::Bundle | ProbeError::Url => error.to_string(),
        _ => {
            let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
            let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
            format!("Get {url:?}: {text}")
        }
    }
}

/// Why it could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Anything but a Service of this cluster.
    #[error("only webhooks pointing to a Service are supported")]
    Url,
    /// No certificate in the bundle.
    #[error("failed to append CA bundle to cert pool")]
    Bundle,
    /// No address.
    #[error("lookup failed")]
    Resolve(#[source] io::Error),
    /// Nobody there.
    #[error("dial failed")]
    Connect(#[source] io::Error),
    /// Not who it should be, or no TLS.
    #[error("tls")]
    Tls(#[source] io::Error),
    /// The name cannot be in a certificate.
    #[error("the name is not one a certificate can have")]
    Name(#[from] InvalidDnsNameError),
    /// TLS cannot be set up.
    #[error("tls")]
    Setup(#[from] rustls::Error),
    /// No answer in HTTP.
    #[error("http")]
    Http(#[from] hyper::Error),
    /// The question cannot be put.
    #[error("http")]
    Question(#[from] http::Error),
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

#[cfg(test)]
mod tests;
