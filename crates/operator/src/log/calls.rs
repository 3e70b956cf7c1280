//! Logs every API call before it is sent, without body and headers.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;

/// Returns a client that logs each call before it is sent.
#[must_use]
pub fn log_calls(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(LoggingClient(client), namespace)
}

#[derive(Clone)]
struct LoggingClient(Client);

impl tower_service::Service<Request<Body>> for LoggingClient {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        tracing::info!(method = %request.method(), URL = %request.uri(), "Performing API request");
        let client = self.0.clone();
        Box::pin(async move { client.send(request).await })
    }
}
