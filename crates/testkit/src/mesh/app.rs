//! The test application of the mesh: returns its name followed by the response of its upstream.
//!
//! It is the test program itself, started again, so that no other program has to be built.

#![allow(clippy::print_stderr, reason = "the output is the log of a pod")]

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::http::{Connection, accept, read_head};

/// Image name of the application in pods.
pub const APP_IMAGE: &str = "mesh.test/app:1";
/// Port of the application.
pub const APP_PORT: u16 = 8080;
/// Environment variable with the application's name. If it is set, the program runs as the application.
pub(super) const NAME: &str = "MESH_APP_NAME";
/// Environment variable with the upstream: `host:port`.
pub const UPSTREAM: &str = "MESH_APP_UPSTREAM";

/// Path of the readiness probe. It is served without a request to the upstream.
pub const READY: &str = "/ready";
/// Environment variable with the path of a file. The application starts to listen when this file is
/// removed.
pub const HOLD_FILE: &str = "MESH_APP_HELD_BY";

/// Runs the application if its environment variable is set. Must be called first in `main`.
#[must_use]
pub fn become_app() -> Option<ExitCode> {
    let name = std::env::var(NAME).ok()?;
    Some(serve(name).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

struct App {
    name: String,
    upstream: Option<String>,
    closing: AtomicBool,
    busy: AtomicUsize,
}

fn serve(name: String) -> std::io::Result<()> {
    let app = Arc::new(App {
        name,
        upstream: std::env::var(UPSTREAM).ok(),
        closing: AtomicBool::new(false),
        busy: AtomicUsize::new(0),
    });
    if let Some(file) = std::env::var_os(HOLD_FILE) {
        while std::path::Path::new(&file).exists() {
            // Polled: the removal of a file sends no event.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, APP_PORT))?;
    let accepting = Arc::clone(&app);
    accept(listener, move |stream| accepting.handle_connection(stream));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(app.wait_for_end())
}

impl App {
    /// Waits for SIGTERM, then until open requests are finished.
    async fn wait_for_end(&self) -> std::io::Result<()> {
        signal(SignalKind::terminate())?.recv().await;
        self.closing.store(true, Ordering::Relaxed);
        let finished = async {
            while self.busy.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(RESPONSE_TIMEOUT, finished).await;
        Ok(())
    }

    fn handle_connection(&self, stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let (mut reading, mut writing) = (BufReader::new(reading), stream);
        let mut upstream = None;
        while let Ok(Some(head)) = read_head(&mut reading) {
            let is_probe = head.path() == READY;
            self.busy.fetch_add(1, Ordering::Relaxed);
            let (code, body) = if is_probe {
                ("200 OK", self.name.clone())
            } else {
                self.response(&mut upstream)
            };
            let closing = self.closing.load(Ordering::Relaxed);
            let connection = if closing { "close" } else { "keep-alive" };
            let reply = format!(
                "HTTP/1.1 {code}\r\ncontent-length: {}\r\nconnection: {connection}\r\n\r\n{body}",
                body.len()
            );
            let sent = writing.write_all(reply.as_bytes());
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if sent.is_err() || closing {
                return;
            }
        }
    }

    fn response(&self, kept: &mut Option<Connection>) -> (&'static str, String) {
        let Some(upstream) = &self.upstream else {
            return ("200 OK", self.name.clone());
        };
        match request_upstream(upstream, kept) {
            Ok((200, body)) => ("200 OK", format!("{} > {body}", self.name)),
            Ok((code, body)) => ("502 Bad Gateway", format!("{} > {code} {body}", self.name)),
            Err(error) => ("502 Bad Gateway", format!("{} > {error}", self.name)),
        }
    }
}

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a request to the upstream without retries, so that every failure is visible. Logs the timing of a
/// slow request.
fn request_upstream(upstream: &str, kept: &mut Option<Connection>) -> std::io::Result<(u16, String)> {
    let begin = Instant::now();
    let mut steps = Vec::new();
    let result = request_in_steps(upstream, kept, &mut |step| steps.push((step, begin.elapsed())));
    if begin.elapsed() > SLOW {
        let outcome = result.as_ref().map(|(code, _)| *code);
        eprintln!("slow: {steps:?}, {outcome:?} after {:?}", begin.elapsed());
    }
    result
}

/// Duration above which a request counts as slow.
const SLOW: Duration = Duration::from_secs(1);

fn request_in_steps(
    upstream: &str,
    kept: &mut Option<Connection>,
    done: &mut dyn FnMut(&'static str),
) -> std::io::Result<(u16, String)> {
    let mut connection = if let Some(connection) = kept.take() {
        connection
    } else {
        let address = resolve(upstream)?;
        done("resolved");
        let connection = Connection::open(address, RESPONSE_TIMEOUT)?;
        done("connected");
        connection
    };
    let host = upstream.split(':').next().unwrap_or(upstream);
    let reply = connection.get(host, "/")?;
    if !reply.closes {
        *kept = Some(connection);
    }
    Ok((reply.code, reply.body))
}

fn resolve(upstream: &str) -> std::io::Result<SocketAddr> {
    let mut found = upstream.to_socket_addrs()?;
    found
        .next()
        .ok_or_else(|| std::io::Error::other(format!("{upstream} has no address")))
}
