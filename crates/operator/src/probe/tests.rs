//! Tests with remote control planes on loopback addresses.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::testing::{server_config, server_config_with};

const HOST: &str = "istiod-remote.istio-system.svc";

/// A resolver that resolves every host to one address.
struct FixedAddress(SocketAddr);

impl Resolver for FixedAddress {
    fn resolve(&self, _: &Address) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        futures::future::ready(Ok(vec![self.0])).boxed()
    }
}

/// Behavior of the server.
#[derive(Clone, Copy)]
enum Peer {
    /// Responds with these bytes.
    Responds(&'static str),
    /// Responds with endless headers.
    EndlessHeaders,
    /// Never responds.
    Hangs,
    /// Closes the connection.
    Closes,
    /// Does not use TLS.
    Plain,
}

/// Starts a server with a certificate for `name`, and returns its address and the certificate.
async fn start_server(peer: Peer, name: &str) -> (SocketAddr, String) {
    start_server_with(peer, server_config(name)).await
}

async fn start_server_with(peer: Peer, (config, pem): (Arc<ServerConfig>, String)) -> (SocketAddr, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        if matches!(peer, Peer::Plain) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            return;
        }
        let Ok(mut stream) = TlsAcceptor::from(config).accept(stream).await else {
            return;
        };
        let mut request_text = vec![0; 1024];
        let read = stream.read(&mut request_text).await.unwrap_or(0);
        let request_text = String::from_utf8_lossy(&request_text[..read]).into_owned();
        assert!(
            request_text.starts_with("GET /ready HTTP/1.1\r\nhost: istiod-remote.istio-system.svc:443\r\n"),
            "{request_text}"
        );
        match peer {
            Peer::Responds(text) => drop(stream.write_all(text.as_bytes()).await),
            Peer::EndlessHeaders => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            }
            Peer::Closes => {}
            _ => std::future::pending().await,
        }
        let _ = stream.shutdown().await;
    });
    (address, pem)
}

fn request(pem: &str) -> ProbeRequest {
    ProbeRequest {
        webhook: "istio-sidecar-injector".into(),
        url: format!("https://{HOST}:443/ready"),
        ca_bundle: pem.as_bytes().into(),
        timeout_seconds: 1,
    }
}

fn not_ready(error: &str) -> ProbeOutcome {
    ProbeOutcome {
        ready: false,
        error: error.to_owned(),
    }
}

/// Checks the readiness and the start of the error. An empty `expected` error requires an empty error.
async fn check(peer: Peer, expected: (bool, &str)) {
    let (address, pem) = start_server(peer, HOST).await;
    let ProbeOutcome { ready, error: reason } = HttpsProber::new(FixedAddress(address))
        .probe(&request(&pem))
        .await;
    assert_eq!(ready, expected.0, "{reason}");
    let matches = if expected.1.is_empty() {
        reason.is_empty()
    } else {
        reason.starts_with(expected.1)
    };
    assert!(matches, "{reason}");
}

#[tokio::test]
async fn only_200_is_ready() {
    check(
        Peer::Responds("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nok"),
        (true, ""),
    )
    .await;
    check(
        Peer::Responds("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
        (false, ""),
    )
    .await;
    check(Peer::Responds("HTTP/1.1 204 No Content\r\n\r\n"), (false, "")).await;
    check(
        Peer::Responds("HTTP/1.1 302 Found\r\nlocation: https://example.com/\r\n\r\n"),
        (false, ""),
    )
    .await;
}

#[tokio::test]
async fn failed_requests_have_an_error() {
    let get = format!("Get \"https://{HOST}:443/ready\": ");
    check(Peer::Responds("220 smtp\r\n"), (false, &format!("{get}http: "))).await;
    check(Peer::EndlessHeaders, (false, &format!("{get}http: "))).await;
    check(Peer::Hangs, (false, &format!("{get}no response within 1 s"))).await;
    check(Peer::Closes, (false, &get)).await;
    check(Peer::Plain, (false, &format!("{get}tls: "))).await;
}

#[tokio::test]
async fn only_the_given_bundle_and_host_name_are_trusted() {
    let ok = Peer::Responds("HTTP/1.1 200 OK\r\n\r\n");
    let (address, _) = start_server(ok, HOST).await;
    let (_, other) = server_config(HOST);
    let ProbeOutcome { ready, error: reason } = HttpsProber::new(FixedAddress(address))
        .probe(&request(&other))
        .await;
    assert!(
        !ready && reason.contains("tls: invalid peer certificate"),
        "{reason}"
    );

    let (address, pem) = start_server(ok, "other.example.svc").await;
    let ProbeOutcome { ready, error: reason } = HttpsProber::new(FixedAddress(address))
        .probe(&request(&pem))
        .await;
    assert!(!ready && reason.contains("not valid for name"), "{reason}");

    for bundle in [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let outcome = HttpsProber::new(FixedAddress(address))
            .probe(&request(bundle))
            .await;
        assert_eq!(outcome, not_ready("failed to append CA bundle to cert pool"));
    }
}

#[tokio::test]
async fn other_urls_are_rejected() {
    let (address, pem) = start_server(Peer::Responds("HTTP/1.1 200 OK\r\n\r\n"), HOST).await;
    let request = ProbeRequest {
        url: format!("https://{HOST}:443/stats"),
        ..request(&pem)
    };
    let outcome = HttpsProber::new(FixedAddress(address)).probe(&request).await;
    assert_eq!(
        outcome,
        not_ready("only webhooks pointing to a Service are supported")
    );
}

#[tokio::test]
async fn a_closed_port_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (_, pem) = server_config(HOST);
    let ProbeOutcome { ready, error: reason } = HttpsProber::new(FixedAddress(address))
        .probe(&request(&pem))
        .await;
    assert!(
        !ready && reason.contains("dial failed: Connection refused"),
        "{reason}"
    );
}

/// Returns the parameters of a CA certificate for the host, changed by `edit`.
fn ca_params(edit: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    edit(&mut params);
    params
}

/// Probes a server that has a self-signed certificate, with this certificate in the bundle.
async fn probe_self_signed(params: CertificateParams) -> ProbeOutcome {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let ok = Peer::Responds("HTTP/1.1 200 OK\r\n\r\n");
    let (address, pem) = start_server_with(ok, server_config_with(&certificate, &key)).await;
    HttpsProber::new(FixedAddress(address))
        .probe(&request(&pem))
        .await
}

#[tokio::test]
async fn a_server_certificate_may_be_a_ca() {
    let outcome = probe_self_signed(ca_params(|_| {})).await;
    assert!(outcome.ready, "{}", outcome.error);
    for usage in [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::Any] {
        let usable = ca_params(|params| params.extended_key_usages = vec![usage]);
        let outcome = probe_self_signed(usable).await;
        assert!(outcome.ready, "{}", outcome.error);
    }
    // The certificate is issued by another CA, which is in the bundle.
    let root = CertifiedIssuer::self_signed(ca_params(|_| {}), KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = ca_params(|_| {}).signed_by(&key, &root).unwrap();
    let ok = Peer::Responds("HTTP/1.1 200 OK\r\n\r\n");
    let (address, _) = start_server_with(ok, server_config_with(&certificate, &key)).await;
    let outcome = HttpsProber::new(FixedAddress(address))
        .probe(&request(&root.pem()))
        .await;
    assert!(outcome.ready, "{}", outcome.error);
}

#[tokio::test]
async fn a_ca_certificate_must_be_trusted_valid_and_for_this_server() {
    let check = async |params, expected: &str| {
        let ProbeOutcome { ready, error } = probe_self_signed(params).await;
        assert!(!ready && error.contains(expected), "{expected}: {error}");
    };
    check(
        ca_params(|params| params.not_after = rcgen::date_time_ymd(2000, 1, 1)),
        "certificate: Expired",
    )
    .await;
    check(
        ca_params(|params| params.not_before = rcgen::date_time_ymd(2200, 1, 1)),
        "certificate: Expired",
    )
    .await;
    check(
        ca_params(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
        "certificate",
    )
    .await;
    let other = vec![
        "other.example.svc"
            .try_into()
            .map(rcgen::SanType::DnsName)
            .unwrap(),
    ];
    check(
        ca_params(|params| params.subject_alt_names = other),
        "not valid for name",
    )
    .await;
    // The bundle contains another CA with the same name.
    let key = KeyPair::generate().unwrap();
    let certificate = ca_params(|_| {}).self_signed(&key).unwrap();
    let ok = Peer::Responds("HTTP/1.1 200 OK\r\n\r\n");
    let (address, _) = start_server_with(ok, server_config_with(&certificate, &key)).await;
    let same_name = ca_params(|_| {})
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap();
    let outcome = HttpsProber::new(FixedAddress(address))
        .probe(&request(&same_name.pem()))
        .await;
    assert!(!outcome.ready, "an untrusted certificate");
}
