//! Connects kubeconfigs to simulated clusters: the server names the cluster, and the token must be its
//! current one. A dead cluster accepts requests and never responds.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use mainstay_cluster::remote::{AddressPolicy, Credential, Kubeconfig, RemoteError};
use mainstay_operator::delivery::Connector;
use serde_json::{Value, json};
use tower_service::Service;

/// What a cluster accepts.
#[derive(Clone)]
pub(crate) struct Gate {
    client: Client,
    token: String,
    is_dead: bool,
}

/// Clusters by server.
#[derive(Clone, Default)]
pub(crate) struct FleetConnector {
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
}

/// The server of a cluster.
pub(crate) fn server(name: &str) -> String {
    format!("https://{name}.example.com:6443")
}

/// The Secret of a cluster.
pub(crate) fn secret(namespace: &str, name: &str, token: &str) -> Value {
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
    pub(crate) fn add(&self, name: &str, client: Client, token: &str) {
        let gate = Gate {
            client,
            token: token.to_owned(),
            is_dead: false,
        };
        self.gates.lock().unwrap().insert(server(name), gate);
    }

    pub(crate) fn set_dead(&self, name: &str, is_dead: bool) {
        self.gates.lock().unwrap().get_mut(&server(name)).unwrap().is_dead = is_dead;
    }

    pub(crate) fn set_token(&self, name: &str, token: &str) {
        token.clone_into(&mut self.gates.lock().unwrap().get_mut(&server(name)).unwrap().token);
    }
}

impl Connector for FleetConnector {
    fn connect(&self, kubeconfig: &Kubeconfig) -> Result<Client, RemoteError> {
        let Credential::Token(token) = &kubeconfig.credential else {
            return Err(RemoteError::Credential);
        };
        let service = GatedService {
            gates: self.gates.clone(),
            server: kubeconfig.server.clone(),
            token: String::from_utf8(token.expose().to_vec()).unwrap(),
        };
        Ok(Client::new(service, "default"))
    }

    fn policy(&self) -> AddressPolicy {
        AddressPolicy::default()
    }
}

#[derive(Clone)]
struct GatedService {
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
    server: String,
    token: String,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for GatedService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let gate = self.gates.lock().unwrap().get(&self.server).cloned();
        let token = self.token.clone();
        Box::pin(async move {
            let Some(gate) = gate.filter(|gate| !gate.is_dead) else {
                return std::future::pending().await;
            };
            if gate.token != token {
                return Ok(unauthorized());
            }
            Ok(gate.client.send(request).await?)
        })
    }
}

fn unauthorized() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    let response = Response::builder()
        .status(401)
        .header("content-type", "application/json");
    response
        .body(Body::from(status.to_string().into_bytes()))
        .unwrap()
}
