//! Two simulated clusters, valid and invalid kubeconfigs, and files with one error each.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::crd::{VersionNames, definitions, delivery_definitions};
use mainstay_sim::Cluster;
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_sim::snapshot::load;

use super::cases::Mistake;

/// Clusters and files for the mistakes; removed on drop.
pub(crate) struct Host {
    directory: tempfile::TempDir,
    servers: Vec<(Server, &'static str)>,
    _taken: std::net::TcpListener,
    port: u16,
}

/// Output of a command.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stderr: String,
    pub(crate) transcript: String,
}

/// Files by name.
const FILES: &[(&str, &str)] = &[
    (
        "invalid.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n   labels: {}\n",
    ),
    ("list.yaml", "- a\n- b\n"),
    (
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\n",
    ),
    ("readiness.yaml", "shop/cart: soon\n"),
    (
        "mesh.yaml",
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n",
    ),
    (
        "typo.yaml",
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  componets: {}\n",
    ),
    ("full/keep.txt", "keep\n"),
    ("kubeconfigs/empty", ""),
    ("kubeconfigs/broken", "apiVersion: v1\nclusters: [\n"),
    (
        "kubeconfigs/no-current",
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: dev, context: {cluster: c, user: u}}, {name: test, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n",
    ),
    (
        "kubeconfigs/dangling",
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\nclusters: []\ncontexts: [{name: dev, context: {cluster: gone, user: u}}]\nusers: [{name: u, user: {}}]\n",
    ),
    (
        "kubeconfigs/no-server",
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\nclusters: [{name: c, cluster: {}}]\ncontexts: [{name: dev, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n",
    ),
    (
        "kubeconfigs/down",
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: prod, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n",
    ),
    (
        "kubeconfigs/no-plugin",
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: prod, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}}]\n",
    ),
];

impl Host {
    /// Starts a cluster without definitions (`bare`) and one with them (`mesh`).
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rehearse/shop.yaml");
        std::fs::copy(shop, directory.path().join("shop.yaml")).unwrap();
        let mut servers = Vec::new();
        for name in ["bare", "mesh"] {
            let cluster = Cluster::default();
            if name == "mesh" {
                cluster.with(|state| load(state, all_definitions()));
            }
            servers.push((serve(&cluster, directory.path(), name).await, name));
        }
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        Self {
            directory,
            servers,
            _taken: taken,
            port,
        }
    }

    /// Runs the command of a mistake.
    pub(crate) async fn run(&self, case: &Mistake) -> Run {
        let arguments = case.arguments.replace("PORT", &self.port.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", "home")
            .env("XDG_DATA_HOME", self.directory.path().join("data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match case.kubeconfig {
            "" => {}
            name => drop(command.env("KUBECONFIG", format!("kubeconfigs/{name}"))),
        }
        let stdin = case.stdin.to_owned();
        let output = tokio::task::spawn_blocking(move || run(command, &stdin))
            .await
            .unwrap();
        let stderr = self.stable(&String::from_utf8_lossy(&output.stderr));
        let stdout = self.stable(&String::from_utf8_lossy(&output.stdout));
        let code = output.status.code().unwrap_or(-1);
        let transcript = format!("$ mainstay {}\n{stdout}{stderr}--- exit {code}\n", case.arguments);
        Run {
            code,
            stderr,
            transcript,
        }
    }

    /// Replaces paths, ports and other text that differs between runs.
    fn stable(&self, text: &str) -> String {
        let mut text = text.replace(&self.directory.path().display().to_string(), "DIR");
        for (server, name) in &self.servers {
            text = text.replace(&server.url(), &format!("https://{name}.example:6443"));
        }
        // Progress is printed on slow machines.
        let is_progress = |line: &&str| line.starts_with("rehearsing (") || line.starts_with("reading (");
        let lines = text.lines().filter(|line| !is_progress(line));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        text.replace(&self.port.to_string(), "PORT")
    }
}

fn run(mut command: Command, stdin: &str) -> std::process::Output {
    use std::io::Write as _;
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that does not read stdin closes it.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn all_definitions() -> Vec<serde_json::Value> {
    let names = VersionNames {
        all: &["v1.28.2", "v1.29.1"],
        concrete: &["v1.28.2", "v1.29.1"],
        ambient: &["v1.29.1"],
        default: "v1.29.1",
    };
    let mut all = definitions(&names);
    all.extend(delivery_definitions());
    all
}

/// Serves a cluster; writes kubeconfigs for an administrator (the name of the cluster), a guest, an expired
/// token and a wrong certificate authority.
async fn serve(cluster: &Cluster, directory: &Path, name: &str) -> Server {
    let server = Server::start(cluster, &ServeOptions::default()).await.unwrap();
    let path = |name: &str| -> PathBuf { directory.join("kubeconfigs").join(name) };
    server.write_kubeconfig(User::admin(), &path(name)).unwrap();
    if name == "mesh" {
        server
            .write_kubeconfig(User::named("guest", &[]), &path("guest"))
            .unwrap();
        let admin = std::fs::read_to_string(path(name)).unwrap();
        let edited = |key: &str, value: &str| {
            let lines = admin.lines().map(|line| match line.split_once(key) {
                Some((before, _)) => format!("{before}{key}{value}\n"),
                None => format!("{line}\n"),
            });
            lines.collect::<String>()
        };
        std::fs::write(path("expired"), edited("token: ", "expired")).unwrap();
        let other = rcgen::generate_simple_self_signed(vec!["other.example".to_owned()]).unwrap();
        let other = STANDARD.encode(other.cert.pem());
        std::fs::write(
            path("other-authority"),
            edited("certificate-authority-data: ", &other),
        )
        .unwrap();
    }
    server
}
