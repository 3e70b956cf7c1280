//! Connections: takes a listener, gives each request to the cluster as the user that sent it.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::tls::Clients;
use super::{Pace, protobuf};
use crate::api::{ApiRequest, ApiResponse};
use crate::auth::{Authenticator, User};
use crate::body::Body;
use crate::cluster::Cluster;
use crate::connection::{TransportError, respond};
use crate::schema::Schema;
use crate::status::Status;

/// A client that does not finish its handshake is let go after this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A request that is not answered (or begun to be, for a watch) after this long is given up, as the real server does.
const REQUEST: Duration = Duration::from_mins(1);
/// What is under way when the server stops has this long to end; watches never do by themselves.
const FAREWELL: Duration = Duration::from_millis(300);
/// Requests at once on one HTTP/2 connection, as Go's server has it.
const STREAMS: u32 = 250;

/// Everything a connection needs.
pub(super) struct Host {
    pub(super) cluster: Cluster,
    pub(super) authenticator: Authenticator,
    pub(super) pace: Pace,
    pub(super) tls: TlsAcceptor,
    pub(super) clients: Clients,
    pub(super) most_connections: usize,
}

/// Serves until told to stop.
pub(super) async fn run(listener: TcpListener, host: Host, mut stopped: watch::Receiver<bool>) {
    let seats = Arc::new(Semaphore::new(host.most_connections.max(1)));
    let host = Arc::new(host);
    let mut guests = JoinSet::new();
    loop {
        while guests.try_join_next().is_some() {}
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            _ = stopped.changed() => break,
            accepted = listener.accept() => accepted,
        };
        if let Ok((stream, _)) = stream {
            let (host, stopped) = (Arc::clone(&host), stopped.clone());
            guests.spawn(async move {
                converse(stream, host, stopped).await;
                drop(seat);
            });
        }
    }
    drop(listener);
    while guests.join_next().await.is_some() {}
}

async fn converse(stream: TcpStream, host: Arc<Host>, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE, host.tls.accept(stream)).await else {
        return;
    };
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let shown: Arc<[CertificateDer<'static>]> =
        shown.iter().cloned().map(CertificateDer::into_owned).collect();
    let service = service_fn(move |request| handle(Arc::clone(&host), Arc::clone(&shown), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = timeout(FAREWELL, connection).await;
}

/// Who sent `headers` over a connection on which these certificates were shown. One that nobody here vouches for, or that has expired, is
/// worse than none: without a token it is refused, where silence would be anonymous.
fn who(host: &Host, shown: &[CertificateDer<'_>], headers: &http::HeaderMap) -> Result<User, Status> {
    let now = host.cluster.with(|state| state.now().as_seconds());
    let now = Duration::from_secs(u64::try_from(now).unwrap_or_default());
    let vouched = host.clients.vouch(shown, now);
    let user = host.authenticator.authenticate(headers, vouched)?;
    let strange = !shown.is_empty() && vouched.is_none();
    if strange && user == User::anonymous() {
        return Err(Status::unauthorized());
    }
    Ok(user)
}

async fn handle(
    host: Arc<Host>,
    shown: Arc<[CertificateDer<'static>]>,
    request: Request<Incoming>,
) -> Result<Response<Body>, TransportError> {
    host.pace.catch_up(&host.cluster);
    let user = match who(&host, &shown, request.headers()) {
        Ok(user) => user,
        Err(status) => return Ok(respond(ApiResponse::from_status(&status))),
    };
    let connection = host.cluster.connect_as(client(&request), user);
    let hollow = hollow(&request);
    match timeout(REQUEST, connection.handle_with(request, as_json)).await {
        Ok(Ok(answer)) if hollow.is_some_and(|code| code == answer.status()) => {
            Ok(respond(ApiResponse::from_status(&nothing_runs())))
        }
        Ok(answer) => answer,
        Err(_) => Ok(respond(ApiResponse::text(504, "the request timed out\n"))),
    }
}

/// Whether a request is for what runs in a pod, and the code with which the API lets it through: beyond it is nobody to answer.
fn hollow(request: &Request<Incoming>) -> Option<StatusCode> {
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

fn nothing_runs() -> Status {
    let text = "the pods of this cluster are simulated: no container runs in them, so there are no logs, no commands and no ports";
    Status::new(501, "NotImplemented", text)
}

/// Bodies in protobuf become JSON; the API knows nothing else.
fn as_json(call: &mut ApiRequest) -> Result<(), Status> {
    if call.content_type != protobuf::MEDIA || call.body.is_empty() {
        return Ok(());
    }
    let decoded = protobuf::decode(Schema::builtin(), &call.body);
    let value = decoded.map_err(|error| Status::bad_request(error.to_string()))?;
    call.body = value.to_string().into();
    "application/json".clone_into(&mut call.content_type);
    Ok(())
}

/// Whom faults and the trace name: the program in the user agent.
fn client(request: &Request<Incoming>) -> &str {
    let agent = request.headers().get(header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or("");
    match agent.split(['/', ' ']).next() {
        None | Some("") => "unnamed",
        Some(name) => name,
    }
}
