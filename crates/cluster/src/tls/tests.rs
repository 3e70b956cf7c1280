//! Tests TLS with API servers on the loopback address.

use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use rcgen::{
    BasicConstraints, Certificate as Issued, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, SanType,
};
use rustls::ServerConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::certificate::Certificate;
use super::{BundleVerifier, ReloadingVerifier};
use crate::connect::connect;

const VERSION: &str = r#"{"major":"1","minor":"36","gitVersion":"v1.36.0","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;

/// Returns the parameters of a certificate for the loopback address.
fn leaf(edit: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    edit(&mut params);
    params
}

/// Returns the parameters of a CA certificate.
fn authority(edit: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    leaf(|params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        edit(params);
    })
}

fn issuer(params: CertificateParams) -> CertifiedIssuer<'static, KeyPair> {
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Starts an API server that responds to one request. Returns its URL.
async fn start(certificate: &Issued, key: &KeyPair) -> http::Uri {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else {
            return;
        };
        let _ = stream.read(&mut [0; 4096]).await;
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{VERSION}",
            VERSION.len()
        );
        let _ = stream.write_all(response.as_bytes()).await;
        let _ = stream.shutdown().await;
    });
    format!("https://{address}").parse().unwrap()
}

/// Requests the version of a server with `certificate`, trusting `root`.
async fn version(certificate: &Issued, key: &KeyPair, root: &CertificateDer<'_>) -> Result<String, String> {
    let mut config = Config::new(start(certificate, key).await);
    config.root_cert = Some(vec![root.to_vec()]);
    let client = connect(config).unwrap();
    match client.apiserver_version().await {
        Ok(info) => Ok(info.git_version),
        Err(error) => {
            let causes =
                std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            Err(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
        }
    }
}

async fn version_self_signed(params: CertificateParams) -> Result<String, String> {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    version(&certificate, &key, certificate.der()).await
}

async fn version_issued(
    params: CertificateParams,
    root: &CertifiedIssuer<'static, KeyPair>,
) -> Result<String, String> {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, root).unwrap();
    version(&certificate, &key, root.der()).await
}

/// Function that changes the parameters of a certificate.
type Edit<'a> = &'a dyn Fn(&mut CertificateParams);

#[tokio::test]
async fn an_api_server_may_present_a_ca_certificate() {
    let accepted = Ok("v1.36.0".to_owned());
    assert_eq!(version_self_signed(authority(|_| {})).await, accepted);
    let root = issuer(authority(|_| {}));
    assert_eq!(version_issued(authority(|_| {}), &root).await, accepted);
    assert_eq!(version_issued(leaf(|_| {}), &root).await, accepted);
    let for_servers =
        authority(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
    assert_eq!(version_self_signed(for_servers).await, accepted);
}

#[tokio::test]
async fn other_certificates_of_an_api_server_are_rejected() {
    let check = |what: &str, result: Result<String, String>, expected: &str| {
        let error = result.expect_err(what);
        assert!(error.contains(expected), "{what}: {error}");
    };
    let other_name = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::DnsName("other.example".try_into().unwrap())];
    };
    let expired = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2000, 1, 1);
    let early = |params: &mut CertificateParams| params.not_before = rcgen::date_time_ymd(2200, 1, 1);
    let clients = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    };
    let edits: [(&str, Edit<'_>, &str); 4] = [
        ("another name", &other_name, "not valid for name"),
        ("expired", &expired, "Expired"),
        ("not valid yet", &early, "certificate"),
        ("for clients", &clients, "certificate"),
    ];
    let root = issuer(authority(|_| {}));
    for (what, edit, expected) in edits {
        check(what, version_self_signed(authority(edit)).await, expected);
        check(what, version_issued(authority(edit), &root).await, expected);
        check(what, version_issued(leaf(edit), &root).await, "certificate");
    }
    // A different CA with the same name and another key.
    let key = KeyPair::generate().unwrap();
    let certificate = authority(|_| {}).self_signed(&key).unwrap();
    let same_name = issuer(authority(|_| {}));
    check(
        "an unknown CA",
        version(&certificate, &key, same_name.der()).await,
        "certificate",
    );
    // The issuer is in the bundle, but is not a CA.
    let no_authority = issuer(leaf(|_| {}));
    check(
        "issued by a certificate that is no CA",
        version_issued(authority(|_| {}), &no_authority).await,
        "certificate",
    );
    let past = issuer(authority(expired));
    check(
        "issued by an expired CA",
        version_issued(authority(|_| {}), &past).await,
        "certificate",
    );
}

#[test]
fn replaced_ca_certificates_are_read_again() {
    let (old, new) = (issuer(authority(|_| {})), issuer(authority(|_| {})));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    let first = BundleVerifier::from_pem(old.pem().as_bytes()).unwrap();
    let verifier = ReloadingVerifier::with_interval(file.clone(), first, Duration::ZERO);
    let accepts = |certificate: &CertifiedIssuer<'_, KeyPair>| {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let now = UnixTime::now();
        verifier
            .verify_server_cert(certificate.der(), &[], &name, &[], now)
            .is_ok()
    };
    assert!(accepts(&old) && !accepts(&new), "a missing file changes nothing");
    std::fs::write(&file, new.pem()).unwrap();
    assert!(!accepts(&old) && accepts(&new));
    std::fs::write(&file, "no certificate").unwrap();
    assert!(accepts(&new));
}

#[test]
fn malformed_certificates_are_rejected() {
    let key = KeyPair::generate().unwrap();
    let certificate = authority(|_| {}).self_signed(&key).unwrap();
    let der = certificate.der().to_vec();
    assert!(Certificate::parse(&der).is_some_and(|parsed| parsed.is_ca));
    for length in 0..der.len() {
        assert!(Certificate::parse(&der[..length]).is_none(), "{length}");
    }
    for at in 0..der.len() {
        for byte in [0x00, 0x7f, 0x80, 0x83, 0xff] {
            let mut changed = der.clone();
            changed[at] = byte;
            // Parsing must not panic.
            let _ = Certificate::parse(&changed);
        }
    }
}
