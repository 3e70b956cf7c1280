//! Test helpers: certificates, a minimal HTTP client, and clients for simulated clusters.

use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use mainstay_sim::Cluster;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Returns a client for a simulated cluster.
pub(crate) fn client(cluster: &Cluster, name: &str) -> Client {
    Client::new(cluster.connect(name), "default")
}

/// Generates a certificate for a name. Returns certificate and key as PEM.
pub(crate) fn certificate(name: &str) -> (String, String) {
    let generated = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (generated.cert.pem(), generated.signing_key.serialize_pem())
}

/// Generates a certificate for `name`. Returns the TLS configuration of a server, and the certificate as PEM.
pub(crate) fn server_config(name: &str) -> (Arc<ServerConfig>, String) {
    let generated = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    server_config_with(&generated.cert, &generated.signing_key)
}

/// Returns the TLS configuration of a server with this certificate, and the certificate as PEM.
pub(crate) fn server_config_with(
    certificate: &rcgen::Certificate,
    key: &rcgen::KeyPair,
) -> (Arc<ServerConfig>, String) {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (Arc::new(config), certificate.pem())
}

/// A verifier that accepts every certificate.
#[derive(Debug)]
struct AcceptAny;

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A response to a request over TLS.
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Certificate of the server.
    pub(crate) certificate: Vec<u8>,
    /// Negotiated ALPN protocol.
    pub(crate) protocol: Option<Vec<u8>>,
}

/// Sends a GET request over TLS. Every server certificate is accepted.
pub(crate) async fn get_https(address: SocketAddr, path: &str, headers: &str) -> TestResponse {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAny))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let session = stream.get_ref().1;
    let certificate = session.peer_certificates().unwrap()[0].to_vec();
    let protocol = session.alpn_protocol().map(<[u8]>::to_vec);
    let (status, body) = send_request(&mut stream, path, headers).await;
    TestResponse {
        status,
        body,
        certificate,
        protocol,
    }
}

/// Sends a GET request without TLS. Returns status and body.
pub(crate) async fn get_http(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    send_request(&mut stream, path, "").await
}

async fn send_request(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
    headers: &str,
) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    (status, body.to_owned())
}
