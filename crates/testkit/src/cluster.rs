//! A real control plane as plain processes: etcd, kube-apiserver and kube-controller-manager with clients.
//!
//! The processes run on loopback with temporary certificates, tokens and files. Several clusters can run
//! concurrently with separate ports and ranges; each one is stopped when dropped, on a panic, and when the
//! program exits (see [`isolation`](crate::isolation)).

mod audit;
mod files;
mod process;
mod slot;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::{Client, Config};
use tempfile::TempDir;

use crate::isolation::{self, IsolationError};
use crate::peer::{PeerError, built_peer};
pub use audit::{Audit, Count, Entry};
use files::Authority;
pub(crate) use process::Process;
use slot::ClusterSlot;

/// Peers that a cluster requires. They must be built beforehand, because nothing can be downloaded inside the
/// namespace.
pub const PARTS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// A user with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User name, as passed to [`Cluster::client`].
    pub name: String,
    /// Group in addition to `system:authenticated`.
    pub group: String,
}

impl User {
    /// Creates a user.
    #[must_use]
    pub fn new(name: &str, group: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: group.to_owned(),
        }
    }
}

/// Options of a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Controllers that kube-controller-manager runs. If empty, kube-controller-manager is not started.
    pub controllers: Vec<&'static str>,
    /// Users that get a token and a kubeconfig.
    pub users: Vec<User>,
    /// Whether requests are counted, see [`Cluster::audit`].
    pub audit: bool,
    /// Additional flags for kube-apiserver.
    pub api_server_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: WORKLOAD_CONTROLLERS.to_vec(),
            users: vec![
                User::new("admin", "system:masters"),
                User::new("alice", "team-a"),
                User::new("bob", "team-b"),
            ],
            audit: false,
            api_server_flags: Vec::new(),
        }
    }
}

/// Controllers required by every cluster: without them, namespaces are never deleted and have no service
/// accounts.
pub const BASIC_CONTROLLERS: &[&str] = &[
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
];

/// Controllers that create pods for workloads and delete dependents.
pub const WORKLOAD_CONTROLLERS: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "endpointslice-controller",
    "endpoints-controller",
    "resourcequota-controller",
    "taint-eviction-controller",
];

/// User name of the cluster's own components, so that the audit log counts their requests separately.
const CONTROLLERS: &str = "system:kube-controller-manager";
/// User name of readiness checks.
const OBSERVER: &str = "observer";
/// User name of the simulated kubelet.
pub(crate) const KUBELET: &str = "kubelet";

/// A running control plane. It is stopped when dropped, also on a panic.
#[derive(Debug)]
pub struct Cluster {
    options: Options,
    authority: Authority,
    // Fields are dropped in this order: clients of the API server before the server, etcd after it, files
    // and ports last.
    controllers: Option<Process>,
    api_server: Option<Process>,
    etcd: Process,
    directory: TempDir,
    slot: ClusterSlot,
}

/// Connection settings without a token.
#[derive(Clone, Debug)]
pub struct Access {
    /// URL of the API server.
    pub server: String,
    /// Path of the CA certificate.
    pub authority: PathBuf,
}

impl Access {
    /// Returns a kubeconfig with this token, such as the token of a service account.
    #[must_use]
    pub fn kubeconfig(&self, user: &str, token: &str) -> String {
        files::kubeconfig(self, user, token)
    }
}

/// Errors of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The program does not run in an isolated network namespace.
    #[error("the program is not isolated")]
    Isolation(#[from] IsolationError),
    /// A peer is missing.
    #[error("a peer of the control plane is not available")]
    Peer(#[from] PeerError),
    /// The maximum number of concurrent clusters is reached.
    #[error("the maximum number of concurrent clusters is reached")]
    TooManyClusters,
    /// A file could not be written, or a process could not be started.
    #[error("cannot prepare the control plane")]
    Prepare(#[from] io::Error),
    /// A key or certificate could not be created.
    #[error("cannot create keys and certificates")]
    Certificate(#[from] rcgen::Error),
    /// The address is invalid.
    #[error("invalid address of the API server")]
    Address(#[from] http::uri::InvalidUri),
    /// A client could not be created.
    #[error("cannot create a client for user {user}")]
    Client {
        /// Name of the user.
        user: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// A process exited or did not become ready in time.
    #[error("{name} is not ready after {waited:?}; its log ends with:\n{log}")]
    NotReady {
        /// Name of the process.
        name: &'static str,
        /// Time waited so far.
        waited: Duration,
        /// Last lines of its log.
        log: String,
    },
}

/// Maximum time for a component to become ready.
const STARTUP_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval between two readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Cluster {
    /// Starts etcd, the API server and the controllers, and waits until the server is ready and namespaces
    /// get their service accounts.
    pub async fn start(mut options: Options) -> Result<Self, ClusterError> {
        isolation::check()?;
        let own = [CONTROLLERS, OBSERVER, KUBELET];
        options
            .users
            .extend(own.map(|name| User::new(name, "system:masters")));
        let slot = ClusterSlot::reserve().ok_or(ClusterError::TooManyClusters)?;
        let directory = tempfile::tempdir()?;
        let authority = files::write(directory.path(), &options.users, slot.advertised())?;
        let etcd = start_etcd(directory.path(), &slot)?;
        let mut cluster = Self {
            options,
            authority,
            controllers: None,
            api_server: None,
            etcd,
            directory,
            slot,
        };
        cluster.write_kubeconfigs()?;
        cluster.start_api_server().await?;
        cluster.start_controllers().await?;
        Ok(cluster)
    }

    /// Returns the URL of the API server.
    #[must_use]
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.slot.server_port())
    }

    /// Returns the directory with the cluster's files. It is deleted with the cluster.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the path of a user's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.directory
            .path()
            .join(format!("{}.kubeconfig", user.replace(':', "-")))
    }

    /// Returns the connection settings.
    #[must_use]
    pub fn access(&self) -> Access {
        Access {
            server: self.server(),
            authority: self.directory.path().join("ca.crt"),
        }
    }

    /// Returns a client for a user. It does not retry, because tests must see every response. An unknown
    /// user is anonymous.
    pub fn client(&self, user: &str) -> Result<Client, ClusterError> {
        self.client_with_agent(user, "mainstay-testkit")
    }

    /// Returns a client for a user with the user agent `agent`, which is also its field manager.
    pub fn client_with_agent(&self, user: &str, agent: &'static str) -> Result<Client, ClusterError> {
        let mut config = Config::new(self.server().parse()?);
        config.default_retry = false;
        config.root_cert = Some(vec![self.authority.der.clone()]);
        let known = self.options.users.iter().any(|known| known.name == user);
        config.auth_info.token = known.then(|| files::token(user).into());
        config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
        Client::try_from(config).map_err(|source| ClusterError::Client {
            user: user.to_owned(),
            source: Box::new(source),
        })
    }

    /// Returns the audit log. Requires [`Options::audit`].
    #[must_use]
    pub fn audit(&self) -> Audit {
        Audit::new(self.directory.path().join("audit.log"))
    }

    /// Returns the second byte of the pod network, `10.N.0.0/16`.
    #[must_use]
    pub fn pod_network(&self) -> u8 {
        self.slot.pod_network()
    }

    /// Returns the address range of Services.
    #[must_use]
    pub fn service_range(&self) -> String {
        self.slot.service_range()
    }

    /// Returns the port of the API server.
    #[must_use]
    pub fn server_port(&self) -> u16 {
        self.slot.server_port()
    }

    /// Kills the API server. etcd keeps its data.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server and waits until it is ready.
    pub async fn start_api_server(&mut self) -> Result<(), ClusterError> {
        self.stop_api_server();
        let flags = self.api_server_flags();
        let binary = built_peer("kube-apiserver")?;
        self.api_server = Some(Process::start(&binary, &flags, self.directory.path())?);
        self.wait_for("/readyz").await
    }

    fn api_server_flags(&self) -> Vec<String> {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.slot.etcd_port()),
            format!("--secure-port={}", self.slot.server_port()),
            format!("--cert-dir={}", path("certs")),
            format!("--tls-cert-file={}", path("server.crt")),
            format!("--tls-private-key-file={}", path("server.key")),
            format!("--token-auth-file={}", path("tokens.csv")),
            format!("--service-account-key-file={}", path("accounts.pub")),
            format!("--service-account-signing-key-file={}", path("accounts.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-cluster-ip-range={}", self.slot.service_range()),
            "--authorization-mode=RBAC".into(),
            "--allow-privileged=true".into(),
            "--endpoint-reconciler-type=none".into(),
            // With this flag a webhook's Service is resolved to its endpoints: addresses of pods, which a
            // local process has bound.
            "--enable-aggregator-routing=true".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--advertise-address={}", self.slot.advertised()),
        ];
        if self.options.audit {
            flags.push(format!("--audit-policy-file={}", path("audit.json")));
            flags.push(format!("--audit-log-path={}", path("audit.log")));
            // Blocking mode: the log line is written before the response is sent.
            flags.push("--audit-log-mode=blocking".into());
        }
        flags.extend(self.options.api_server_flags.iter().cloned());
        flags
    }

    async fn start_controllers(&mut self) -> Result<(), ClusterError> {
        if self.options.controllers.is_empty() {
            return Ok(());
        }
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let flags = [
            format!("--kubeconfig={}", self.kubeconfig(CONTROLLERS).display()),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=false".into(),
            format!("--service-account-private-key-file={}", path("accounts.key")),
            "--secure-port=0".into(),
            format!("--controllers={}", self.options.controllers.join(",")),
        ];
        let binary = built_peer("kube-controller-manager")?;
        self.controllers = Some(Process::start(&binary, &flags, self.directory.path())?);
        if self.options.controllers.contains(&"serviceaccount-controller") {
            return self
                .wait_for("/api/v1/namespaces/default/serviceaccounts/default")
                .await;
        }
        Ok(())
    }

    /// Waits until a GET of `path` succeeds. Fails if a component has exited.
    async fn wait_for(&mut self, path: &str) -> Result<(), ClusterError> {
        let begin = tokio::time::Instant::now();
        let client = self.client(OBSERVER)?;
        while !succeeds(&client, path).await {
            if let Some((name, log)) = self.failed_component(begin.elapsed()) {
                return Err(ClusterError::NotReady {
                    name,
                    waited: begin.elapsed(),
                    log,
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns the name and log of a component that has exited, or, after the timeout, of the component
    /// started last.
    fn failed_component(&mut self, waited: Duration) -> Option<(&'static str, String)> {
        let parts = [
            ("etcd", Some(&mut self.etcd)),
            ("kube-apiserver", self.api_server.as_mut()),
            ("kube-controller-manager", self.controllers.as_mut()),
        ];
        let mut running = None;
        for (name, part) in parts {
            let Some(part) = part else { continue };
            if part.has_ended() {
                return Some((name, part.log_tail()));
            }
            running = Some((name, part.log_tail()));
        }
        running.filter(|_| waited > STARTUP_TIMEOUT)
    }

    fn write_kubeconfigs(&self) -> io::Result<()> {
        self.options.users.iter().try_for_each(|user| {
            let text = self.access().kubeconfig(&user.name, &files::token(&user.name));
            std::fs::write(self.kubeconfig(&user.name), text)
        })
    }
}

fn start_etcd(directory: &Path, slot: &ClusterSlot) -> Result<Process, ClusterError> {
    let [client, peer] =
        [slot.etcd_port(), slot.etcd_peer_port()].map(|port| format!("http://127.0.0.1:{port}"));
    let flags = [
        format!("--data-dir={}", directory.join("etcd-data").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".into(),
        "--log-level=error".into(),
    ];
    Ok(Process::start(&built_peer("etcd")?, &flags, directory)?)
}

async fn succeeds(client: &Client, path: &str) -> bool {
    let Ok(request) = http::Request::get(path).body(Vec::new()) else {
        return false;
    };
    client.request_text(request).await.is_ok()
}
