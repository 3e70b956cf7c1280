//! One client's way to the cluster: takes HTTP requests, gives HTTP responses, and meets the faults meant for it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, Request, Response, header};

use crate::api::{self, ApiRequest, ApiResponse, Outcome, Query};
use crate::auth::{Impersonation, User};
use crate::body::Body;
use crate::cluster::Cluster;
use crate::fault::{Fault, RequestKind};
use crate::status::Status;
use crate::trace::digest;

/// A service for `kube::Client::new`, or for any HTTP server.
#[derive(Clone, Debug)]
pub struct Connection {
    cluster: Cluster,
    client: String,
    user: User,
}

/// The request or its reply was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The client is dead.
    #[error("client {0} has crashed")]
    Crashed(String),
    /// The request or the reply was lost.
    #[error("connection reset by peer")]
    Lost,
    /// The request's body could not be read.
    #[error("the request's body could not be read")]
    Unreadable,
}

/// A request body has at most this many bytes, as the real server has it.
const LARGEST_BODY: usize = 3 << 20;

/// A request that needs more answers than this meets a world that changes faster than webhooks answer.
const MOST_QUESTIONS: usize = 256;

impl Connection {
    pub(crate) fn new(cluster: Cluster, client: &str, user: User) -> Self {
        Self {
            cluster,
            client: client.to_owned(),
            user,
        }
    }

    /// The cluster behind it.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    async fn handle<B>(self, request: Request<B>) -> Result<Response<Body>, TransportError>
    where
        B: http_body::Body,
    {
        self.handle_with(request, |_| Ok(())).await
    }

    /// Handles a request after `translate` has had its way with it.
    pub(crate) async fn handle_with<B>(
        &self,
        request: Request<B>,
        translate: impl FnOnce(&mut ApiRequest) -> Result<(), Status>,
    ) -> Result<Response<Body>, TransportError>
    where
        B: http_body::Body,
    {
        let (parts, body) = request.into_parts();
        let Some(body) = collect(body).await? else {
            let text = format!("Request entity too large: limit is {LARGEST_BODY}");
            let status = Status::new(413, "RequestEntityTooLarge", text);
            return Ok(respond(ApiResponse::from_status(&status)));
        };
        let mut call = self.call(&parts, body);
        match translate(&mut call) {
            Ok(()) => self.send(call).await,
            Err(status) => Ok(respond(ApiResponse::from_status(&status))),
        }
    }

    fn call(&self, parts: &http::request::Parts, body: Bytes) -> ApiRequest {
        let text = |name: header::HeaderName| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("")
                .to_owned()
        };
        ApiRequest {
            client: self.client.clone(),
            user: self.user.clone(),
            impersonation: Impersonation::from_headers(&parts.headers),
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: Query::parse(parts.uri.query().unwrap_or("")),
            accept: text(header::ACCEPT),
            content_type: text(header::CONTENT_TYPE),
            user_agent: text(header::USER_AGENT),
            body,
            webhook_replies: Vec::new(),
        }
    }

    /// Handles one call, faults included.
    pub async fn send(&self, mut call: ApiRequest) -> Result<Response<Body>, TransportError> {
        let line = format!("{} {}", call.method, call.path);
        let fault = self
            .cluster
            .with(|state| state.faults.next_fault(&self.client, sort(&call), &line));
        match &fault {
            Some(Fault::CrashBefore) => {
                return self.lost(&line, "crashed", TransportError::Crashed(self.client.clone()));
            }
            Some(Fault::LoseRequest) => return self.lost(&line, "request lost", TransportError::Lost),
            Some(Fault::Reject(status)) => {
                let answer = ApiResponse::from_status(status);
                self.note(&line, &format!("{} (injected)", answer.code));
                return Ok(respond(answer));
            }
            Some(Fault::Stale(lag)) => call.query.push(api::LAG, &lag.to_string()),
            _ => {}
        }
        let outcome = self.outcome(&mut call).await;
        if sort(&call) == RequestKind::Write {
            self.cluster.settle_if_automatic();
        }
        match fault {
            Some(Fault::CrashAfter) => {
                return self.lost(
                    &line,
                    "handled, then crashed",
                    TransportError::Crashed(self.client.clone()),
                );
            }
            Some(Fault::LoseResponse) => {
                return self.lost(&line, "handled, reply lost", TransportError::Lost);
            }
            Some(Fault::RejectAfter(status)) => {
                self.note(&line, &format!("handled, {} (injected)", status.code()));
                return Ok(respond(ApiResponse::from_status(&status)));
            }
            Some(Fault::Slow(by)) => self.cluster.sleep(by).await,
            _ => {}
        }
        Ok(self.respond(outcome, fault.as_ref(), &line))
    }

    async fn outcome(&self, call: &mut ApiRequest) -> Outcome {
        loop {
            if call.webhook_replies.len() > MOST_QUESTIONS {
                return Outcome::Response(ApiResponse::empty(500));
            }
            match self.cluster.with(|state| api::handle(state, call)) {
                Outcome::CallWebhook(question) => {
                    let answer = self.cluster.call_webhook(&question).await;
                    call.webhook_replies.push((question, answer));
                }
                done => return done,
            }
        }
    }

    fn respond(&self, outcome: Outcome, fault: Option<&Fault>, line: &str) -> Response<Body> {
        match outcome {
            Outcome::Response(mut answer) => {
                if fault == Some(&Fault::Truncate) {
                    let half = answer.body.len() / 2;
                    answer.body.truncate(half);
                }
                self.note_with(line, || format!("{} {:016x}", answer.code, digest(&answer.body)));
                respond(answer)
            }
            Outcome::Watch(mut watch) => {
                watch.inject_fault(fault.cloned());
                self.note(line, "watch");
                let mut response = Response::new(Body::watch(self.cluster.clone(), watch));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Outcome::CallWebhook(_) => respond(ApiResponse::empty(500)),
        }
    }

    fn lost<T>(&self, line: &str, what: &str, error: TransportError) -> Result<T, TransportError> {
        self.note(line, what);
        Err(error)
    }

    fn note(&self, line: &str, what: &str) {
        self.note_with(line, || what.to_owned());
    }

    fn note_with(&self, line: &str, what: impl FnOnce() -> String) {
        self.cluster.with(|state| {
            if state.trace.is_recorded() {
                let (now, what) = (state.now(), what());
                state
                    .trace
                    .line(now, &format!("{}: {line} -> {what}", self.client));
            }
        });
    }
}

fn sort(call: &ApiRequest) -> RequestKind {
    match call.method {
        Method::GET | Method::HEAD if call.query.flag("watch") => RequestKind::Watch,
        Method::GET | Method::HEAD => RequestKind::Read,
        _ => RequestKind::Write,
    }
}

pub(crate) fn respond(answer: ApiResponse) -> Response<Body> {
    let mut response = Response::new(Body::whole(answer.body));
    *response.status_mut() =
        http::StatusCode::from_u16(answer.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        if let Ok(value) = header::HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The whole body; `None` when it is too large.
pub(crate) async fn collect<B: http_body::Body>(body: B) -> Result<Option<Bytes>, TransportError> {
    let mut body = pin!(body);
    let mut out = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(frame) = frame else {
            return Err(TransportError::Unreadable);
        };
        if let Ok(mut data) = frame.into_data() {
            if out.len() + data.remaining() > LARGEST_BODY {
                return Ok(None);
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                out.extend_from_slice(chunk);
                let length = chunk.len();
                data.advance(length);
            }
        }
    }
    Ok(Some(out.freeze()))
}

impl<B> tower_service::Service<Request<B>> for Connection
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().handle(request))
    }
}
