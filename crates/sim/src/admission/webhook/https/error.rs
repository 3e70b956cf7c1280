//! Errors of webhook calls over HTTPS, with the texts of the real API server where it has one.

use std::io;

use rustls::pki_types::{InvalidDnsNameError, pem};

use crate::connection::TransportError;

/// Failure of a webhook call.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The URL is not an HTTPS URL.
    #[error("unsupported address {0:?}")]
    Address(String),
    /// The host of the URL is neither a DNS name nor an IP address.
    #[error("{0}")]
    Name(#[from] InvalidDnsNameError),
    /// The Service has no ready pod.
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
    /// The server does not accept connections.
    #[error("dial tcp {host}:{port}: {}", dial_reason(.error))]
    Dial {
        host: String,
        port: u16,
        error: io::Error,
    },
    /// The CA bundle cannot be decoded.
    #[error("the CA bundle is not valid base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The CA bundle contains no certificates.
    #[error("the CA bundle is not valid PEM: {0:?}")]
    Pem(#[from] pem::Error),
    /// The CA bundle cannot be used for TLS.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// A certificate of the CA bundle cannot be used for verification.
    #[error("{0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
    /// The server's certificate was rejected.
    #[error("tls: failed to verify certificate: {0}")]
    Handshake(io::Error),
    /// The connection failed.
    #[error("{0}")]
    Connection(#[from] hyper::Error),
    /// The request cannot be built.
    #[error("{0}")]
    Request(#[from] http::Error),
    /// The response cannot be read.
    #[error("{0}")]
    Body(#[from] TransportError),
    /// The response exceeds the size limit.
    #[error("the response is too large")]
    TooLarge,
}

/// Returns Go's text for a failed connection.
fn dial_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}
