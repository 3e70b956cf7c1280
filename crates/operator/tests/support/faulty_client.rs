//! A client that injects one fault at its n-th call. It is used with real servers, which have no fault
//! injection.

mod missed_event;
mod stale_read;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_service::Service;

use super::calls::CallKind;
use stale_read::ReadRequest;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operator crashes before it sends the request.
    CrashBefore,
    /// The operator crashes while the call is in flight.
    CrashDuring,
    /// The operator crashes before it receives the response.
    CrashAfter,
    /// The request is lost.
    RequestLost,
    /// The response is lost.
    ResponseLost,
    /// The server rejects the request.
    Rejected(u16),
    /// The server executes the request and responds with an error.
    ExecutedThenRejected(u16),
    /// The response is outdated by this many versions.
    Stale(u64),
    /// The watch ends immediately.
    Dropped,
    /// The event of a watch with this number, starting at 0, is dropped. Shortly afterwards the watch
    /// expires, so that the operator lists again.
    EventMissed(usize),
}

/// Faults by kind: crashes, lost messages, conflicts, an overloaded server, stale reads, missed events.
/// Samples cycle through the kinds.
pub const KINDS: [&[(CallKind, Fault)]; 6] = {
    use CallKind::{Read, Watch, Write};
    use Fault::{
        CrashAfter, CrashBefore, CrashDuring, Dropped, EventMissed, ExecutedThenRejected, Rejected,
        RequestLost, ResponseLost, Stale,
    };
    [
        &[
            (Write, CrashBefore),
            (Write, CrashDuring),
            (Write, CrashAfter),
            (Read, CrashAfter),
            (Watch, CrashAfter),
        ],
        &[
            (Write, ResponseLost),
            (Write, RequestLost),
            (Read, ResponseLost),
            (Read, RequestLost),
            (Watch, RequestLost),
            (Watch, Dropped),
        ],
        &[
            (Write, Rejected(409)),
            (Write, ExecutedThenRejected(500)),
            (Write, ExecutedThenRejected(504)),
            (Watch, Rejected(410)),
        ],
        &[
            (Write, Rejected(429)),
            (Write, Rejected(500)),
            (Write, Rejected(503)),
            (Read, Rejected(429)),
            (Read, Rejected(503)),
            (Watch, Rejected(429)),
        ],
        &[(Read, Stale(1)), (Read, Stale(5)), (Read, Stale(25))],
        &[
            (Watch, EventMissed(0)),
            (Watch, EventMissed(1)),
            (Watch, EventMissed(3)),
        ],
    ]
};

/// A fault at one call.
#[derive(Clone, Copy, Debug)]
pub struct InjectedFault {
    pub kind: CallKind,
    /// Number of the call of this kind, starting at 1.
    pub number: usize,
    pub fault: Fault,
}

/// Progress of an injected fault.
#[derive(Clone, Default)]
pub struct FaultState {
    /// Whether the fault was injected.
    pub happened: Arc<AtomicBool>,
    /// Notified when the operator has crashed and must be restarted.
    pub crashed: Arc<Notify>,
}

#[derive(Clone)]
pub struct FaultyClient {
    client: Client,
    injected: InjectedFault,
    remaining: Arc<AtomicUsize>,
    fault_state: FaultState,
}

/// A function that wraps a client.
pub type ClientWrapper = Arc<dyn Fn(Client) -> Client + Send + Sync>;

impl FaultyClient {
    /// Wraps a client so that the fault is injected at its call.
    pub fn client(client: Client, injected: InjectedFault) -> (Client, FaultState) {
        let (wrap, fault_state) = Self::wrapper(injected);
        (wrap(client), fault_state)
    }

    /// Returns a function that wraps clients. The clients share one call counter, so the fault occurs once.
    pub fn wrapper(injected: InjectedFault) -> (ClientWrapper, FaultState) {
        let fault_state = FaultState::default();
        let remaining = Arc::new(AtomicUsize::new(injected.number));
        let shared_state = fault_state.clone();
        let wrap = move |client| {
            let faulty_client = Self {
                client,
                injected,
                remaining: Arc::clone(&remaining),
                fault_state: shared_state.clone(),
            };
            Client::new(faulty_client, "default")
        };
        (Arc::new(wrap), fault_state)
    }

    fn is_due(&self, request: &Request<Body>) -> bool {
        call_kind(request) == self.injected.kind && self.remaining.fetch_sub(1, Ordering::Relaxed) == 1
    }

    fn record(&self) {
        self.fault_state.happened.store(true, Ordering::Relaxed);
    }

    /// Defers the fault to the next call of its kind, because it is not possible at the current call.
    fn defer(&self) {
        self.remaining.store(1, Ordering::Relaxed);
    }

    async fn inject(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        // Stale reads and missed events are recorded when they take effect.
        if !matches!(self.injected.fault, Fault::Stale(_) | Fault::EventMissed(_)) {
            self.record();
        }
        match self.injected.fault {
            Fault::CrashBefore => self.crash().await,
            Fault::CrashDuring => {
                let client = self.client.clone();
                tokio::spawn(async move { client.send(request).await });
                tokio::task::yield_now().await;
                self.crash().await
            }
            Fault::CrashAfter => {
                drop(self.client.send(request).await);
                self.crash().await
            }
            Fault::RequestLost => Err(connection_reset()),
            Fault::ResponseLost => {
                drop(self.client.send(request).await);
                Err(connection_reset())
            }
            Fault::Rejected(code) => Ok(rejection(code)),
            Fault::ExecutedThenRejected(code) => {
                drop(self.client.send(request).await);
                Ok(rejection(code))
            }
            Fault::Dropped => Ok(Response::new(boxed(Body::empty()))),
            Fault::Stale(by) => self.stale(request, by).await,
            Fault::EventMissed(number) => {
                let response = self.client.send(request).await?;
                Ok(response.map(|body| missed_event::drop_event(body, number, self)))
            }
        }
    }

    async fn stale(&self, request: Request<Body>, by: u64) -> Result<Response<ResponseBody>, BoxError> {
        if let Some(response) = ReadRequest::new(&request).stale_response(&self.client, by).await {
            self.record();
            return Ok(response);
        }
        self.defer();
        Ok(self.client.send(request).await?.map(boxed))
    }

    async fn crash(&self) -> Result<Response<ResponseBody>, BoxError> {
        self.fault_state.crashed.notify_one();
        std::future::pending().await
    }
}

fn call_kind(request: &Request<Body>) -> CallKind {
    let is_watch = || {
        request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"))
    };
    match *request.method() {
        Method::GET if is_watch() => CallKind::Watch,
        Method::GET => CallKind::Read,
        _ => CallKind::Write,
    }
}

fn connection_reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// Returns an error response as the server would.
fn rejection(code: u16) -> Response<ResponseBody> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected fault", "reason": reason, "code": code,
        "details": {"retryAfterSeconds": u8::from(code == 429)},
    });
    json_response(code, &body)
}

fn json_response(code: u16, body: &Value) -> Response<ResponseBody> {
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    let body = Body::from(body.to_string().into_bytes());
    response.body(boxed(body)).unwrap()
}

/// Body of a response.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

fn boxed(body: Body) -> ResponseBody {
    body.map_err(Into::into).boxed_unsync()
}

impl fmt::Debug for FaultyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyClient({:?})", self.injected)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for FaultyClient {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            if this.is_due(&request) {
                return this.inject(request).await;
            }
            Ok(this.client.send(request).await?.map(boxed))
        })
    }
}
