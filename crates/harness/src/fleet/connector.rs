//! Connects kubeconfigs to simulated clusters. The server URL selects the cluster, and the token must be
//! the cluster's current one. An unresponsive cluster accepts requests and never responds.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use mainstay_cluster::remote::{AddressPolicy, Credential, Kubeconfig, RemoteError};
use mainstay_operator::delivery::Connector;
use serde_json::{Value, json};
use tower_service::Service;

/// A cluster and its connection settings.
struct Member {
    client: Client,
    token: String,
    is_unresponsive: bool,
    unanswered: Vec<UnansweredCall>,
}

/// A call to a cluster that did not respond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnansweredCall {
    /// Method and path.
    pub request: String,
    /// Virtual time of the call.
    pub at: tokio::time::Instant,
}

/// Connects to simulated clusters by server URL. Clones share the clusters.
#[derive(Clone, Default)]
pub struct FleetConnector {
    members: Arc<Mutex<Members>>,
}

type Members = BTreeMap<String, Member>;

impl std::fmt::Debug for FleetConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetConnector")
    }
}

/// Returns the server URL of a cluster.
fn server(name: &str) -> String {
    format!("https://{name}.example.com:6443")
}

/// Returns the Secret of a cluster with a kubeconfig that contains `token`.
#[must_use]
pub fn cluster_secret(namespace: &str, name: &str, token: &str) -> Value {
    let pem = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "main",
        "clusters": [{"name": "c", "cluster": {
            "server": server(name), "certificate-authority-data": STANDARD.encode(pem)}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    });
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("kubeconfig-{name}"), "namespace": namespace},
        "data": {"config": STANDARD.encode(kubeconfig.to_string())},
    })
}

impl FleetConnector {
    /// Adds a cluster that accepts `token`.
    pub fn add(&self, name: &str, client: Client, token: &str) {
        let member = Member {
            client,
            token: token.to_owned(),
            is_unresponsive: false,
            unanswered: Vec::new(),
        };
        self.members().insert(server(name), member);
    }

    /// Sets whether a cluster accepts requests but never responds.
    pub fn set_unresponsive(&self, name: &str, is_unresponsive: bool) {
        self.change(name, |member| member.is_unresponsive = is_unresponsive);
    }

    /// Sets the only token that a cluster accepts.
    pub fn set_token(&self, name: &str, token: &str) {
        self.change(name, |member| token.clone_into(&mut member.token));
    }

    /// Returns the calls to a cluster that it did not respond to.
    #[must_use]
    pub fn unanswered_calls(&self, name: &str) -> Vec<UnansweredCall> {
        let members = self.members();
        let member = members.get(&server(name));
        member.map(|member| member.unanswered.clone()).unwrap_or_default()
    }

    /// Returns the client and the token of the cluster at `server`, or `None` if it does not respond to
    /// `request`.
    fn route(&self, server: &str, request: &Request<Body>) -> Option<(Client, String)> {
        let mut members = self.members();
        let member = members.get_mut(server)?;
        if member.is_unresponsive {
            member.unanswered.push(UnansweredCall {
                request: format!("{} {}", request.method(), request.uri().path()),
                at: tokio::time::Instant::now(),
            });
            return None;
        }
        Some((member.client.clone(), member.token.clone()))
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members().get_mut(&server(name)) {
            change(member);
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connector for FleetConnector {
    fn connect(&self, kubeconfig: &Kubeconfig) -> Result<Client, RemoteError> {
        let Credential::Token(token) = &kubeconfig.credential else {
            return Err(RemoteError::Credential);
        };
        let service = MemberService {
            connector: self.clone(),
            server: kubeconfig.server.clone(),
            token: String::from_utf8_lossy(token.expose()).into_owned(),
        };
        Ok(Client::new(service, "default"))
    }

    fn policy(&self) -> AddressPolicy {
        AddressPolicy::default()
    }
}

#[derive(Clone)]
struct MemberService {
    connector: FleetConnector,
    server: String,
    token: String,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for MemberService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let member = self.connector.route(&self.server, &request);
        let token = self.token.clone();
        Box::pin(async move {
            let Some((client, current_token)) = member else {
                return std::future::pending().await;
            };
            if current_token != token {
                return Ok(unauthorized());
            }
            Ok(client.send(request).await?)
        })
    }
}

fn unauthorized() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
