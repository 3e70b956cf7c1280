//! Tests for the servers for metrics and probes on loopback addresses. The simulated API server authorizes
//! clients.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use mainstay_sim::{Cluster, Options};
use serde_json::json;

use super::*;
use crate::report::{Observer as _, Report};
use crate::testing::{certificate, client, get_http, get_https};

fn loopback() -> Bind {
    "127.0.0.1:0".parse().unwrap()
}

/// An authorizer that allows the token `yes`.
struct StaticAuthorizer;

impl Authorizer for StaticAuthorizer {
    fn check(&self, token: Option<String>, verb: String) -> BoxFuture<'_, Access> {
        assert_eq!(verb, "get");
        let access = match token.as_deref() {
            Some("yes") => Access::Allowed,
            Some("no") => Access::Denied("jane".into()),
            Some("undecided") => Access::AuthorizationFailed("jane".into()),
            Some(_) => Access::AuthenticationFailed,
            None => Access::Unauthorized,
        };
        futures::future::ready(access).boxed()
    }
}

#[tokio::test]
async fn metrics_require_authorization() {
    let (end, stop) = watch::channel(false);
    let certificates = Certificates::self_signed(vec!["localhost".into()], None).unwrap();
    let metrics = Arc::new(Metrics::new("1"));
    let server = serve_metrics(
        &loopback(),
        certificates,
        Arc::new(StaticAuthorizer),
        metrics,
        stop,
    )
    .await
    .unwrap();
    let address = server.address;
    let check = async |path: &str, headers: &str, expected: (u16, &str)| {
        let response = get_https(address, path, headers).await;
        assert_eq!(
            response.protocol.as_deref(),
            Some(&b"http/1.1"[..]),
            "never HTTP/2"
        );
        assert_eq!(
            (response.status, response.body.as_str()),
            expected,
            "{path} {headers}"
        );
    };
    check("/metrics", "", (401, "Unauthorized\n")).await;
    check(
        "/metrics",
        "Authorization: Basic yes\r\n",
        (401, "Unauthorized\n"),
    )
    .await;
    check(
        "/metrics",
        "Authorization: Bearer no\r\n",
        (403, "Authorization denied for user jane\n"),
    )
    .await;
    check(
        "/metrics",
        "Authorization: Bearer undecided\r\n",
        (500, "Authorization for user jane failed\n"),
    )
    .await;
    check(
        "/metrics",
        "Authorization: Bearer ?\r\n",
        (500, "Authentication failed\n"),
    )
    .await;
    check(
        "/",
        "Authorization: Bearer yes\r\n",
        (404, "404 page not found\n"),
    )
    .await;
    let response = get_https(address, "/metrics", "Authorization: bearer yes\r\n").await;
    assert_eq!(response.status, 200);
    assert!(
        response.body.contains("mainstay_build_info{version=\"1\"} 1\n"),
        "{}",
        response.body
    );
    let _ = end.send(true);
    server.ended().await;
}

#[tokio::test]
async fn a_new_certificate_is_reloaded() {
    let directory = tempfile::tempdir().unwrap();
    let write = |(pem, key): &(String, String)| {
        std::fs::write(directory.path().join("tls.crt"), pem).unwrap();
        std::fs::write(directory.path().join("tls.key"), key).unwrap();
    };
    let missing = Certificates::from_directory(directory.path(), None).unwrap_err();
    assert!(missing.is_missing(), "{missing}");
    write(&certificate("first.example.com"));
    let certificates = Certificates::from_directory(directory.path(), None).unwrap();
    let (_end, stop) = watch::channel(false);
    let server = serve_metrics(
        &loopback(),
        certificates,
        Arc::new(StaticAuthorizer),
        Arc::new(Metrics::new("1")),
        stop,
    )
    .await
    .unwrap();
    let subject = async || {
        let response = get_https(server.address, "/metrics", "").await;
        let text = String::from_utf8_lossy(&response.certificate).into_owned();
        ["first.example.com", "second-name.example.com"]
            .into_iter()
            .find(|name| text.contains(name))
    };
    assert_eq!(subject().await, Some("first.example.com"));
    write(&certificate("second-name.example.com"));
    assert_eq!(
        subject().await,
        Some("first.example.com"),
        "the directory was not checked yet"
    );
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(subject().await, Some("second-name.example.com"));
    std::fs::write(directory.path().join("tls.key"), "broken").unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(
        subject().await,
        Some("second-name.example.com"),
        "an invalid certificate is not loaded"
    );
}

#[tokio::test]
async fn probes_report_the_health_of_the_loop() {
    let health = Arc::new(Health::default());
    let (end, stop) = watch::channel(false);
    let server = serve_health(&loopback(), health.clone(), stop).await.unwrap();
    let check = async |path: &str, expected: (u16, &str)| {
        let (status, body) = get_http(server.address, path).await;
        assert_eq!((status, body.as_str()), expected, "{path}");
    };
    check("/healthz", (200, "ok")).await;
    check("/readyz", (500, "not every watch has been listed yet\n")).await;
    check("/metrics", (404, "404 page not found\n")).await;
    health.report(&Report::Synced(true));
    check("/readyz", (200, "ok")).await;
    check("/readyz/", (200, "ok")).await;
    let address = server.address;
    let _ = end.send(true);
    server.ended().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "closed");
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bind: Bind = listener.local_addr().unwrap().to_string().parse().unwrap();
    let (_end, stop) = watch::channel(false);
    let error = serve_health(&bind, Arc::default(), stop).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {bind}"));
}

/// Creates a service account and returns a token for it.
async fn create_token(client: &Client, name: &str) -> String {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    api.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let response = api
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .unwrap();
    response.status.and_then(|status| status.token).unwrap()
}

/// Grants a service account the permission to read metrics.
async fn grant_metrics_access(client: &Client, name: &str) {
    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": "metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }))
    .unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "metrics-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
    }))
    .unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &role)
        .await
        .unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_api_server_authorizes_clients() {
    let cluster = Cluster::new(Options::default());
    let admin = client(&cluster, "admin");
    let (prometheus, unprivileged) = (
        create_token(&admin, "prometheus").await,
        create_token(&admin, "unprivileged").await,
    );
    grant_metrics_access(&admin, "prometheus").await;
    let authorizer = ClusterAuthorizer::new(client(&cluster, "operator"));
    let check = |token: Option<&str>| authorizer.check(token.map(str::to_owned), "get".into());
    assert_eq!(check(None).await, Access::Unauthorized);
    assert_eq!(check(Some("nonsense")).await, Access::Unauthorized);
    assert_eq!(check(Some(&prometheus)).await, Access::Allowed);
    let denied = Access::Denied("system:serviceaccount:default:unprivileged".into());
    assert_eq!(check(Some(&unprivileged)).await, denied);

    // Results are cached for a limited time.
    let reviews = |trace: &str| trace.matches("reviews").count();
    let before = reviews(&cluster.trace());
    assert!(before >= 5, "{before}");
    assert_eq!(check(Some(&prometheus)).await, Access::Allowed);
    assert_eq!(check(Some(&unprivileged)).await, denied);
    assert_eq!(reviews(&cluster.trace()), before);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(check(Some(&prometheus)).await, Access::Allowed);
    assert_eq!(reviews(&cluster.trace()), before + 2);
}
