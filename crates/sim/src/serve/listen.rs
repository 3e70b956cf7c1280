//! Accepts connections and passes each request to the cluster with its authenticated user.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use mainstay_listen::{Limits, Server};
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::connections::{Connections, OpenConnection, RequestInProgress};
use super::tls::ClientVerifier;
use super::{Pace, protobuf};
use crate::api::{ApiRequest, ApiResponse};
use crate::auth::{Authenticator, User};
use crate::body::{Body, Guard};
use crate::cluster::Cluster;
use crate::connection::{TransportError, to_http_response};
use crate::schema::Schema;
use crate::status::Status;

/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request, or of the start of a watch, equal to the timeout of the real server.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum time to wait for requests in progress at shutdown. Watches do not end by themselves and are
/// aborted after this time.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_millis(300);
/// Maximum number of concurrent streams per HTTP/2 connection, equal to the default of Go's server.
const MAX_STREAMS: u32 = 250;

/// State that all connections share.
pub(super) struct Host {
    pub(super) cluster: Cluster,
    pub(super) authenticator: Authenticator,
    pub(super) pace: Pace,
    pub(super) tls: TlsAcceptor,
    pub(super) clients: ClientVerifier,
    pub(super) max_connections: usize,
}

impl Guard for RequestInProgress {}

/// Accepts connections until stopped.
pub(super) async fn run(listener: TcpListener, host: Host, stopped: watch::Receiver<bool>) {
    let limits = Limits {
        connections: host.max_connections,
        shutdown_grace_period: 2 * SHUTDOWN_GRACE_PERIOD,
    };
    let api = Api {
        host: Arc::new(host),
        open: Arc::new(Connections::default()),
        stopped: stopped.clone(),
    };
    mainstay_listen::run(listener, limits, api, stopped).await;
}

/// The API as a server. Idle connections are closed when it needs capacity.
struct Api {
    host: Arc<Host>,
    open: Arc<Connections>,
    stopped: watch::Receiver<bool>,
}

impl Server for Api {
    fn serve(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let (host, stopped, connection) = (Arc::clone(&self.host), self.stopped.clone(), self.open.open());
        async move {
            tokio::select! {
                () = connection.wait_for_close() => {}
                () = serve_connection(stream, host, &connection, stopped) => {}
            }
        }
    }

    fn free_capacity(&self) {
        self.open.close_idle();
    }
}

async fn serve_connection(
    stream: TcpStream,
    host: Arc<Host>,
    open: &Arc<OpenConnection>,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, host.tls.accept(stream)).await else {
        return;
    };
    let peer_certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer_certificates: Arc<[CertificateDer<'static>]> = peer_certificates
        .iter()
        .cloned()
        .map(CertificateDer::into_owned)
        .collect();
    let service = service_fn(|request| {
        let in_progress = open.begin_request();
        let response = handle_request(Arc::clone(&host), Arc::clone(&peer_certificates), request);
        async move {
            let mut response = response.await?;
            response.body_mut().set_guard(in_progress);
            Ok::<_, TransportError>(response)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(SHUTDOWN_GRACE_PERIOD, connection).await;
}

/// Authenticates a request by its headers and the client certificates of its connection. As in the real
/// server, a request with an untrusted or expired certificate and without a token is rejected instead of
/// being treated as anonymous.
fn authenticate(
    host: &Host,
    peer_certificates: &[CertificateDer<'_>],
    headers: &http::HeaderMap,
) -> Result<User, Status> {
    let now = host.cluster.with(|state| state.now().as_seconds());
    let now = Duration::from_secs(u64::try_from(now).unwrap_or_default());
    let verified = host.clients.verified_certificate(peer_certificates, now);
    let user = host.authenticator.authenticate(headers, verified)?;
    let is_untrusted = !peer_certificates.is_empty() && verified.is_none();
    if is_untrusted && user == User::anonymous() {
        return Err(Status::unauthorized());
    }
    Ok(user)
}

async fn handle_request(
    host: Arc<Host>,
    peer_certificates: Arc<[CertificateDer<'static>]>,
    request: Request<Incoming>,
) -> Result<Response<Body>, TransportError> {
    host.pace.catch_up(&host.cluster);
    let user = match authenticate(&host, &peer_certificates, request.headers()) {
        Ok(user) => user,
        Err(status) => return Ok(to_http_response(ApiResponse::from_status(&status))),
    };
    let connection = host.cluster.connect_as(client_name(&request), user);
    let streaming = streaming_request(&request);
    match timeout(
        REQUEST_TIMEOUT,
        connection.handle_with(request, decode_protobuf_body),
    )
    .await
    {
        Ok(Ok(response)) if streaming.is_some_and(|code| code == response.status()) => Ok(to_http_response(
            ApiResponse::from_status(&no_containers_status()),
        )),
        Ok(response) => response,
        Err(_) => Ok(to_http_response(ApiResponse::text(
            504,
            "the request timed out\n",
        ))),
    }
}

/// Returns the status code that the API returns for an authorized request to a process in a pod (logs, exec,
/// attach, port-forward), or `None` for other requests. Simulated pods have no processes, so this response is
/// replaced by an error.
fn streaming_request(request: &Request<Incoming>) -> Option<StatusCode> {
    let path = request.uri().path();
    let (_, last) = path.rsplit_once('/')?;
    match last {
        "log" if path.contains("/pods/") => Some(StatusCode::OK),
        "exec" | "attach" | "portforward" if request.headers().contains_key(header::UPGRADE) => {
            Some(StatusCode::BAD_REQUEST)
        }
        _ => None,
    }
}

fn no_containers_status() -> Status {
    let text = "the pods of this cluster are simulated: no container runs in them, so there are no logs, no commands and no ports";
    Status::new(501, "NotImplemented", text)
}

/// Converts a protobuf body to JSON, because the API accepts only JSON.
fn decode_protobuf_body(request: &mut ApiRequest) -> Result<(), Status> {
    if request.content_type != protobuf::MEDIA_TYPE || request.body.is_empty() {
        return Ok(());
    }
    let decoded = protobuf::decode(Schema::builtin(), &request.body);
    let value = decoded.map_err(|error| Status::bad_request(error.to_string()))?;
    request.body = value.to_string().into();
    "application/json".clone_into(&mut request.content_type);
    Ok(())
}

/// Returns the name of the client for faults and traces: the program in its user agent.
fn client_name(request: &Request<Incoming>) -> &str {
    let agent = request.headers().get(header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or("");
    match agent.split(['/', ' ']).next() {
        None | Some("") => "unnamed",
        Some(name) => name,
    }
}
