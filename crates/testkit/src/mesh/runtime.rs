//! Directories, files and commands for the processes of pods.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use mainstay_sim::tree;
use serde_json::{Value, json};
use tokio::process::Command;

use super::app;
use super::node::bind;
use super::pod::{Container, Program};
use super::registry::Registry;
use super::rules::PROXY_USER;
use crate::cluster::Access;
use crate::peer::{PeerError, built_peer};

/// State shared by all pods of a mesh.
#[derive(Clone)]
pub(super) struct MeshRuntime(Arc<Inner>);

pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) access: Access,
    /// Directory of pod files. All users can access it.
    pub(super) directory: PathBuf,
    pub(super) node: Ipv4Addr,
    pub(super) registry: Registry,
}

impl std::fmt::Debug for MeshRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pods in {}", self.directory.display())
    }
}

impl std::ops::Deref for MeshRuntime {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// File name of the test program in the directory of the peers.
pub(super) const SELF: &str = "app";

/// Istio versions that a mesh can run.
const VERSIONS: [&str; 2] = ["1.28.2", "1.29.1"];

/// Peers that a mesh requires in addition to those of the cluster.
pub const PARTS: [&str; 7] = [
    "pilot-discovery-1.28.2",
    "pilot-discovery-1.29.1",
    "pilot-agent-1.28.2",
    "pilot-agent-1.29.1",
    "envoy-bootstrap-1.28.2",
    "envoy-bootstrap-1.29.1",
    "envoy",
];

impl MeshRuntime {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Bind-mounts the peers to a directory that the proxy's user can access. The cache itself is in a home
    /// directory.
    pub(super) fn bind_peers(directory: &Path) -> Result<(), PeerError> {
        for name in PARTS {
            let (peer, at) = (built_peer(name)?, directory.join(name));
            let shown = File::create(&at).and_then(|_| bind(&peer, &at));
            shown.map_err(|source| PeerError::File { path: at, source })?;
        }
        // The bind mount keeps the running program even if it is rebuilt.
        let at = directory.join(SELF);
        let own = std::env::current_exe().and_then(|own| {
            File::create(&at)?;
            bind(&own, &at)
        });
        own.map_err(|source| PeerError::File { path: at, source })
    }

    /// Creates the directory of a pod with the files of its proxy.
    pub(super) async fn create_pod_directory(
        &self,
        pod: &Value,
        version: Option<&str>,
    ) -> io::Result<PathBuf> {
        let text = |key| tree::text(pod, &["metadata", key]);
        let home = self
            .directory
            .join(format!("{}_{}", text("namespace"), text("name")));
        fs::create_dir_all(&home)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o755))?;
        let Some(version) = version else {
            return Ok(home);
        };
        let version = if VERSIONS.contains(&version) {
            version
        } else {
            VERSIONS[1]
        };
        let token = self.token(pod, Some("istio-ca")).await?;
        let root = self.root_certificate(text("namespace")).await?;
        let files = [
            ("var/run/secrets/tokens/istio-token", token),
            ("var/run/secrets/istio/root-cert.pem", root),
            ("etc/istio/pod/labels", pairs(pod, "labels")),
            ("etc/istio/pod/annotations", pairs(pod, "annotations")),
        ];
        for (path, text) in files {
            write(&home.join(path), &text)?;
        }
        let template = home.join("var/lib/istio/envoy/envoy_bootstrap_tmpl.json");
        fs::create_dir_all(template.parent().unwrap_or(&home))?;
        if !template.exists() {
            symlink(
                self.directory.join(format!("envoy-bootstrap-{version}")),
                &template,
            )?;
        }
        chown_to_proxy(&home)?;
        Ok(home)
    }

    /// Requests a token of the pod's service account.
    async fn token(&self, pod: &Value, audience: Option<&str>) -> io::Result<String> {
        let text = |path: &[&str]| tree::text(pod, path);
        let account = match text(&["spec", "serviceAccountName"]) {
            "" => "default",
            account => account,
        };
        let namespace = text(&["metadata", "namespace"]);
        let mut spec = json!({"expirationSeconds": 43_200, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": text(&["metadata", "name"]), "uid": text(&["metadata", "uid"]),
        }});
        if let Some(audience) = audience {
            tree::set(&mut spec, &["audiences"], json!([audience]));
        }
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .map_err(io::Error::other)?;
        let reply: Value = self.client.request(request).await.map_err(io::Error::other)?;
        Ok(tree::text(&reply, &["status", "token"]).to_owned())
    }

    /// Waits for the root certificate, which istiod writes into every namespace after a delay.
    async fn root_certificate(&self, namespace: &str) -> io::Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/istio-ca-root-cert");
        for _ in 0..300 {
            let request = Request::get(&path).body(Vec::new()).map_err(io::Error::other)?;
            if let Ok(found) = self.client.request::<Value>(request).await {
                return Ok(tree::text(&found, &["data", "root-cert.pem"]).to_owned());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(io::Error::other(format!("{namespace} has no istio-ca-root-cert")))
    }

    /// Writes a kubeconfig with the pod's service account, so that RBAC applies to the process.
    async fn kubeconfig(&self, pod: &Value, home: &Path) -> io::Result<PathBuf> {
        let token = self.token(pod, None).await?;
        let path = home.join("kubeconfig");
        fs::write(&path, self.access.kubeconfig("pod", &token))?;
        Ok(path)
    }

    /// Returns the command of a container; its output is appended to a file.
    pub(super) async fn command(
        &self,
        pod: &Value,
        container: &Container,
        home: &Path,
    ) -> io::Result<Command> {
        let mut command = Command::new(self.binary(&container.program));
        command
            .current_dir(home)
            .args(&container.arguments)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", home)
            .envs(&container.environment)
            .process_group(0)
            .kill_on_drop(true);
        log_to(&mut command, &self.log(pod, &container.name))?;
        match &container.program {
            Program::Istiod(_) => {
                command.arg("--kubeconfig").arg(self.kubeconfig(pod, home).await?);
            }
            Program::Agent(_) => {
                // Envoy opens its output again by path, so the proxy's user must own the file.
                chown(self.log(pod, &container.name), Some(PROXY_USER), Some(PROXY_USER))?;
                command.uid(PROXY_USER).gid(PROXY_USER);
            }
            Program::App => {
                command.env(app::NAME, tree::text(pod, &["metadata", "name"]));
            }
        }
        Ok(command)
    }

    fn binary(&self, program: &Program) -> PathBuf {
        match program {
            Program::Istiod(version) => self.directory.join(format!("pilot-discovery-{version}")),
            Program::Agent(version) => self.directory.join(format!("pilot-agent-{version}")),
            Program::App => self.directory.join(SELF),
        }
    }

    /// Returns the log file of a container.
    pub(super) fn log(&self, pod: &Value, container: &str) -> PathBuf {
        let text = |key| tree::text(pod, &["metadata", key]);
        let name = format!("{}_{}_{container}.log", text("namespace"), text("name"));
        self.directory.join("logs").join(name)
    }
}

fn log_to(command: &mut Command, path: &Path) -> io::Result<()> {
    let log = File::options().create(true).append(true).open(path)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}

/// Formats labels or annotations as the downward API does.
fn pairs(pod: &Value, kind: &str) -> String {
    let map = tree::map(pod, &["metadata", kind]);
    let map: BTreeMap<&String, &Value> = map.into_iter().flatten().collect();
    let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    lines.join("\n")
}

fn chown_to_proxy(directory: &Path) -> io::Result<()> {
    chown(directory, Some(PROXY_USER), Some(PROXY_USER))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            chown_to_proxy(&entry.path())?;
        } else if entry.file_type()?.is_file() {
            chown(entry.path(), Some(PROXY_USER), Some(PROXY_USER))?;
        }
    }
    Ok(())
}
