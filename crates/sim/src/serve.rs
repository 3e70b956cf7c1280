//! The cluster over HTTPS: takes a [`Cluster`], gives an address on loopback and a kubeconfig, for clients that are programs of their own.
//!
//! ```text
//! TCP ─▶ TLS (throw-away authority) ─▶ HTTP/1.1 or 2 ─▶ who is it? ─▶ Connection ─▶ the cluster
//!                                                    wall clock ─▶ Pace ─▶ Cluster::advance
//! ```
//!
//! Only here the virtual clock follows a real one. Everything else is as in process: the same rules, faults and trace.

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
mod gate;
mod kubeconfig;
mod listen;
mod pace;
mod protobuf;
mod tls;
mod webhook_calls;

pub use kubeconfig::KUBECONFIG_HEADER;
use pace::Pace;

/// How a cluster is served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The port on loopback; 0 for any free one.
    pub port: u16,
    /// How many seconds of the cluster pass in a second; 0 leaves its clock alone.
    pub speed: f64,
    /// How many connections may be open at once; further ones wait.
    pub most_connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            port: 0,
            speed: 1.0,
            most_connections: 1024,
        }
    }
}

/// Why a cluster could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is taken, most likely.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No certificates.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// No TLS.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// No secret for the administrator.
    #[error("the system gives no random bytes")]
    Random,
    /// A kubeconfig file.
    #[error("cannot write {path}")]
    Kubeconfig {
        /// Which one.
        path: std::path::PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A served cluster; dropping it stops serving at once, [`Server::stop`] lets answers under way finish.
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
    /// Begins to serve `cluster`; needs a tokio runtime with time and I/O.
    pub async fn start(cluster: &Cluster, options: &ServeOptions) -> Result<Self, ServeError> {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), options.port);
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let identity = tls::Identity::make()?;
        gate::change_lock(cluster)?;
        let (stop, stopped) = watch::channel(false);
        let pace = Pace::new(cluster, options.speed);
        let host = listen::Host {
            cluster: cluster.clone(),
            authenticator: Authenticator::new(cluster),
            pace: pace.clone(),
            tls: identity.acceptor,
            clients: identity.clients,
            most_connections: options.most_connections,
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate that signed the server's, as PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A kubeconfig of `user`, with a new secret that the cluster recognises until it stops.
    pub fn kubeconfig(&self, user: User) -> Result<String, ServeError> {
        let name = user.name.clone();
        let secret = gate::issue(&self.cluster, user)?;
        let secret = kubeconfig::Secret::Token(&secret);
        Ok(kubeconfig::text(&self.url(), &self.authority, &name, &secret))
    }

    /// A kubeconfig of `user` with a client certificate that is good for `lifetime` by the cluster's clock: the common name is the user's, the
    /// organisations are the groups. A uid and extras have no place in it.
    pub fn kubeconfig_with_certificate(&self, user: &User, lifetime: Duration) -> Result<String, ServeError> {
        let now = self.cluster.with(|state| state.now());
        let key = rcgen::KeyPair::generate()?;
        let made = certificate::issue(
            &self.signer,
            user,
            &key,
            (now, now.plus(lifetime)),
            gate::serial()?,
        )?;
        let secret = kubeconfig::Secret::Certificate {
            certificate: &certificate::pem("CERTIFICATE", &made),
            key: &key.serialize_pem(),
        };
        Ok(kubeconfig::text(
            &self.url(),
            &self.authority,
            &user.name,
            &secret,
        ))
    }

    /// Writes such a kubeconfig to a new file that nobody else may read; an existing file is left alone and is an error.
    pub fn write_kubeconfig(&self, user: User, path: &Path) -> Result<(), ServeError> {
        let text = self.kubeconfig(user)?;
        kubeconfig::write(path, &text).map_err(|source| ServeError::Kubeconfig {
            path: path.to_owned(),
            source,
        })
    }

    /// Stops: no new connections, answers under way finish, watches end.
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
