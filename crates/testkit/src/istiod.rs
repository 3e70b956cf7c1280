//! Runs real istiods for pods: the `pilot-discovery` of the pod's version, on the pod's address.
//!
//! Injection uses Istio's own webhook through its Service. The process gets the pod's arguments,
//! environment variables and service account. It reads the contents of volumes from the cluster.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kube::Client;
use mainstay_sim::tree;
use serde_json::Value;
use tokio::process::Command;

use crate::account;
use crate::cluster::{Access, Cluster, ClusterError, KUBELET};
use crate::kubelet::{PodBackend, PodProcess, PodProcessError, PodProcessFuture, Probe};
use crate::peer::{PeerError, built_peer};

/// Runs every pod labeled `app: istiod`.
#[derive(Clone)]
pub struct Istiods {
    client: Client,
    access: Access,
    directory: PathBuf,
}

impl Istiods {
    /// Creates a backend for the pods of this cluster. The pods' files are in the cluster's directory.
    pub fn new(cluster: &Cluster) -> Result<Self, ClusterError> {
        Ok(Self {
            client: cluster.client(KUBELET)?,
            access: cluster.access(),
            directory: cluster.directory().join("istiods"),
        })
    }

    async fn into_process(self, pod: Value, ip: IpAddr) -> Result<PodProcess, PodProcessError> {
        let container =
            discovery_container(&pod).ok_or(PodProcessError::Missing("container called discovery"))?;
        let binary = binary(container)?;
        let home = self.directory.join(tree::text(&pod, &["metadata", "uid"]));
        fs::create_dir_all(&home)?;
        let kubeconfig = self.kubeconfig(&pod, &home).await?;
        let log = File::options().create(true).append(true).open(home.join("log"))?;
        let mut command = Command::new(binary);
        // istiod writes certificates to paths relative to the working directory.
        command
            .current_dir(&home)
            .args(arguments(container, ip))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .env_clear()
            .envs(environment(container, &pod, ip))
            .env("HOME", &home)
            .env("KUBECONFIG", &kubeconfig)
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let probe = Probe::Http(SocketAddr::new(ip, 8080), "/ready".to_owned());
        Ok(PodProcess::process(command, probe))
    }

    /// Writes a kubeconfig with the pod's service account, so that RBAC applies to the process.
    async fn kubeconfig(&self, pod: &Value, home: &Path) -> Result<PathBuf, PodProcessError> {
        let token = account::token(&self.client, pod).await?;
        let account = tree::text(pod, &["spec", "serviceAccountName"]);
        let path = home.join("kubeconfig");
        fs::write(&path, self.access.kubeconfig(account, &token))?;
        Ok(path)
    }
}

impl PodBackend for Istiods {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        if tree::text(pod, &["metadata", "labels", "app"]) != "istiod" {
            return None;
        }
        let ip = ip.parse().ok()?;
        Some(Box::pin(self.clone().into_process(pod.clone(), ip)))
    }
}

fn discovery_container(pod: &Value) -> Option<&Value> {
    let containers = tree::list(pod, &["spec", "containers"]);
    containers
        .iter()
        .find(|one| tree::text(one, &["name"]) == "discovery")
}

/// Returns the peer for the version in the image's tag. The variant of the image is ignored.
fn binary(container: &Value) -> Result<PathBuf, PeerError> {
    let image = tree::text(container, &["image"]);
    let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
    let version = tag.split('-').next().unwrap_or(tag);
    built_peer(&format!("pilot-discovery-{version}"))
}

/// Flags with the listener addresses of istiod, and their ports.
const LISTENERS: [(&str, u16); 5] = [
    ("--httpsAddr", 15_017),
    ("--secureGRPCAddr", 15_012),
    ("--grpcAddr", 15_010),
    ("--httpAddr", 8_080),
    ("--monitoringAddr", 15_014),
];

/// Returns the container's arguments with every listener bound to the pod's address, because several
/// istiods share one network namespace.
fn arguments(container: &Value, ip: IpAddr) -> Vec<String> {
    let own = tree::list(container, &["args"])
        .iter()
        .filter_map(Value::as_str)
        .filter(|argument| !argument.starts_with("--monitoringAddr"))
        .map(str::to_owned);
    let listeners = LISTENERS
        .iter()
        .flat_map(|(flag, port)| [(*flag).to_owned(), SocketAddr::new(ip, *port).to_string()]);
    let control = ["--ctrlz_port", "0"].map(str::to_owned);
    own.chain(listeners).chain(control).collect()
}

fn environment(container: &Value, pod: &Value, ip: IpAddr) -> BTreeMap<String, String> {
    let variables = tree::list(container, &["env"]).iter().filter_map(|variable| {
        let name = tree::text(variable, &["name"]).to_owned();
        let value = match tree::get(variable, &["valueFrom"]) {
            None => tree::text(variable, &["value"]).to_owned(),
            Some(source) => resolve_field(source, pod, ip)?,
        };
        Some((name, value))
    });
    variables.collect()
}

fn resolve_field(source: &Value, pod: &Value, ip: IpAddr) -> Option<String> {
    match tree::text(source, &["fieldRef", "fieldPath"]) {
        "" => None,
        "status.podIP" => Some(ip.to_string()),
        path => {
            let path: Vec<&str> = path.split('.').collect();
            Some(tree::text(pod, &path).to_owned())
        }
    }
}
