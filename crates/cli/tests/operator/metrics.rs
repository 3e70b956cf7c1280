//! Requests to the operator: health over plain HTTP, metrics over HTTPS with authorization.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::stage::Stage;

/// Text that the metrics contain once an Istio is healthy.
pub(crate) const METRICS: [&str; 7] = [
    "mainstay_leader 1\n",
    "mainstay_synced 1\n",
    "mainstay_reconciles_total{kind=\"Istio\",result=\"success\"}",
    "mainstay_writes_total{action=\"create\",reason=\"Absent\"}",
    "mainstay_api_calls_total{verb=\"create\",code=\"201\"}",
    "mainstay_cache_objects{cache=\"Istio\"} 2\n",
    "mainstay_revision_referrers{revision=\"default\",by=\"namespace\"} 0\n",
];

/// Sends a GET request over plain HTTP; returns status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let path = path.to_owned();
    let ask = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// Scrapes the metrics with the given token; returns status and body.
pub(crate) async fn scrape(address: SocketAddr, token: Option<String>) -> (u16, String) {
    let ask = move || {
        let tls = ureq::tls::TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .disable_verification(true)
            .build();
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .build()
            .into();
        let mut request = agent.get(format!("https://localhost:{}/metrics", address.port()));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().unwrap();
        (
            response.status().as_u16(),
            response.body_mut().read_to_string().unwrap(),
        )
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// Creates a service account that may read metrics; returns its token.
pub(crate) async fn token(stage: &Stage) -> String {
    stage
        .create(
            "v1",
            "ServiceAccount",
            Some("default"),
            json!({"metadata": {"name": "prometheus"}}),
        )
        .await;
    let role = json!({"metadata": {"name": "reader"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    stage
        .create("rbac.authorization.k8s.io/v1", "ClusterRole", None, role)
        .await;
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "prometheus"}],
    });
    stage
        .create(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            None,
            binding,
        )
        .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/prometheus/token";
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    let response: Value = stage.admin.request(request).await.unwrap();
    response["status"]["token"].as_str().unwrap().to_owned()
}
