//! Three small servers: metrics over HTTPS, authorized by the API server, the health probes, and reviews of
//! `IstioOperator`s over HTTPS.
//!
//! HTTP/1.1 only: HTTP/2 servers have had several denial-of-service vulnerabilities, and scrapers do not need
//! it.

mod access;
mod address;
mod certificate;
mod listen;

use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use access::{Access, ClusterGate, Gate};
pub use address::{AddressError, Bind};
pub use certificate::{CertificateError, Certificates};

use crate::health::Health;
use crate::metrics::Metrics;

/// A response with its whole body.
pub type ServerResponse = Response<Full<Bytes>>;
/// Handles a request.
pub(crate) type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, ServerResponse> + Send + Sync>;

/// Content type of `OpenMetrics`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A server that runs until `stop` turns true.
#[derive(Debug)]
pub struct Server {
    /// The address it listens on.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Waits until the server has ended.
    pub async fn ended(self) {
        let _ = self.task.await;
    }
}

/// A server cannot listen on its address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    address: String,
    source: std::io::Error,
}

/// Serves `/metrics` to clients that `gate` allows.
pub async fn serve_metrics(
    bind: &Bind,
    certificates: Certificates,
    gate: Arc<dyn Gate>,
    metrics: Arc<Metrics>,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let (gate, metrics) = (gate.clone(), metrics.clone());
        async move { scrape(&request, &*gate, &metrics).await }.boxed()
    });
    start(bind, Some(Arc::new(certificates)), handler, stop).await
}

async fn scrape(request: &Request<Incoming>, gate: &dyn Gate, metrics: &Metrics) -> ServerResponse {
    if request.uri().path() != "/metrics" {
        return not_found();
    }
    let token = access::bearer(request.headers());
    let verb = request.method().as_str().to_ascii_lowercase();
    match gate.check(token, verb).await {
        Access::Allowed if request.method() == Method::GET => {
            text(StatusCode::OK, OPEN_METRICS, metrics.text())
        }
        Access::Allowed => text(
            StatusCode::METHOD_NOT_ALLOWED,
            PLAIN,
            "Method Not Allowed\n".into(),
        ),
        rejected => text(rejected.status(), PLAIN, format!("{rejected}\n")),
    }
}

/// Serves `/healthz` and `/readyz` without authentication.
pub async fn serve_health(
    bind: &Bind,
    health: Arc<Health>,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let response = probe(request.uri().path(), &health);
        async move { response }.boxed()
    });
    start(bind, None, handler, stop).await
}

fn probe(path: &str, health: &Health) -> ServerResponse {
    let result = match path.trim_end_matches('/') {
        "/healthz" | "/healthz/healthz" | "/livez" => health.live(),
        "/readyz" | "/readyz/readyz" => health.ready(),
        _ => return not_found(),
    };
    match result {
        Ok(()) => text(StatusCode::OK, PLAIN, "ok".into()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")),
    }
}

/// The longest review in bytes; an object has at most 1.5 MiB, and an update has two.
const MAX_REVIEW: usize = 4 << 20;

/// Responds to an `AdmissionReview`.
pub type Reviewer = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// Serves reviews of `IstioOperator`s. Requests need no authentication: a review reads and writes nothing.
pub async fn serve_admission(
    bind: &Bind,
    certificates: Arc<Certificates>,
    reviewer: Reviewer,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let reviewer = reviewer.clone();
        async move { respond(request, reviewer).await }.boxed()
    });
    start(bind, Some(certificates), handler, stop).await
}

async fn respond(request: Request<Incoming>, reviewer: Reviewer) -> ServerResponse {
    if request.uri().path() != mainstay_cluster::admission::PATH {
        return not_found();
    }
    if request.method() != Method::POST {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return text(status, PLAIN, "Method Not Allowed\n".into());
    }
    let rejected = |message: &str| text(StatusCode::BAD_REQUEST, PLAIN, format!("{message}\n"));
    let Ok(body) = Limited::new(request.into_body(), MAX_REVIEW).collect().await else {
        return rejected("the review is too large or incomplete");
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return rejected("the review is not JSON");
    };
    // Rendering takes a while.
    let outcome = tokio::task::spawn_blocking(move || reviewer(&review)).await;
    if let Ok(response) = outcome {
        return text(StatusCode::OK, JSON, response.to_string());
    }
    let message = "internal error: the review panicked\n";
    text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, message.into())
}

async fn start(
    bind: &Bind,
    certificates: Option<Arc<Certificates>>,
    handler: Handler,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let failed = |source| ListenError {
        address: bind.to_string(),
        source,
    };
    let listener = bind.listen().await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let task = tokio::spawn(listen::run(listener, certificates, handler, stop));
    Ok(Server { address, task })
}

fn not_found() -> ServerResponse {
    text(StatusCode::NOT_FOUND, PLAIN, "404 page not found\n".into())
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> ServerResponse {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        http::HeaderValue::from_static("nosniff"),
    );
    response
}

#[cfg(test)]
mod tests;
