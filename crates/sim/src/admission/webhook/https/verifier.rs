//! Verifies the certificates of webhook servers as Go does: a certificate of the CA bundle is accepted as the
//! server's certificate even if it is a CA certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::error::CallError;
use crate::auth::certificate_validity;

/// A verifier that accepts the certificates of a CA bundle and certificates issued by them.
#[derive(Debug)]
pub(super) struct BundleVerifier {
    issued: Arc<WebPkiServerVerifier>,
    bundle: Vec<CertificateDer<'static>>,
}

impl BundleVerifier {
    /// Creates a verifier for the certificates of a bundle.
    pub(super) fn new(
        bundle: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, CallError> {
        let mut roots = RootCertStore::empty();
        for certificate in &bundle {
            roots.add(certificate.clone())?;
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self {
            issued: builder.build()?,
            bundle,
        })
    }
}

/// Verifies name and validity period of a certificate of the bundle.
fn verify_trusted(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let error = match certificate_validity(certificate) {
        None => CertificateError::BadEncoding,
        Some((start, _)) if seconds < start => CertificateError::NotValidYet,
        Some((_, end)) if seconds > end => CertificateError::Expired,
        Some(_) => return Ok(ServerCertVerified::assertion()),
    };
    Err(Error::InvalidCertificate(error))
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.bundle.iter().any(|trusted| trusted == end_entity) {
            return verify_trusted(end_entity, server_name, now);
        }
        self.issued
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}
