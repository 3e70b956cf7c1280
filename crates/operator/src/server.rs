//! Three small servers: metrics over HTTPS with authorization by the API server, health probes over HTTP,
//! and admission reviews of `IstioOperator`s over HTTPS.
//!
//! They support only HTTP/1.1: HTTP/2 servers have had several denial-of-service vulnerabilities, and
//! scrapers do not need HTTP/2.

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

pub use access::{Access, Authorizer, ClusterAuthorizer};
pub use address::{AddressError, Bind};
pub use certificate::{CertificateError, Certificates};

use crate::health::Health;
use crate::metrics::Metrics;

/// A response with a complete body.
pub type ServerResponse = Response<Full<Bytes>>;
/// Handler of requests.
pub(crate) type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, ServerResponse> + Send + Sync>;

/// Content type of the `OpenMetrics` text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// A running server. It runs until its `stop` channel becomes true.
#[derive(Debug)]
pub struct Server {
    /// Address on which the server listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Waits until the server has ended.
    pub async fn ended(self) {
        let _ = self.task.await;
    }
}

/// Error of listening on the address of a server.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    address: String,
    source: std::io::Error,
}

/// Serves `/metrics` to clients that are allowed by `authorizer`.
pub async fn serve_metrics(
    bind: &Bind,
    certificates: Certificates,
    authorizer: Arc<dyn Authorizer>,
    metrics: Arc<Metrics>,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let (authorizer, metrics) = (authorizer.clone(), metrics.clone());
        async move { scrape(&request, &*authorizer, &metrics).await }.boxed()
    });
    start_server(bind, Some(Arc::new(certificates)), handler, stop).await
}

async fn scrape(
    request: &Request<Incoming>,
    authorizer: &dyn Authorizer,
    metrics: &Metrics,
) -> ServerResponse {
    if request.uri().path() != "/metrics" {
        return not_found();
    }
    let token = access::bearer_token(request.headers());
    let verb = request.method().as_str().to_ascii_lowercase();
    match authorizer.check(token, verb).await {
        Access::Allowed if request.method() == Method::GET => {
            text_response(StatusCode::OK, OPEN_METRICS, metrics.text())
        }
        Access::Allowed => text_response(
            StatusCode::METHOD_NOT_ALLOWED,
            PLAIN,
            "Method Not Allowed\n".into(),
        ),
        rejected => text_response(rejected.status(), PLAIN, format!("{rejected}\n")),
    }
}

/// Serves `/healthz` and `/readyz` without authentication.
pub async fn serve_health(
    bind: &Bind,
    health: Arc<Health>,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let response = respond_to_probe(request.uri().path(), &health);
        async move { response }.boxed()
    });
    start_server(bind, None, handler, stop).await
}

fn respond_to_probe(path: &str, health: &Health) -> ServerResponse {
    let result = match path.trim_end_matches('/') {
        "/healthz" | "/healthz/healthz" | "/livez" => health.live(),
        "/readyz" | "/readyz/readyz" => health.ready(),
        _ => return not_found(),
    };
    match result {
        Ok(()) => text_response(StatusCode::OK, PLAIN, "ok".into()),
        Err(error) => text_response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")),
    }
}

/// Maximum size of a review in bytes. An object has at most 1.5 MiB, and the review of an update contains
/// two objects.
const MAX_REVIEW_BYTES: usize = 4 << 20;

/// Function that returns the response to an `AdmissionReview`.
pub type Reviewer = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// Serves admission reviews of `IstioOperator`s. Requests need no authentication, because a review does not
/// access the cluster.
pub async fn serve_admission(
    bind: &Bind,
    certificates: Arc<Certificates>,
    reviewer: Reviewer,
    stop: watch::Receiver<bool>,
) -> Result<Server, ListenError> {
    let handler: Handler = Arc::new(move |request| {
        let reviewer = reviewer.clone();
        async move { respond_to_review(request, reviewer).await }.boxed()
    });
    start_server(bind, Some(certificates), handler, stop).await
}

async fn respond_to_review(request: Request<Incoming>, reviewer: Reviewer) -> ServerResponse {
    if request.uri().path() != mainstay_cluster::admission::PATH {
        return not_found();
    }
    if request.method() != Method::POST {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        return text_response(status, PLAIN, "Method Not Allowed\n".into());
    }
    let rejected = |message: &str| text_response(StatusCode::BAD_REQUEST, PLAIN, format!("{message}\n"));
    let Ok(body) = Limited::new(request.into_body(), MAX_REVIEW_BYTES)
        .collect()
        .await
    else {
        return rejected("the review is too large or incomplete");
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return rejected("the review is not JSON");
    };
    // A review renders charts, which takes milliseconds of CPU time.
    let outcome = tokio::task::spawn_blocking(move || reviewer(&review)).await;
    if let Ok(response) = outcome {
        return text_response(StatusCode::OK, JSON, response.to_string());
    }
    let message = "internal error: the review panicked\n";
    text_response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, message.into())
}

async fn start_server(
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
    let task = tokio::spawn(listen::serve_connections(listener, certificates, handler, stop));
    Ok(Server { address, task })
}

fn not_found() -> ServerResponse {
    text_response(StatusCode::NOT_FOUND, PLAIN, "404 page not found\n".into())
}

fn text_response(status: StatusCode, content_type: &'static str, body: String) -> ServerResponse {
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
