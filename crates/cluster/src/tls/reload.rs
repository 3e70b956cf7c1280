//! A verifier that reads its CA certificates again once a minute, because those in a pod are replaced
//! while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::{BundleError, BundleVerifier};

/// Interval after which the file is read again.
const INTERVAL: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct ReloadingVerifier {
    file: PathBuf,
    interval: Duration,
    current: RwLock<(Arc<BundleVerifier>, Instant)>,
}

impl ReloadingVerifier {
    /// Creates a verifier that starts with `first`.
    pub(super) fn new(file: PathBuf, first: BundleVerifier) -> Self {
        Self::with_interval(file, first, INTERVAL)
    }

    pub(super) fn with_interval(file: PathBuf, first: BundleVerifier, interval: Duration) -> Self {
        Self {
            file,
            interval,
            current: RwLock::new((Arc::new(first), Instant::now())),
        }
    }

    /// Returns the verifier for the content of the file. If the file cannot be read, returns the previous
    /// verifier.
    fn current(&self) -> Arc<BundleVerifier> {
        let known = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if known.1.elapsed() < self.interval {
            return known.0;
        }
        let fresh = match read_bundle(&self.file) {
            Ok(fresh) => Arc::new(fresh),
            Err(error) => {
                let file = self.file.display();
                tracing::warn!(%file, %error, "cannot read the CA certificates, keeping the previous ones");
                known.0
            }
        };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (fresh.clone(), Instant::now());
        fresh
    }
}

fn read_bundle(file: &Path) -> Result<BundleVerifier, ReloadError> {
    Ok(BundleVerifier::from_pem(&std::fs::read(file)?)?)
}

/// Error of reading the CA certificates again.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl ServerCertVerifier for ReloadingVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.current()
            .verify_server_cert(certificate, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current().supported_verify_schemes()
    }
}
