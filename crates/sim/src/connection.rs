//! The connection of a client to the cluster: handles HTTP requests and injects faults.

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

/// A connection to a cluster: a `tower` service for `kube::Client::new` or any HTTP server.
#[derive(Clone, Debug)]
pub struct Connection {
    cluster: Cluster,
    client: String,
    user: User,
}

/// Failure of a request without an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The client has crashed.
    #[error("client {0} has crashed")]
    Crashed(String),
    /// The request or its response was lost.
    #[error("connection reset by peer")]
    Lost,
    /// The request body could not be read.
    #[error("failed to read the request body")]
    Unreadable,
}

/// Maximum size of a request body in bytes, as in the real server.
const MAX_BODY_SIZE: usize = 3 << 20;

/// Maximum number of webhook calls per request, in case the state changes on every retry.
const MAX_WEBHOOK_CALLS: usize = 256;

impl Connection {
    pub(crate) fn new(cluster: Cluster, client: &str, user: User) -> Self {
        Self {
            cluster,
            client: client.to_owned(),
            user,
        }
    }

    /// Returns the cluster of this connection.
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

    /// Converts a request with `translate` and handles it.
    pub(crate) async fn handle_with<B>(
        &self,
        request: Request<B>,
        translate: impl FnOnce(&mut ApiRequest) -> Result<(), Status>,
    ) -> Result<Response<Body>, TransportError>
    where
        B: http_body::Body,
    {
        let (parts, body) = request.into_parts();
        let Some(body) = read_body(body).await? else {
            let text = format!("Request entity too large: limit is {MAX_BODY_SIZE}");
            let status = Status::new(413, "RequestEntityTooLarge", text);
            return Ok(to_http_response(ApiResponse::from_status(&status)));
        };
        let mut request = self.api_request(&parts, body);
        match translate(&mut request) {
            Ok(()) => self.send(request).await,
            Err(status) => Ok(to_http_response(ApiResponse::from_status(&status))),
        }
    }

    fn api_request(&self, parts: &http::request::Parts, body: Bytes) -> ApiRequest {
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

    /// Handles one request and injects the faults that match it.
    pub async fn send(&self, mut request: ApiRequest) -> Result<Response<Body>, TransportError> {
        let line = format!("{} {}", request.method, request.path);
        let fault = self.cluster.with(|state| {
            state
                .faults
                .next_fault(&self.client, request_kind(&request), &line)
        });
        match &fault {
            Some(Fault::CrashBefore) => {
                return self.fail(&line, "crashed", TransportError::Crashed(self.client.clone()));
            }
            Some(Fault::LoseRequest) => return self.fail(&line, "request lost", TransportError::Lost),
            Some(Fault::Reject(status)) => {
                let response = ApiResponse::from_status(status);
                self.trace(&line, &format!("{} (injected)", response.code));
                return Ok(to_http_response(response));
            }
            Some(Fault::Stale(lag)) => request.query.push(api::LAG_PARAMETER, &lag.to_string()),
            _ => {}
        }
        let outcome = self.handle_with_webhooks(&mut request).await;
        if request_kind(&request) == RequestKind::Write {
            self.cluster.settle_if_automatic();
        }
        match fault {
            Some(Fault::CrashAfter) => {
                return self.fail(
                    &line,
                    "handled, then crashed",
                    TransportError::Crashed(self.client.clone()),
                );
            }
            Some(Fault::LoseResponse) => {
                return self.fail(&line, "handled, reply lost", TransportError::Lost);
            }
            Some(Fault::RejectAfter(status)) => {
                self.trace(&line, &format!("handled, {} (injected)", status.code()));
                return Ok(to_http_response(ApiResponse::from_status(&status)));
            }
            Some(Fault::Slow(by)) => self.cluster.sleep(by).await,
            _ => {}
        }
        Ok(self.outcome_response(outcome, fault.as_ref(), &line))
    }

    /// Handles a request and calls the webhooks that it requires.
    async fn handle_with_webhooks(&self, request: &mut ApiRequest) -> Outcome {
        loop {
            if request.webhook_replies.len() > MAX_WEBHOOK_CALLS {
                return Outcome::Response(ApiResponse::empty(500));
            }
            match self.cluster.with(|state| api::handle(state, request)) {
                Outcome::CallWebhook(call) => {
                    let response = self.cluster.call_webhook(&call).await;
                    request.webhook_replies.push((call, response));
                }
                outcome => return outcome,
            }
        }
    }

    fn outcome_response(&self, outcome: Outcome, fault: Option<&Fault>, line: &str) -> Response<Body> {
        match outcome {
            Outcome::Response(mut response) => {
                if fault == Some(&Fault::Truncate) {
                    let half = response.body.len() / 2;
                    response.body.truncate(half);
                }
                self.trace_with(line, || {
                    format!("{} {:016x}", response.code, digest(&response.body))
                });
                to_http_response(response)
            }
            Outcome::Watch(mut watch) => {
                watch.inject_fault(fault.cloned());
                self.trace(line, "watch");
                let mut response = Response::new(Body::from_watch(self.cluster.clone(), watch));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Outcome::CallWebhook(_) => to_http_response(ApiResponse::empty(500)),
        }
    }

    /// Adds a line to the trace and returns the error.
    fn fail<T>(&self, line: &str, what: &str, error: TransportError) -> Result<T, TransportError> {
        self.trace(line, what);
        Err(error)
    }

    fn trace(&self, line: &str, what: &str) {
        self.trace_with(line, || what.to_owned());
    }

    fn trace_with(&self, line: &str, what: impl FnOnce() -> String) {
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

fn request_kind(request: &ApiRequest) -> RequestKind {
    match request.method {
        Method::GET | Method::HEAD if request.query.flag("watch") => RequestKind::Watch,
        Method::GET | Method::HEAD => RequestKind::Read,
        _ => RequestKind::Write,
    }
}

pub(crate) fn to_http_response(from: ApiResponse) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(from.body));
    *response.status_mut() =
        http::StatusCode::from_u16(from.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in from.headers {
        if let Ok(value) = header::HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Reads the whole body. Returns `None` if it is larger than [`MAX_BODY_SIZE`].
pub(crate) async fn read_body<B: http_body::Body>(body: B) -> Result<Option<Bytes>, TransportError> {
    let mut body = pin!(body);
    let mut out = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(frame) = frame else {
            return Err(TransportError::Unreadable);
        };
        if let Ok(mut data) = frame.into_data() {
            if out.len() + data.remaining() > MAX_BODY_SIZE {
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
