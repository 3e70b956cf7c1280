//! Remote control planes of many kinds, on loopback.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::testing::server_config;

const HOST: &str = "istiod-remote.istio-system.svc";

/// Finds everything at one place.
struct At(SocketAddr);

impl Resolver for At {
    fn resolve(&self, _: &Address) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        futures::future::ready(Ok(vec![self.0])).boxed()
    }
}

/// How the other end behaves.
#[derive(Clone, Copy)]
enum Peer {
    /// Answers with these bytes.
    Says(&'static str),
    /// Answers with headers without end.
    Chatters,
    /// Never answers.
    Hangs,
    /// Hangs up.
    Leaves,
    /// Speaks no TLS.
    Plain,
}

/// Starts a peer whose certificate is for `name`; gives its address and the certificate.
async fn start(peer: Peer, name: &str) -> (SocketAddr, String) {
    let (config, pem) = server_config(name);
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
        let mut question = vec![0; 1024];
        let read = stream.read(&mut question).await.unwrap_or(0);
        let question = String::from_utf8_lossy(&question[..read]).into_owned();
        assert!(
            question.starts_with("GET /ready HTTP/1.1\r\nhost: istiod-remote.istio-system.svc:443\r\n"),
            "{question}"
        );
        match peer {
            Peer::Says(text) => drop(stream.write_all(text.as_bytes()).await),
            Peer::Chatters => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            }
            Peer::Leaves => {}
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

/// Whether it is ready, and how the reason begins.
async fn check(peer: Peer, expected: (bool, &str)) {
    let (address, pem) = start(peer, HOST).await;
    let (ready, reason) = HttpsProber::new(At(address)).probe(&request(&pem)).await;
    assert_eq!(ready, expected.0, "{reason}");
    let begins = if expected.1.is_empty() {
        reason.is_empty()
    } else {
        reason.starts_with(expected.1)
    };
    assert!(begins, "{reason}");
}

#[tokio::test]
async fn only_200_is_ready() {
    check(
        Peer::Says("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nok"),
        (true, ""),
    )
    .await;
    check(
        Peer::Says("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
        (false, ""),
    )
    .await;
    check(Peer::Says("HTTP/1.1 204 No Content\r\n\r\n"), (false, "")).await;
    check(
        Peer::Says("HTTP/1.1 302 Found\r\nlocation: https://example.com/\r\n\r\n"),
        (false, ""),
    )
    .await;
}

#[tokio::test]
async fn what_is_no_answer_has_a_reason() {
    let get = format!("Get \"https://{HOST}:443/ready\": ");
    check(Peer::Says("220 smtp\r\n"), (false, &format!("{get}http: "))).await;
    check(Peer::Chatters, (false, &format!("{get}http: "))).await;
    check(Peer::Hangs, (false, &format!("{get}no answer within 1 s"))).await;
    check(Peer::Leaves, (false, &get)).await;
    check(Peer::Plain, (false, &format!("{get}tls: "))).await;
}

#[tokio::test]
async fn only_that_bundle_and_that_name_are_trusted() {
    let ok = Peer::Says("HTTP/1.1 200 OK\r\n\r\n");
    let (address, _) = start(ok, HOST).await;
    let (_, other) = server_config(HOST);
    let (ready, reason) = HttpsProber::new(At(address)).probe(&request(&other)).await;
    assert!(
        !ready && reason.contains("tls: invalid peer certificate"),
        "{reason}"
    );

    let (address, pem) = start(ok, "somebody.else.svc").await;
    let (ready, reason) = HttpsProber::new(At(address)).probe(&request(&pem)).await;
    assert!(!ready && reason.contains("not valid for name"), "{reason}");

    for bundle in [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let answer = HttpsProber::new(At(address)).probe(&request(bundle)).await;
        assert_eq!(answer, (false, "failed to append CA bundle to cert pool".into()));
    }
}

#[tokio::test]
async fn nothing_else_is_asked() {
    let (address, pem) = start(Peer::Says("HTTP/1.1 200 OK\r\n\r\n"), HOST).await;
    let request = ProbeRequest {
        url: format!("https://{HOST}:443/stats"),
        ..request(&pem)
    };
    let answer = HttpsProber::new(At(address)).probe(&request).await;
    assert_eq!(
        answer,
        (false, "only webhooks pointing to a Service are supported".into())
    );
}

#[tokio::test]
async fn nobody_there_is_a_reason_too() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let (_, pem) = server_config(HOST);
    let (ready, reason) = HttpsProber::new(At(address)).probe(&request(&pem)).await;
    assert!(
        !ready && reason.contains("dial failed: Connection refused"),
        "{reason}"
    );
}
