//! A served simulator, and runs of the binary against it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kube::Client;
use mainstay_sim::Cluster;
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use serde_json::Value;

pub(crate) use crate::request::call;

/// A served cluster and kubeconfigs for it.
pub(crate) struct Host {
    pub(crate) cluster: Cluster,
    _server: Server,
    directory: tempfile::TempDir,
}

impl Host {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::default();
        let options = ServeOptions {
            speed: 0.0,
            ..ServeOptions::default()
        };
        let server = Server::start(&cluster, &options).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        for (user, file) in [(User::admin(), "admin"), (User::named("guest", &[]), "guest")] {
            server
                .write_kubeconfig(user, &directory.path().join(file))
                .unwrap();
        }
        Self {
            cluster,
            _server: server,
            directory,
        }
    }

    /// Starts a cluster that serves the delivery kinds.
    pub(crate) async fn with_definitions() -> Self {
        let host = Self::start().await;
        let installed = host
            .run("admin", &["crds", "install", "--only", "delivery"])
            .await;
        assert!(installed.contains("--- exit 0"), "{installed}");
        host
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.directory.path().join(user)
    }

    /// Runs the binary as `user`.
    pub(crate) async fn run(&self, user: &str, arguments: &[&str]) -> String {
        let mut command = command(arguments);
        command.arg("--kubeconfig").arg(self.kubeconfig(user));
        let shown = arguments.join(" ");
        tokio::task::spawn_blocking(move || finish(command, &shown, ""))
            .await
            .unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.cluster.connect("fixture"), "default")
    }

    /// Creates an object with its status, or replaces the status of an existing one.
    pub(crate) async fn store(&self, object: &Value) {
        let client = self.client();
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let api = object["apiVersion"].as_str().unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("/apis/{api}/namespaces/default/{plural}");
        let mut bare = object.clone();
        bare.as_object_mut().unwrap().remove("status");
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            bare["metadata"].as_object_mut().unwrap().remove(field);
        }
        let stored = call(&client, "GET", &format!("{path}/{name}"), &Value::Null).await;
        let mut stored = match stored {
            Ok(stored) => stored,
            Err(_) => call(&client, "POST", &path, &bare).await.unwrap(),
        };
        stored["status"] = object["status"].clone();
        call(&client, "PUT", &format!("{path}/{name}/status"), &stored)
            .await
            .unwrap();
    }
}

/// Prepares the binary in the directory of the fixtures, with a width of 80 columns.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env("COLUMNS", "80")
        .current_dir(directory());
    command
}

/// Runs the binary without a cluster.
pub(crate) fn offline(arguments: &[&str]) -> String {
    finish(command(arguments), &arguments.join(" "), "")
}

/// Runs a command; returns its output and exit code as one text.
pub(crate) fn finish(mut command: Command, shown: &str, input: &str) -> String {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let error = if err.is_empty() {
        String::new()
    } else {
        format!("--- stderr\n{err}")
    };
    format!(
        "$ mainstay {shown}\n{out}{error}--- exit {}\n",
        output.status.code().unwrap()
    )
}

pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rollout")
}

/// Compares the output with the stored file; `BLESS=1` writes the file.
pub(crate) fn check(name: &str, printed: &str) {
    let path = directory().join("expected").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        printed == expected,
        "{name}: printed\n{printed}\nexpected\n{expected}"
    );
}
