//! A client at whose n-th call something goes wrong once: for servers that cannot be told to fail.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;
use tower_service::Service;

use super::calls::Sort;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operator dies, and the call is not sent.
    CrashBefore,
    /// The call is answered, and the operator dies before it hears of it.
    CrashAfter,
    /// The call never arrives.
    RequestLost,
    /// The call is answered, and the answer never arrives.
    ReplyLost,
    /// The server refuses.
    Refused(u16),
    /// The server does it and says that it failed.
    DoneThenRefused(u16),
    /// A watch ends as soon as it has begun.
    Dropped,
}

/// What can happen to a call of a sort.
pub fn faults_of(sort: Sort) -> Vec<Fault> {
    use Fault::{CrashAfter, CrashBefore, DoneThenRefused, Dropped, Refused, ReplyLost, RequestLost};
    let any = [
        CrashBefore,
        CrashAfter,
        RequestLost,
        Refused(429),
        Refused(500),
        Refused(503),
    ];
    let own: &[Fault] = match sort {
        Sort::Write => &[
            ReplyLost,
            Refused(409),
            DoneThenRefused(500),
            DoneThenRefused(504),
        ],
        Sort::Read => &[ReplyLost],
        Sort::Watch => &[Refused(410), Dropped],
    };
    [&any, own].concat()
}

/// One fault at one call.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    pub sort: Sort,
    /// Which call of this sort, from 1.
    pub number: usize,
    pub fault: Fault,
}

/// What became of a strike.
#[derive(Clone, Default)]
pub struct Struck {
    /// It came to that call.
    pub happened: Arc<AtomicBool>,
    /// The operator is dead, and waits to be replaced.
    pub died: Arc<Notify>,
}

#[derive(Clone)]
pub struct Hazard {
    client: Client,
    strike: Strike,
    left: Arc<AtomicUsize>,
    struck: Struck,
}

impl Hazard {
    /// A client that fails at `strike`.
    pub fn client(client: Client, strike: Strike) -> (Client, Struck) {
        let struck = Struck::default();
        let hazard = Self {
            client,
            strike,
            left: Arc::new(AtomicUsize::new(strike.number)),
            struck: struck.clone(),
        };
        (Client::new(hazard, "default"), struck)
    }

    fn is_struck(&self, request: &Request<Body>) -> bool {
        sort_of(request) == self.strike.sort && self.left.fetch_sub(1, Ordering::Relaxed) == 1
    }

    async fn strike(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        self.struck.happened.store(true, Ordering::Relaxed);
        match self.strike.fault {
            Fault::CrashBefore => self.die().await,
            Fault::CrashAfter => {
                drop(self.client.send(request).await);
                self.die().await
            }
            Fault::RequestLost => Err(lost()),
            Fault::ReplyLost => {
                drop(self.client.send(request).await);
                Err(lost())
            }
            Fault::Refused(code) => Ok(refusal(code)),
            Fault::DoneThenRefused(code) => {
                drop(self.client.send(request).await);
                Ok(refusal(code))
            }
            Fault::Dropped => Ok(Response::new(Body::empty())),
        }
    }

    async fn die(&self) -> Result<Response<Body>, BoxError> {
        self.struck.died.notify_one();
        std::future::pending().await
    }
}

fn sort_of(request: &Request<Body>) -> Sort {
    let is_watch = || {
        request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"))
    };
    match *request.method() {
        Method::GET if is_watch() => Sort::Watch,
        Method::GET => Sort::Read,
        _ => Sort::Write,
    }
}

fn lost() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// As the server words it.
fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
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
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    response.body(Body::from(body.to_string().into_bytes())).unwrap()
}

impl fmt::Debug for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hazard({:?})", self.strike)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Hazard {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            if this.is_struck(&request) {
                return this.strike(request).await;
            }
            this.client.send(request).await.map_err(Into::into)
        })
    }
}
