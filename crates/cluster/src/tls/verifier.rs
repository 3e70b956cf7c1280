//! Verifies server certificates as Go does: a CA certificate may identify a server.
//!
//! `webpki` rejects such certificates, but many test servers and small installations use a single
//! self-signed certificate as CA and server certificate.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::certificate::Certificate;

/// A verifier that trusts the certificates of a bundle.
#[derive(Debug)]
pub struct BundleVerifier {
    strict: Arc<WebPkiServerVerifier>,
    bundle: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Error: the bundle contains no usable certificate.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no usable certificate in the CA bundle")]
pub struct BundleError;

impl BundleVerifier {
    /// Creates a verifier for a bundle in PEM format. A certificate that cannot be parsed is ignored, as in
    /// Go.
    pub fn from_pem(bundle: &[u8]) -> Result<Self, BundleError> {
        Self::new(CertificateDer::pem_slice_iter(bundle).flatten().collect())
    }

    /// Creates a verifier for these certificates.
    pub fn new(bundle: Vec<CertificateDer<'static>>) -> Result<Self, BundleError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(bundle.iter().cloned());
        if roots.is_empty() {
            return Err(BundleError);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self {
            strict: builder.build().map_err(|_| BundleError)?,
            bundle,
            algorithms,
        })
    }

    /// Whether `der` is a CA certificate that is in the bundle, or was issued by a certificate in the
    /// bundle. Fails if it is expired or not for servers.
    fn is_trusted_authority(
        &self,
        der: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<bool, CertificateError> {
        let Some(certificate) = Certificate::parse(der).filter(|certificate| certificate.is_ca) else {
            return Ok(false);
        };
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let now = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let mut bundle = self.bundle.iter();
        let is_trusted = bundle.any(|known| known == der || self.is_issued_by(&certificate, known, now));
        match certificate {
            _ if !is_trusted => Ok(false),
            valid if !valid.is_valid_at(now) => Err(CertificateError::Expired),
            usable if !usable.is_for_servers => Err(CertificateError::InvalidPurpose),
            _ => Ok(true),
        }
    }

    fn is_issued_by(&self, certificate: &Certificate<'_>, issuer: &[u8], now: Timestamp) -> bool {
        Certificate::parse(issuer).is_some_and(|issuer| {
            issuer.is_ca
                && !issuer.is_constrained
                && issuer.subject == certificate.issuer
                && issuer.is_valid_at(now)
                && self.has_signed(&issuer, certificate)
        })
    }

    fn has_signed(&self, issuer: &Certificate<'_>, certificate: &Certificate<'_>) -> bool {
        self.algorithms.all.iter().any(|algorithm| {
            *algorithm.signature_alg_id() == *certificate.signature_algorithm
                && *algorithm.public_key_alg_id() == *issuer.key_algorithm
                && algorithm
                    .verify_signature(issuer.key, certificate.signed, certificate.signature)
                    .is_ok()
        })
    }
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let strict = self
            .strict
            .verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        if strict.is_ok() || !self.is_trusted_authority(certificate, now)? {
            return strict;
        }
        rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.strict
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}
