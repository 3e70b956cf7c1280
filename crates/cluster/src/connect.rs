//! Clients without automatic retries, with a timeout on every call and a fence that can reject writes.

mod observe;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

use crate::tls;
pub use observe::{CompletedCall, Observer, observe};

/// Timeout of one call including its response body. For a watch, only the start of the response counts.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Maximum accepted `Retry-After`.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// Field manager of all writes.
pub const MANAGER: &str = "mainstay";

/// Creates a client without automatic retries, because callers handle failures themselves. As in Go, a
/// server certificate that is itself a CA certificate is accepted.
pub fn connect(mut config: Config) -> Result<Client, kube::Error> {
    config.default_retry = false;
    // kube's own client renews the credentials of exec plugins.
    if !tls::has_own_bundle(&config) || config.auth_info.exec.is_some() {
        return Ok(ClientBuilder::try_from(config)?.build());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    let connector = tls::https_connector(&config, connector)?;
    let transport = Transport(HttpClient::builder(TokioExecutor::new()).build(connector));
    let builder = ClientBuilder::new(transport, config.default_namespace.clone());
    let (builder, base) = (
        builder.with_layer(&config.extra_headers_layer()?),
        config.base_uri_layer(),
    );
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).with_layer(&base).build(),
        None => builder.with_layer(&base).build(),
    })
}

/// Sends requests over TLS.
#[derive(Clone)]
struct Transport(HttpClient<HttpsConnector<HttpConnector>, Body>);

impl Service<Request<Body>> for Transport {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = self.0.request(request);
        Box::pin(async move { Ok(response.await?) })
    }
}

/// Callback for every completed call, with the verb as in the metrics of Kubernetes, and the status code
/// (0 without a response).
pub type Meter = Arc<dyn Fn(&'static str, u16) + Send + Sync>;

/// Wraps a client so that every call has a timeout and every write is checked against `fence`.
#[must_use]
pub fn guard(client: Client, fence: Fence, meter: Meter) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Guarded { client, fence, meter }, namespace)
}

/// Shared flag that allows or rejects writes. Clones share the state.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug)]
enum State {
    Open,
    OpenUntil(Instant),
    Closed,
}

impl Fence {
    /// Creates a fence that always allows writes.
    #[must_use]
    pub fn open() -> Self {
        Self(Arc::new(Mutex::new(State::Open)))
    }

    /// Creates a fence that rejects writes until [`Fence::hold_open`].
    #[must_use]
    pub fn closed() -> Self {
        Self(Arc::new(Mutex::new(State::Closed)))
    }

    /// Allows writes until this instant of the monotonic clock.
    pub fn hold_open(&self, until: Instant) {
        self.set(State::OpenUntil(until));
    }

    /// Rejects all further writes.
    pub fn close(&self) {
        self.set(State::Closed);
    }

    /// Whether writes are allowed now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.write_limit().is_some()
    }

    /// Returns the time limit of a write that starts now, or `None` if it must not start. A longer write
    /// could be stored after another process has become the leader.
    fn write_limit(&self) -> Option<WriteLimit> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open => Some(WriteLimit::Deadline),
            State::OpenUntil(until) => {
                let left = until.saturating_duration_since(Instant::now());
                (!left.is_zero()).then_some(WriteLimit::Lease(left.min(DEADLINE)))
            }
            State::Closed => None,
        }
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Limit on the duration of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteLimit {
    /// The write is limited by the timeout of every call.
    Deadline,
    /// The write is limited by the time for which the Lease is certainly held.
    Lease(Duration),
}

/// Reason why a call has no response.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The call timed out.
    #[error("no response within {} seconds", .0.as_secs())]
    TimedOut(Duration),
    /// The fence rejected the write because another process is the leader.
    #[error("not the leader: nothing is written")]
    Fenced,
}

#[derive(Clone)]
struct Guarded {
    client: Client,
    fence: Fence,
    meter: Meter,
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type GuardedBody = UnsyncBoxBody<Bytes, BoxError>;
type ResponseFuture<B = Body> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

impl Service<Request<Body>> for Guarded {
    type Response = Response<GuardedBody>;
    type Error = BoxError;
    type Future = ResponseFuture<GuardedBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture<GuardedBody> {
        let Self { client, fence, meter } = self.clone();
        Box::pin(async move {
            let verb = verb(&request);
            let response = send_within_deadline(&client, &fence, verb, request).await;
            meter(
                verb,
                response.as_ref().map_or(0, |response| response.status().as_u16()),
            );
            response
        })
    }
}

async fn send_within_deadline(
    client: &Client,
    fence: &Fence,
    verb: &'static str,
    mut request: Request<Body>,
) -> Result<Response<GuardedBody>, BoxError> {
    let mut limit = DEADLINE;
    if is_write(request.method()) {
        match fence.write_limit() {
            None => return Err(CallError::Fenced.into()),
            Some(WriteLimit::Deadline) => {}
            Some(WriteLimit::Lease(left)) => {
                limit = left;
                limit_on_server(&mut request, left);
            }
        }
    }
    let end = Instant::now() + limit;
    let whole = async {
        let response = client.send(request).await.map_err(unwrap_service_error)?;
        let is_success = response.status().is_success();
        let (parts, body) = response.into_parts();
        let body = match verb {
            "watch" if is_success => body.map_err(unwrap_service_error).boxed_unsync(),
            "list" if is_success => with_deadline(body, end, limit),
            _ => {
                let bytes = body.collect().await.map_err(unwrap_service_error)?.to_bytes();
                Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
            }
        };
        Ok(Response::from_parts(parts, body))
    };
    timeout_at(end, whole)
        .await
        .unwrap_or_else(|_| Err(CallError::TimedOut(limit).into()))
}

/// Returns a body that fails at the deadline. A list is not collected here, because it may be large: its
/// reader processes one item after the other.
fn with_deadline(body: Body, end: Instant, limit: Duration) -> GuardedBody {
    let frames = futures::stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match timeout_at(end, body.frame()).await {
            Ok(frame) => Some((frame?.map_err(unwrap_service_error), Some(body))),
            Err(_) => Some((Err(CallError::TimedOut(limit).into()), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Sets the server-side timeout of a write, because closing the connection does not stop it. Rounding up
/// to a full second is safe: the Lease lasts five seconds longer than the fence is open.
fn limit_on_server(request: &mut Request<Body>, limit: Duration) {
    let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    let uri = request.uri().to_string();
    let separator = if request.uri().query().is_some() { '&' } else { '?' };
    if let Ok(uri) = format!("{uri}{separator}timeout={seconds}s").parse() {
        *request.uri_mut() = uri;
    }
}

/// Unwraps the error of the inner client, so that the error chain does not repeat it.
fn unwrap_service_error(error: kube::Error) -> BoxError {
    match error {
        kube::Error::Service(inner) => inner,
        other => other.into(),
    }
}

fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn verb(request: &Request<Body>) -> &'static str {
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if query.contains("watch=") => "watch",
        _ if query.contains("limit=") => "list",
        _ => "get",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fenced_write_has_a_limit_on_the_server_too() {
        let check = |path: &str, millis: u64, expected: &str| {
            let mut request = Request::post(path).body(Body::empty()).unwrap();
            limit_on_server(&mut request, Duration::from_millis(millis));
            assert_eq!(request.uri().to_string(), expected);
        };
        check(
            "/api/v1/a?fieldManager=b",
            7_500,
            "/api/v1/a?fieldManager=b&timeout=8s",
        );
        check("/api/v1/a", 10_000, "/api/v1/a?timeout=10s");
        check("/api/v1/a", 1, "/api/v1/a?timeout=1s");
    }
}
