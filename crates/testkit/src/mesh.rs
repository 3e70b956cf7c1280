//! A mesh of real components without containers: a cluster whose pods are processes, each in its own
//! network namespace. Needs root.
//!
//! ```text
//! Mesh ──▶ Cluster (etcd, API server, controllers)
//!   ├───▶ Kubelet ──▶ pod = network namespace + redirect + processes (istiod, agent + Envoy, application)
//!   ├───▶ Services as the packet filter's rules, names as a small DNS
//!   └───▶ Load from outside, requests from inside
//! ```
//!
//! Must be called after [`isolation::enter_as_root`](crate::isolation::enter_as_root): no packet leaves
//! that namespace, and all processes are killed when its first process exits.

mod app;
mod container;
mod lifecycle;
mod load;
mod names;
mod namespace;
mod netlink;
mod node;
mod pod;
mod registry;
mod rules;
mod runtime;
mod services;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node as NodeObject, Pod, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::cluster::{Access, Cluster, ClusterError, KUBELET, Options, WORKLOAD_CONTROLLERS};
use crate::kubelet::{Kubelet, KubeletError, KubeletOptions, PodBackend, PodProcess, PodProcessFuture};
use crate::peer::PeerError;
pub use app::{APP_IMAGE, APP_PORT, HOLD_FILE, READY, UPSTREAM, become_app};
use lifecycle::{StartingPod, run_pod};
pub use load::{Load, Results, Sample};
use names::Names;
use node::Node;
use registry::Registry;
pub use runtime::PARTS;
use runtime::{Inner, MeshRuntime};

/// Options of a mesh.
#[derive(Clone, Debug)]
pub struct MeshOptions {
    /// Options of the cluster.
    pub cluster: Options,
    /// Whether the nodes' kubelet version supports native sidecars, which are stopped after the containers
    /// that use them.
    pub native_sidecars: bool,
}

impl Default for MeshOptions {
    fn default() -> Self {
        Self {
            cluster: Options::default(),
            native_sidecars: true,
        }
    }
}

/// A cluster whose pods have networks. It is stopped when dropped.
#[derive(Debug)]
pub struct Mesh {
    // Fields are dropped in this order: pods before the network they use, files last.
    kubelet: Kubelet,
    _tasks: Tasks,
    runtime: MeshRuntime,
    cluster: Cluster,
    _node: Node,
    _directory: TempDir,
}

/// Errors of a mesh.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The cluster did not start.
    #[error("cannot start the cluster of the mesh")]
    Cluster(#[from] ClusterError),
    /// The kubelet did not start.
    #[error("cannot start the kubelet of the mesh")]
    Kubelet(#[from] KubeletError),
    /// A peer is missing.
    #[error("a peer of the mesh is not available")]
    Peer(#[from] PeerError),
    /// The network could not be set up.
    #[error("cannot set up the network of the mesh")]
    Network(#[from] io::Error),
    /// An API call failed.
    #[error("the API call failed")]
    Api(#[from] Box<kube::Error>),
    /// The pod does not exist or has no processes, or the Service has no address.
    #[error("{0} does not exist, or has no process or address")]
    NoPod(String),
}

/// A connected proxy in istiod's report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proxy {
    /// `POD.NAMESPACE`.
    pub name: String,
    /// Istio version of the proxy.
    pub version: String,
}

/// Maximum time for a pod to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

impl Mesh {
    /// Starts a cluster, a bridge, DNS and Services. From then on, pods are run as processes.
    pub async fn start(options: MeshOptions) -> Result<Self, MeshError> {
        let directory = tempfile::Builder::new().prefix("mesh").tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        fs::create_dir(directory.path().join("logs"))?;
        MeshRuntime::bind_peers(directory.path())?;
        let cluster = Cluster::start(reachable(options.cluster)).await?;
        let address = Ipv4Addr::new(10, cluster.pod_network(), 0, 1);
        let node = Node::set_up(address, &cluster.service_range(), directory.path())?;
        let runtime = MeshRuntime::new(Inner {
            client: cluster.client(KUBELET)?,
            access: Access {
                server: format!("https://{address}:{}", cluster.server_port()),
                ..cluster.access()
            },
            directory: directory.path().to_owned(),
            node: address,
            registry: Registry::default(),
        });
        let names = Names::default();
        let socket = UdpSocket::bind((address, 53)).await?;
        let tasks = Tasks(vec![
            tokio::spawn(names.clone().serve(socket)),
            tokio::spawn(services::watch_services(cluster.client(KUBELET)?, names)),
        ]);
        let kubelet = KubeletOptions {
            nodes: 1,
            backend: Some(Arc::new(Pods(runtime.clone()))),
        };
        let mesh = Self {
            kubelet: Kubelet::start(&cluster, kubelet).await?,
            _tasks: tasks,
            runtime,
            cluster,
            _node: node,
            _directory: directory,
        };
        if options.native_sidecars {
            mesh.set_kubelet_version().await?;
        }
        Ok(mesh)
    }

    /// Sets the kubelet version of the nodes.
    async fn set_kubelet_version(&self) -> Result<(), MeshError> {
        let nodes: Api<NodeObject> = Api::all(self.runtime.client.clone());
        let status = Patch::Merge(json!({"status": {"nodeInfo": {"kubeletVersion": "v1.36.4"}}}));
        let params = PatchParams::default();
        for node in nodes.list(&ListParams::default()).await.map_err(Box::new)? {
            let name = node.name_any();
            let patched = nodes.patch_status(&name, &params, &status).await;
            patched.map_err(Box::new)?;
        }
        Ok(())
    }

    /// Returns the control plane.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the control plane mutably, so that components can be stopped.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Returns the kubelet.
    #[must_use]
    pub fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }

    /// Returns the path of Envoy, for `meshConfig.defaultConfig.binaryPath`.
    #[must_use]
    pub fn envoy(&self) -> PathBuf {
        self.runtime.directory.join("envoy")
    }

    /// Returns the path of the test program. The file does not change if the program is rebuilt.
    #[must_use]
    pub fn own_program(&self) -> PathBuf {
        self.runtime.directory.join(runtime::SELF)
    }

    /// Returns the directory of pod files. Logs are in its subdirectory `logs`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.runtime.directory
    }

    /// Returns the address of a Service's port, for connections from outside the mesh.
    pub async fn address(&self, namespace: &str, service: &str, port: u16) -> Result<SocketAddr, MeshError> {
        let services: Api<Service> = Api::namespaced(self.runtime.client.clone(), namespace);
        let found = services.get(service).await.map_err(Box::new)?;
        let ip = found.spec.and_then(|spec| spec.cluster_ip?.parse().ok());
        let ip: Ipv4Addr = ip.ok_or_else(|| MeshError::NoPod(format!("{namespace}/{service}")))?;
        Ok(SocketAddr::new(ip.into(), port))
    }

    /// Sends a GET request to a port of a pod from inside the pod's network and returns the body.
    pub async fn get_from_pod(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        path: &str,
    ) -> Result<String, MeshError> {
        let running_pod = self.running_pod(namespace, pod)?;
        let (path, address) = (path.to_owned(), SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let response = tokio::task::spawn_blocking(move || {
            running_pod
                .namespace
                .inside(|| crate::http::get(address, &path, RESPONSE_TIMEOUT))
        });
        Ok(response.await.map_err(io::Error::other)??.body)
    }

    /// Connects to an address from inside a pod's network. Fails if the connection cannot be established.
    pub async fn connect_from_pod(
        &self,
        namespace: &str,
        pod: &str,
        address: SocketAddr,
    ) -> Result<(), MeshError> {
        let running_pod = self.running_pod(namespace, pod)?;
        let connected = tokio::task::spawn_blocking(move || {
            running_pod
                .namespace
                .inside(|| std::net::TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT))
        });
        connected.await.map_err(io::Error::other)??;
        Ok(())
    }

    /// Returns the proxies connected to the istiods of each revision.
    pub async fn proxies(&self, namespace: &str) -> Result<BTreeMap<String, Vec<Proxy>>, MeshError> {
        let pods: Api<Pod> = Api::namespaced(self.runtime.client.clone(), namespace);
        let istiods = pods
            .list(&ListParams::default().labels("app=istiod"))
            .await
            .map_err(Box::new)?;
        let mut proxies: BTreeMap<String, Vec<Proxy>> = BTreeMap::new();
        for istiod in istiods {
            let revision = istiod.labels().get("istio.io/rev").cloned().unwrap_or_default();
            let status = self
                .get_from_pod(namespace, &istiod.name_any(), MONITORING, "/debug/syncz")
                .await;
            proxies
                .entry(revision)
                .or_default()
                .extend(status.map(|status| read_proxies(&status)).unwrap_or_default());
        }
        for known in proxies.values_mut() {
            known.sort();
        }
        Ok(proxies)
    }

    /// Kills the processes of a container.
    pub fn kill(&self, namespace: &str, pod: &str, container: &str) -> Result<(), MeshError> {
        Ok(self.running_pod(namespace, pod)?.kill(container)?)
    }

    /// Stops supervising a pod: its status no longer changes when its processes exit.
    pub fn stop_restarting(&self, namespace: &str, pod: &str) -> Result<(), MeshError> {
        self.running_pod(namespace, pod)?
            .unsupervised
            .store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the last lines of all logs whose names contain `part`, for failure messages.
    #[must_use]
    pub fn log_tail(&self, part: &str, lines: usize) -> String {
        let logs = fs::read_dir(self.runtime.directory.join("logs"))
            .into_iter()
            .flatten()
            .flatten();
        let mut logs: Vec<PathBuf> = logs.map(|log| log.path()).collect();
        logs.sort();
        let name = |log: &Path| log.file_name().map(|name| name.to_string_lossy().into_owned());
        let wanted = logs.iter().filter_map(|log| Some((name(log)?, log)));
        let texts = wanted.filter(|(name, _)| name.contains(part)).map(|(name, log)| {
            let text = fs::read_to_string(log).unwrap_or_default();
            let all: Vec<&str> = text.lines().collect();
            let last = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
            format!("== {name}\n{}\n", last.join("\n"))
        });
        texts.collect()
    }

    fn running_pod(&self, namespace: &str, pod: &str) -> Result<Arc<registry::RunningPod>, MeshError> {
        let name = format!("{namespace}/{pod}");
        self.runtime.registry.find(&name).ok_or(MeshError::NoPod(name))
    }
}

/// Port of istiod's debug endpoint.
const MONITORING: u16 = 15_014;

fn read_proxies(text: &str) -> Vec<Proxy> {
    let all: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let word = |one: &Value, key: &str| {
        one.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let proxies = all.iter().map(|one| Proxy {
        name: word(one, "proxy"),
        version: word(one, "istio_version"),
    });
    proxies.collect()
}

/// Returns cluster options with which pods reach the API server at the bridge and all workload controllers
/// run.
fn reachable(mut options: Options) -> Options {
    options.api_server_flags.push("--bind-address=0.0.0.0".into());
    if options.controllers.is_empty() {
        options.controllers = WORKLOAD_CONTROLLERS.to_vec();
    }
    options
}

#[derive(Debug)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Runs every pod whose images are all known.
struct Pods(MeshRuntime);

impl PodBackend for Pods {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        let ip = ip.parse().ok()?;
        let runnable = pod::read(pod, ip, self.0.node)?;
        let starting = StartingPod {
            runtime: self.0.clone(),
            pod: pod.clone(),
            runnable,
            ip,
        };
        Some(Box::pin(async move {
            Ok(PodProcess::custom(move |channel| {
                Box::pin(run_pod(starting, channel))
            }))
        }))
    }
}
