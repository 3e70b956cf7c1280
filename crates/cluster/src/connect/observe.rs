//! Reports every call of a client to an observer, for `--verbose`.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::{BoxError, ResponseFuture, unwrap_service_error};

/// A completed call.
#[derive(Clone, Debug)]
pub struct CompletedCall {
    /// Method of the request.
    pub method: Method,
    /// Path and query of the request.
    pub path: String,
    /// Status code of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// Time from the request to the response.
    pub duration: Duration,
}

/// Callback for every completed call.
pub type Observer = Arc<dyn Fn(&CompletedCall) + Send + Sync>;

/// Wraps a client so that `observer` receives every call.
#[must_use]
pub fn observe(client: Client, observer: Observer) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Observed { client, observer }, namespace)
}

#[derive(Clone)]
struct Observed {
    client: Client,
    observer: Observer,
}

impl Service<Request<Body>> for Observed {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let Self { client, observer } = self.clone();
        Box::pin(async move {
            let method = request.method().clone();
            let path = request
                .uri()
                .path_and_query()
                .map(ToString::to_string)
                .unwrap_or_default();
            let start = Instant::now();
            let response = client.send(request).await.map_err(unwrap_service_error);
            observer(&CompletedCall {
                method,
                path,
                status: response.as_ref().ok().map(|response| response.status().as_u16()),
                duration: start.elapsed(),
            });
            response
        })
    }
}
