//! Throw-away certificates: takes nothing, gives an authority and a TLS acceptor for loopback. Nothing of it outlives the process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::ServeError;

/// Names a client may know the server by.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What the server shows, and who vouches for it.
pub(super) struct Identity {
    /// The authority's certificate, as PEM.
    pub(super) authority: String,
    /// Takes connections.
    pub(super) acceptor: TlsAcceptor,
}

impl Identity {
    /// A new authority and a server certificate signed by it.
    pub(super) fn make() -> Result<Self, ServeError> {
        let authority = CertifiedIssuer::self_signed(authority(), KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let certificate = server()?.signed_by(&key, &authority)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            authority: authority.pem(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "mainstay sandbox");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn server() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    params
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}
