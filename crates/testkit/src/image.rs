//! Runs pods with one container image as processes in the image's own file system.
//!
//! The process sees the files of the image, of the service account and of the pod's volumes at their paths.
//! This is done with `chroot`, so the binary must be linked statically. The process gets the arguments and
//! environment variables of its container, and runs as the image's user, who can write to empty volumes
//! only. This requires root with the machine's users.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kube::Client;
use mainstay_sim::tree;
use serde_json::Value;
use tokio::process::Command;

use crate::account;
use crate::cluster::{Access, Cluster, ClusterError, KUBELET};
use crate::kubelet::{PodBackend, PodProcess, PodProcessError, PodProcessFuture, Probe};

/// Mount path of the service account's files, relative to the root directory.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// An unpacked image.
#[derive(Clone, Debug)]
pub struct Image {
    /// Repository and tag, as in the container spec.
    pub reference: String,
    /// Directory with the files of the image.
    pub root: PathBuf,
    /// Path of the entrypoint in the image.
    pub entrypoint: String,
    /// Environment variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// Numeric user and group, as `USER:GROUP`.
    pub user: String,
}

/// Runs every pod whose first container has the image.
#[derive(Clone)]
pub struct ImagePods {
    image: Image,
    client: Client,
    access: Access,
    directory: PathBuf,
}

impl ImagePods {
    /// Creates a backend for the pods of this cluster. The pods' files are in the cluster's directory.
    pub fn new(cluster: &Cluster, image: Image) -> Result<Self, ClusterError> {
        Ok(Self {
            image,
            client: cluster.client(KUBELET)?,
            access: cluster.access(),
            directory: cluster.directory().join("images"),
        })
    }

    async fn into_process(self, pod: Value, ip: String) -> Result<PodProcess, PodProcessError> {
        let home = self.directory.join(tree::text(&pod, &["metadata", "uid"]));
        let root = home.join("root");
        copy(&self.image.root, &root)?;
        let token = account::token(&self.client, &pod).await?;
        self.write_files(&pod, &root, &token)?;
        for container in tree::list(&pod, &["spec", "initContainers"]) {
            let status = self.command(container, &pod, &home)?.status().await?;
            if !status.success() {
                return Err(PodProcessError::InitContainer(status));
            }
        }
        let container = first_container(&pod).ok_or(PodProcessError::Missing("container"))?;
        let command = self.command(container, &pod, &home)?;
        Ok(PodProcess::process(command, probe(container, &ip)?))
    }

    /// Writes the service account and the volumes. A volume contains the pod's annotations or is an empty
    /// directory.
    fn write_files(&self, pod: &Value, root: &Path, token: &str) -> std::io::Result<()> {
        let account = root.join(ACCOUNT);
        fs::create_dir_all(&account)?;
        fs::write(account.join("token"), token)?;
        fs::write(
            account.join("namespace"),
            tree::text(pod, &["metadata", "namespace"]),
        )?;
        let authority = account.join("ca.crt");
        fs::copy(&self.access.authority, &authority)?;
        fs::set_permissions(&authority, fs::Permissions::from_mode(0o644))?;
        let containers = ["initContainers", "containers"]
            .into_iter()
            .flat_map(|kind| tree::list(pod, &["spec", kind]));
        for mount in containers.flat_map(|container| tree::list(container, &["volumeMounts"])) {
            let path = tree::text(mount, &["mountPath"]).trim_start_matches('/');
            fs::create_dir_all(root.join(path))?;
            let name = tree::text(mount, &["name"]);
            let volume = tree::list(pod, &["spec", "volumes"])
                .iter()
                .find(|volume| tree::text(volume, &["name"]) == name);
            if volume.is_some_and(|volume| volume.get("emptyDir").is_some()) {
                fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o777))?;
            }
            for item in volume.map_or(&[][..], |volume| tree::list(volume, &["downwardAPI", "items"])) {
                fs::write(
                    root.join(path).join(tree::text(item, &["path"])),
                    annotations(pod),
                )?;
            }
        }
        Ok(())
    }

    fn command(&self, container: &Value, pod: &Value, home: &Path) -> Result<Command, PodProcessError> {
        let log = File::options().create(true).append(true).open(home.join("log"))?;
        let server = self.access.server.trim_start_matches("https://");
        let address = || PodProcessError::Address(server.to_owned());
        let (host, port) = server.rsplit_once(':').ok_or_else(address)?;
        let arguments = tree::list(container, &["args"]).iter().filter_map(Value::as_str);
        let mut command = Command::new("chroot");
        command
            .arg(format!("--userspec={}", self.image.user))
            .arg("--groups=")
            .arg(home.join("root"))
            .arg(&self.image.entrypoint)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(
                self.image
                    .environment
                    .iter()
                    .filter_map(|one| one.split_once('=')),
            )
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port)
            .envs(environment(container, pod))
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }
}

impl PodBackend for ImagePods {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        if tree::text(first_container(pod)?, &["image"]) != self.image.reference {
            return None;
        }
        Some(Box::pin(self.clone().into_process(pod.clone(), ip.to_owned())))
    }
}

fn first_container(pod: &Value) -> Option<&Value> {
    tree::list(pod, &["spec", "containers"]).first()
}

/// Copies a directory recursively. Files are hard links if possible, because processes do not modify them.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Returns the pod's annotations in the format of the downward API.
fn annotations(pod: &Value) -> String {
    let annotations = tree::get(pod, &["metadata", "annotations"]).and_then(Value::as_object);
    let line = |(name, value): (&String, &Value)| format!("{name}={value}\n");
    annotations
        .map(|all| all.iter().map(line).collect())
        .unwrap_or_default()
}

fn environment(container: &Value, pod: &Value) -> Vec<(String, String)> {
    let variable = |variable: &Value| {
        let path = tree::text(variable, &["valueFrom", "fieldRef", "fieldPath"]);
        let value = if path.is_empty() {
            tree::text(variable, &["value"])
        } else {
            tree::text(pod, &path.split('.').collect::<Vec<_>>())
        };
        (tree::text(variable, &["name"]).to_owned(), value.to_owned())
    };
    tree::list(container, &["env"]).iter().map(variable).collect()
}

/// Returns the container's readiness probe. For a container without a probe, such as that of a Job, returns a
/// probe that never succeeds, because no process listens on port 1.
fn probe(container: &Value, ip: &str) -> Result<Probe, PodProcessError> {
    let ip = ip.parse().map_err(|_| PodProcessError::Address(ip.to_owned()))?;
    let get = tree::get(container, &["readinessProbe", "httpGet"]);
    let Some(get) = get else {
        return Ok(Probe::Tcp(SocketAddr::new(ip, 1)));
    };
    let name = tree::text(get, &["port"]);
    let ports = tree::list(container, &["ports"]);
    let port = ports.iter().find(|port| tree::text(port, &["name"]) == name);
    let port = port.and_then(|port| tree::get(port, &["containerPort"])?.as_u64());
    let port = port
        .and_then(|port| u16::try_from(port).ok())
        .ok_or(PodProcessError::Missing("port of the readiness probe"))?;
    Ok(Probe::Http(
        SocketAddr::new(ip, port),
        tree::text(get, &["path"]).to_owned(),
    ))
}
