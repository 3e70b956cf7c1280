//! Calls webhooks outside this process over HTTPS. The embedding program resolves Services to addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::body::Body;
use crate::cluster::{ReplyFuture, WebhookTransport};
use crate::context::{Destination, WebhookCall, WebhookReply};

mod error;
mod verifier;

use error::CallError;
use verifier::BundleVerifier;

/// Function that returns the address of a pod of a Service, or `None` if the Service has no endpoints.
pub type Resolver = dyn Fn(&Destination) -> Option<SocketAddr> + Send + Sync;

/// A transport that calls webhooks over HTTPS: URLs directly, Services at the address returned by the
/// resolver.
#[derive(Clone)]
pub struct HttpsTransport {
    resolver: Arc<Resolver>,
}

impl std::fmt::Debug for HttpsTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpsTransport")
    }
}

impl HttpsTransport {
    /// Creates a transport that resolves Services with `resolver`.
    #[must_use]
    pub fn new(resolver: impl Fn(&Destination) -> Option<SocketAddr> + Send + Sync + 'static) -> Self {
        Self {
            resolver: Arc::new(resolver),
        }
    }
}

impl WebhookTransport for HttpsTransport {
    fn call(&self, call: WebhookCall) -> ReplyFuture {
        let resolver = Arc::clone(&self.resolver);
        Box::pin(async move {
            let timeout = Duration::from_secs(u64::try_from(call.timeout_seconds).unwrap_or(1));
            match tokio::time::timeout(timeout, exchange(&call, resolver.as_ref())).await {
                Ok(Ok(reply)) => reply,
                Ok(Err(error)) => WebhookReply::Failed(error.to_string()),
                Err(_) => WebhookReply::TimedOut,
            }
        })
    }
}

/// Host, port and path of a webhook URL.
struct Address {
    host: String,
    port: u16,
    path: String,
}

/// Parses an HTTPS URL; returns `None` for any other text.
fn parse_url(url: &str) -> Option<Address> {
    let uri: http::Uri = url.parse().ok()?;
    (uri.scheme_str() == Some("https")).then_some(())?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    Some(Address {
        host: uri.host()?.to_owned(),
        port: uri.port_u16().unwrap_or(443),
        path: path.to_owned(),
    })
}

async fn exchange(call: &WebhookCall, resolver: &Resolver) -> Result<WebhookReply, CallError> {
    let url = call.to.url();
    let Some(address) = parse_url(&url) else {
        return Err(CallError::Address(url));
    };
    let stream = connect(call, resolver, &address).await?;
    let name = ServerName::try_from(address.host.clone())?;
    let connector = TlsConnector::from(Arc::new(client_config(&call.ca_bundle)?));
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(CallError::Handshake)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(build_request(call, &address)?).await?;
    let code = response.status().as_u16();
    let body = crate::connection::read_body(response.into_body()).await;
    connection.abort();
    let body = body?.ok_or(CallError::TooLarge)?;
    Ok(WebhookReply::Response(
        code,
        String::from_utf8_lossy(&body).into_owned(),
    ))
}

async fn connect(call: &WebhookCall, resolver: &Resolver, address: &Address) -> Result<TcpStream, CallError> {
    let connected = match &call.to {
        Destination::Url(_) => TcpStream::connect((address.host.as_str(), address.port)).await,
        Destination::Service { name, .. } => {
            let Some(pod) = resolver(&call.to) else {
                return Err(CallError::NoEndpoints(name.clone()));
            };
            TcpStream::connect(pod).await
        }
    };
    connected.map_err(|error| CallError::Dial {
        host: address.host.clone(),
        port: address.port,
        error,
    })
}

/// Creates a TLS configuration that trusts only the CA bundle.
fn client_config(ca: &str) -> Result<ClientConfig, CallError> {
    let pem = STANDARD.decode(ca)?;
    let bundle = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(BundleVerifier::new(bundle, &provider)?);
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn build_request(call: &WebhookCall, address: &Address) -> Result<Request<Body>, CallError> {
    let separator = if address.path.contains('?') { '&' } else { '?' };
    let request = Request::post(format!(
        "{}{separator}timeout={}s",
        address.path, call.timeout_seconds
    ))
    .header(header::HOST, format!("{}:{}", address.host, address.port))
    .header(header::CONTENT_TYPE, "application/json")
    .header(header::ACCEPT, "application/json, */*")
    .header(header::USER_AGENT, "kube-apiserver-admission")
    .body(Body::from_bytes(call.body.to_string().into()))?;
    Ok(request)
}
