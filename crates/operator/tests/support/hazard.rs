//! A client at whose n-th call something goes wrong once: for servers that cannot be told to fail.

mod missed;
mod stale;

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

use super::calls::Sort;
use stale::Question;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operator dies, and the call is not sent.
    CrashBefore,
    /// The call is sent, and the operator dies before anybody knows whether it arrives.
    CrashDuring,
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
    /// The answer is what was true so many versions of the cluster ago.
    Stale(u64),
    /// A watch ends as soon as it has begun.
    Dropped,
    /// This event of a watch, from 0, never comes; a moment later the watch expires, so that somebody lists again.
    EventMissed(usize),
}

/// What can happen to which calls, kind by kind: crashes, losses, conflicts, a server that has too much to do, stale reads, events that never come. As many
/// strikes as there are kinds, one after another, are one of each.
pub const KINDS: [&[(Sort, Fault)]; 6] = {
    use Fault::{
        CrashAfter, CrashBefore, CrashDuring, DoneThenRefused, Dropped, EventMissed, Refused, ReplyLost,
        RequestLost, Stale,
    };
    use Sort::{Read, Watch, Write};
    [
        &[
            (Write, CrashBefore),
            (Write, CrashDuring),
            (Write, CrashAfter),
            (Read, CrashAfter),
            (Watch, CrashAfter),
        ],
        &[
            (Write, ReplyLost),
            (Write, RequestLost),
            (Read, ReplyLost),
            (Read, RequestLost),
            (Watch, RequestLost),
            (Watch, Dropped),
        ],
        &[
            (Write, Refused(409)),
            (Write, DoneThenRefused(500)),
            (Write, DoneThenRefused(504)),
            (Watch, Refused(410)),
        ],
        &[
            (Write, Refused(429)),
            (Write, Refused(500)),
            (Write, Refused(503)),
            (Read, Refused(429)),
            (Read, Refused(503)),
            (Watch, Refused(429)),
        ],
        &[(Read, Stale(1)), (Read, Stale(5)), (Read, Stale(25))],
        &[
            (Watch, EventMissed(0)),
            (Watch, EventMissed(1)),
            (Watch, EventMissed(3)),
        ],
    ]
};

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

    fn note(&self) {
        self.struck.happened.store(true, Ordering::Relaxed);
    }

    /// It could not happen to this call: the next of its sort is struck.
    fn try_the_next(&self) {
        self.left.store(1, Ordering::Relaxed);
    }

    async fn strike(self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        // These two say so themselves, when it has happened.
        if !matches!(self.strike.fault, Fault::Stale(_) | Fault::EventMissed(_)) {
            self.note();
        }
        match self.strike.fault {
            Fault::CrashBefore => self.die().await,
            Fault::CrashDuring => {
                let client = self.client.clone();
                tokio::spawn(async move { client.send(request).await });
                tokio::task::yield_now().await;
                self.die().await
            }
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
            Fault::Dropped => Ok(Response::new(boxed(Body::empty()))),
            Fault::Stale(by) => self.stale(request, by).await,
            Fault::EventMissed(number) => {
                let answer = self.client.send(request).await?;
                Ok(answer.map(|body| missed::without(body, number, self)))
            }
        }
    }

    async fn stale(&self, request: Request<Body>, by: u64) -> Result<Response<Answer>, BoxError> {
        if let Some(answer) = Question::of(&request).answer(&self.client, by).await {
            self.note();
            return Ok(answer);
        }
        self.try_the_next();
        Ok(self.client.send(request).await?.map(boxed))
    }

    async fn die(&self) -> Result<Response<Answer>, BoxError> {
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
fn refusal(code: u16) -> Response<Answer> {
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
    said(code, &body)
}

/// An answer of this server's.
fn said(code: u16, body: &Value) -> Response<Answer> {
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    let body = Body::from(body.to_string().into_bytes());
    response.body(boxed(body)).unwrap()
}

/// The body of an answer.
pub type Answer = UnsyncBoxBody<Bytes, BoxError>;

fn boxed(body: Body) -> Answer {
    body.map_err(Into::into).boxed_unsync()
}

impl fmt::Debug for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hazard({:?})", self.strike)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Hazard {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            if this.is_struck(&request) {
                return this.strike(request).await;
            }
            Ok(this.client.send(request).await?.map(boxed))
        })
    }
}
