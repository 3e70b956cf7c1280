//! An ephemeral CA, the TLS acceptor for loopback, and the verification of client certificates. Keys and
//! certificates exist only in memory.
//!
//! As in the real server, the handshake accepts any client certificate.
//! [`ClientVerifier::verified_certificate`] verifies it for each request, so that a client with an untrusted
//! certificate receives `Unauthorized` instead of a TLS error.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

use super::ServeError;

/// Subject alternative names of the server.
const SERVER_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Common name of the CA.
pub(super) const AUTHORITY_NAME: &str = "mainstay sandbox";

/// TLS identity of the server.
pub(super) struct Identity {
    /// CA of the server and its clients.
    pub(super) authority: Authority,
    /// TLS acceptor.
    pub(super) acceptor: TlsAcceptor,
    /// Verifier of client certificates.
    pub(super) clients: ClientVerifier,
}

/// An ephemeral CA.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Returns the CA certificate as PEM.
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns the CA's private key.
    pub(super) fn key(&self) -> &KeyPair {
        self.0.key()
    }
}

/// Verifies client certificates.
#[derive(Clone, Debug)]
pub(super) struct ClientVerifier(Arc<dyn ClientCertVerifier>);

impl ClientVerifier {
    fn new(authority: &Authority, provider: &Arc<CryptoProvider>) -> Result<Self, ServeError> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone())?;
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let verifier = builder
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self(verifier))
    }

    /// Returns the first certificate of `chain` if this CA issued it and it is valid at `now`, as a duration
    /// since the Unix epoch.
    pub(super) fn verified_certificate<'c>(
        &self,
        chain: &'c [CertificateDer<'_>],
        now: Duration,
    ) -> Option<&'c [u8]> {
        let (first, rest) = chain.split_first()?;
        let now = UnixTime::since_unix_epoch(now);
        let verified = self.0.verify_client_cert(first, rest, now);
        verified.ok().map(|_| first.as_ref())
    }
}

/// Accepts every client certificate with a valid signature.
#[derive(Debug)]
struct AcceptAnyCertificate(ClientVerifier);

impl ClientCertVerifier for AcceptAnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.0.supported_verify_schemes()
    }
}

impl Identity {
    /// Creates a CA and a server certificate issued by it.
    pub(super) fn generate() -> Result<Self, ServeError> {
        let authority = Authority(CertifiedIssuer::self_signed(
            authority_params(),
            KeyPair::generate()?,
        )?);
        let key = KeyPair::generate()?;
        let certificate = server_params()?.signed_by(&key, &authority.0)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let clients = ClientVerifier::new(&authority, &provider)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AcceptAnyCertificate(clients.clone())))
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            authority,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            clients,
        })
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn server_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    params
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}
