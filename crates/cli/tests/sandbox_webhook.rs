//! A webhook on loopback, called by a sandbox for the objects that its controllers create.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/running.rs"]
mod running;

use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use running::Running;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Starts a webhook that adds a label to every object; returns its address, its certificate as PEM, and the
/// reviews it receives.
///
/// With `is_ca`, the self-signed certificate is a CA certificate, as `openssl req -x509` creates it.
fn webhook(is_ca: bool) -> (String, String, Receiver<Value>) {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/label", listener.local_addr().unwrap());
    let (reviews, requests) = channel();
    std::thread::spawn(move || serve(&listener, &Arc::new(config), &reviews));
    (url, cert.pem(), requests)
}

fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, reviews: &Sender<Value>) {
    for stream in listener.incoming() {
        let connection = ServerConnection::new(Arc::clone(config)).unwrap();
        let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
        let Some(review) = request(&mut stream) else {
            continue;
        };
        let patch = r#"[{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]"#;
        let response = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": base64(patch)},
        });
        let text = response.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        let _ = stream.get_mut().write_all(format!("{head}{text}").as_bytes());
        let _ = reviews.send(review);
    }
}

fn request(stream: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().ok()?,
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn base64(text: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_ref().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if digit <= chunk.len() {
                char::from(DIGITS[value])
            } else {
                '='
            });
        }
    }
    out
}

fn sandbox(directory: &Path) -> (Running, PathBuf) {
    let kubeconfig = directory.join("kubeconfig");
    let (process, _) = Running::start(
        Command::new(env!("CARGO_BIN_EXE_mainstay"))
            .args(["sandbox", "--speed", "20", "-o", "json", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null()),
    );
    (process, kubeconfig)
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> String {
    let output = Command::new(mainstay_testkit::built_peer("kubectl").unwrap())
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pods_of_a_deployment_are_sent_to_the_webhook() {
    check(false);
}

#[test]
fn the_certificate_of_a_webhook_may_be_a_ca() {
    check(true);
}

fn check(is_ca: bool) {
    let directory = tempfile::tempdir().unwrap();
    let (url, certificate, requests) = webhook(is_ca);
    let (_sandbox, kubeconfig) = sandbox(directory.path());
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "label"}, "webhooks": [{
            "name": "label.example.com", "clientConfig": {"url": url, "caBundle": base64(certificate)}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }]},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }},
    ]});
    let path = directory.path().join("manifest.json");
    fs::write(&path, manifest.to_string()).unwrap();
    kubectl(&kubeconfig, &["apply", "-f", path.to_str().unwrap()]);
    kubectl(
        &kubeconfig,
        &["rollout", "status", "deployment/web", "--timeout=120s"],
    );
    let pods = kubectl(
        &kubeconfig,
        &["get", "pods", "-l", "app=web,seen=yes", "-o", "name"],
    );
    assert_eq!(pods.lines().count(), 2, "{pods}");
    let reviews: Vec<Value> = requests.try_iter().collect();
    assert_eq!(reviews.len(), 2, "the webhook is called once per pod");
    let request = &reviews[0]["request"];
    assert_eq!(request["userInfo"]["username"], "system:replicaset-controller");
    assert_eq!(
        request["object"]["metadata"]["generateName"]
            .as_str()
            .map(|name| &name[..4]),
        Some("web-")
    );
    let events = kubectl(
        &kubeconfig,
        &[
            "get",
            "events",
            "--field-selector",
            "reason=FailedCreate",
            "-o",
            "name",
        ],
    );
    assert_eq!(events, "", "waiting for a response must not count as a failure");
}
