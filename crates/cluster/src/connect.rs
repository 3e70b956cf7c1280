//! Clients with a timeout on every call, without automatic retries, and with a fence before every write.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::time::{Instant, timeout};
use tower_service::Service;

/// Timeout of one call including its response. A watch must start within it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The field manager.
pub const MANAGER: &str = "mainstay";

/// Creates a client without automatic retries: the caller decides what a failure means.
pub fn connect(mut config: Config) -> Result<Client, kube::Error> {
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.build())
}

/// Callback for every completed call: the verb as Kubernetes counts it, and the status code or 0.
pub type Meter = Arc<dyn Fn(&'static str, u16) + Send + Sync>;

/// Wraps a client with a timeout on every call and `fence` before every write.
#[must_use]
pub fn guard(client: Client, fence: Fence, meter: Meter) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Guarded { client, fence, meter }, namespace)
}

/// Whether writes are allowed; clones share the state.
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
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open => true,
            State::OpenUntil(until) => Instant::now() < until,
            State::Closed => false,
        }
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Why a call has no response.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The call timed out.
    #[error("no response within {} seconds", DEADLINE.as_secs())]
    Late,
    /// Another process is the leader.
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
type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
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
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    if is_write(request.method()) && !fence.is_open() {
        return Err(CallError::Fenced.into());
    }
    let whole = async {
        let response = client.send(request).await.map_err(flat)?;
        if verb == "watch" && response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(flat)?.to_bytes();
        Ok(Response::from_parts(parts, Body::from(bytes)))
    };
    timeout(DEADLINE, whole)
        .await
        .unwrap_or_else(|_| Err(CallError::Late.into()))
}

/// The inner client wraps errors; unwrapped here so that the chain does not repeat them.
fn flat(error: kube::Error) -> BoxError {
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
