//! Serves a [`Cluster`] over HTTPS on loopback, with a kubeconfig for clients in other processes.
//!
//! ```text
//! TCP ─▶ TLS (ephemeral CA) ─▶ HTTP/1.1 or 2 ─▶ authentication ─▶ Connection ─▶ Cluster
//!                                               system clock ─▶ Pace ─▶ Cluster::advance
//! ```
//!
//! This is the only module in which the virtual clock follows the system clock. Rules, faults and trace are
//! the same as for clients in this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::auth::{Authenticator, User};
use crate::cluster::Cluster;

mod certificate;
mod connections;
mod kubeconfig;
mod listen;
mod pace;
mod protobuf;
mod secrets;
mod tls;
mod webhook_calls;

pub use kubeconfig::KUBECONFIG_HEADER;
use pace::Pace;

/// Maximum number of writes of controllers between two requests. Controllers with more work do it in slices,
/// so that the server remains responsive.
const MAX_WRITES_PER_SETTLE: u64 = 50;

/// Options for serving a cluster.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Port on loopback; 0 selects any free port.
    pub port: u16,
    /// Seconds of cluster time per second; 0 stops the cluster's clock.
    pub speed: f64,
    /// Maximum number of open connections. A further connection replaces the connection that has been idle
    /// for longest. If no connection is idle, it waits.
    pub max_connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            port: 0,
            speed: 1.0,
            // Stay below the usual limit of 1024 open files.
            max_connections: 900,
        }
    }
}

/// Errors of serving a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address could not be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// Address to bind.
        address: SocketAddr,
        /// I/O error.
        source: io::Error,
    },
    /// A certificate could not be created.
    #[error("cannot generate certificates")]
    Certificates(#[from] rcgen::Error),
    /// TLS could not be configured.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The system returned no random bytes.
    #[error("the system returned no random bytes")]
    Random,
    /// A kubeconfig file could not be written.
    #[error("cannot write {path}")]
    Kubeconfig {
        /// Path of the file.
        path: std::path::PathBuf,
        /// I/O error.
        source: io::Error,
    },
}

/// A running server. Dropping it stops serving immediately; [`Server::stop`] completes requests in progress.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    authority: String,
    signer: tls::Authority,
    cluster: Cluster,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve `cluster`. Requires a tokio runtime with time and I/O.
    pub async fn start(cluster: &Cluster, options: &ServeOptions) -> Result<Self, ServeError> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), options.port);
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let identity = tls::Identity::generate()?;
        secrets::replace_signing_key(cluster)?;
        cluster.limit_writes_per_settle(MAX_WRITES_PER_SETTLE);
        let (stop, stopped) = watch::channel(false);
        let pace = Pace::new(cluster, options.speed);
        let host = listen::Host {
            cluster: cluster.clone(),
            authenticator: Authenticator::new(cluster),
            pace: pace.clone(),
            tls: identity.acceptor,
            clients: identity.clients,
            max_connections: options.max_connections,
        };
        let tasks = vec![
            tokio::spawn(listen::run(listener, host, stopped.clone())),
            tokio::spawn(pace.run(cluster.clone(), stopped.clone())),
            tokio::spawn(webhook_calls::run(cluster.clone(), stopped)),
        ];
        Ok(Self {
            address,
            authority: identity.authority.pem(),
            signer: identity.authority,
            cluster: cluster.clone(),
            stop,
            tasks,
        })
    }

    /// Returns the listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Returns the CA certificate as PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns a kubeconfig for `user` with a new bearer token that is valid until the server stops.
    pub fn kubeconfig(&self, user: User) -> Result<String, ServeError> {
        let name = user.name.clone();
        let secret = secrets::issue_token(&self.cluster, user)?;
        let secret = kubeconfig::Credential::Token(&secret);
        Ok(kubeconfig::render(&self.url(), &self.authority, &name, &secret))
    }

    /// Returns a kubeconfig for `user` with a client certificate that is valid for `lifetime` of cluster
    /// time. The common name is the name of the user, the organizations are its groups. The certificate does
    /// not contain the uid and extra attributes.
    pub fn kubeconfig_with_certificate(&self, user: &User, lifetime: Duration) -> Result<String, ServeError> {
        let now = self.cluster.with(|state| state.now());
        let key = rcgen::KeyPair::generate()?;
        let issued = certificate::issue(
            &self.signer,
            user,
            &key,
            certificate::Validity {
                not_before: now,
                not_after: now.plus(lifetime),
            },
            secrets::random_serial()?,
        )?;
        let secret = kubeconfig::Credential::Certificate {
            certificate: &certificate::pem("CERTIFICATE", &issued),
            key: &key.serialize_pem(),
        };
        Ok(kubeconfig::render(
            &self.url(),
            &self.authority,
            &user.name,
            &secret,
        ))
    }

    /// Writes a kubeconfig to a new file that only its owner can read. Fails if the file exists.
    pub fn write_kubeconfig(&self, user: User, path: &Path) -> Result<(), ServeError> {
        let text = self.kubeconfig(user)?;
        kubeconfig::write_file(path, &text).map_err(|source| ServeError::Kubeconfig {
            path: path.to_owned(),
            source,
        })
    }

    /// Stops the server: rejects new connections, completes requests in progress, and ends watches.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
