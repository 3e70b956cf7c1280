//! Installs charts with the real Helm. A post-renderer marks objects as the Sail Operator does.

use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use mainstay_api::OwnerReference;
use mainstay_testkit::built_peer;
use mainstay_testkit::cluster::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{NAMESPACE, chart, documents};

/// Argument with which the test binary runs as the post-renderer.
pub(crate) const POST_RENDER: &str = "post-render";
/// Environment variable that contains the owner reference for the post-renderer.
const OWNER: &str = "POST_RENDER_OWNER";
/// Environment variable that is `true` during upgrades, for the post-renderer.
const IS_UPGRADE: &str = "POST_RENDER_IS_UPGRADE";

pub(crate) struct Helm {
    directory: TempDir,
    kubeconfig: PathBuf,
    is_helm4: bool,
    is_server_side: bool,
    owner: Option<String>,
}

impl Helm {
    /// Creates a Helm of a generation (`helm3`, `helm4`, `helm4 --server-side=true`). If `owner` is set,
    /// objects are marked as the Sail Operator does.
    pub(crate) fn new(generation: &str, cluster: &Cluster, owner: Option<&OwnerReference>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (peer, flag) = generation.split_once(' ').unwrap_or((generation, ""));
        // Helm uses the name of its executable as field manager.
        symlink(built_peer(peer).unwrap(), directory.path().join("helm")).unwrap();
        let helm = Self {
            kubeconfig: cluster.kubeconfig("admin"),
            is_helm4: peer == "helm4",
            is_server_side: !flag.is_empty(),
            owner: owner.map(|owner| json!(owner).to_string()),
            directory,
        };
        helm.write_post_renderer();
        helm
    }

    /// Writes the post-renderer as a plugin for Helm 4, which runs plugins (an executable with a
    /// manifest). Helm 3 runs an executable.
    fn write_post_renderer(&self) {
        let plugin = self.directory.path().join("plugins/mark");
        std::fs::create_dir_all(&plugin).unwrap();
        let own = std::env::current_exe().unwrap();
        let description = format!(
            "apiVersion: v1\ntype: postrenderer/v1\nname: mark\nversion: 0.1.0\nruntime: subprocess\nruntimeConfig:\n  platformCommand:\n  - command: {}\n    args: [{POST_RENDER}]\n",
            own.display()
        );
        std::fs::write(plugin.join("plugin.yaml"), description).unwrap();
    }

    pub(crate) fn install(&self, version: &str, name: &str, release: &str, values: &str) {
        let done = self.try_run("install", (version, name), release, values);
        assert!(done.is_ok(), "{done:?}");
    }

    /// Upgrades a release, as the Sail Operator does on every reconcile.
    pub(crate) fn upgrade(&self, version: &str, name: &str, release: &str, values: &str) {
        let done = self.try_run("upgrade", (version, name), release, values);
        assert!(done.is_ok(), "{done:?}");
    }

    /// Installs or upgrades a release. Returns Helm's error message if it fails.
    pub(crate) fn try_run(
        &self,
        verb: &str,
        (version, name): (&str, &str),
        release: &str,
        values: &str,
    ) -> Result<(), String> {
        let file = self.directory.path().join("values.yaml");
        std::fs::write(&file, values).unwrap();
        let mut command = self.command();
        command.args([verb, release]).arg(chart(version, name));
        command
            .args(["--skip-crds", "--disable-openapi-validation", "-f"])
            .arg(file);
        if self.is_helm4 {
            command.arg(format!("--server-side={}", self.is_server_side));
        }
        if let Some(owner) = &self.owner {
            command
                .env(OWNER, owner)
                .env(IS_UPGRADE, (verb == "upgrade").to_string());
            if self.is_helm4 {
                command.args(["--post-renderer", "mark"]);
            } else {
                command
                    .arg("--post-renderer")
                    .arg(std::env::current_exe().unwrap());
                command.args(["--post-renderer-args", POST_RENDER]);
            }
        }
        run(command)
    }

    pub(crate) fn uninstall(&self, release: &str) {
        let mut command = self.command();
        command.args(["uninstall", release]);
        let done = run(command);
        assert!(done.is_ok(), "{done:?}");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.directory.path().join("helm"));
        command
            .args(["--namespace", NAMESPACE])
            .env("KUBECONFIG", &self.kubeconfig);
        command.env("HELM_PLUGINS", self.directory.path().join("plugins"));
        for (name, place) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(name, self.directory.path().join(place));
        }
        command
    }
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Adds an owner and a label to the manifests on standard input, and prints them. On upgrades, removes
/// the failure policy of validators, because istiod sets it.
pub(crate) fn post_render() {
    let owner: Value = serde_json::from_str(&std::env::var(OWNER).unwrap()).unwrap();
    let is_upgrade = std::env::var(IS_UPGRADE).as_deref() == Ok("true");
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    for mut object in documents(&text) {
        object["metadata"]["labels"]["managed-by"] = json!("sail-operator");
        object["metadata"]["ownerReferences"] = json!([owner]);
        if is_upgrade && object["kind"] == "ValidatingWebhookConfiguration" {
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                webhook.as_object_mut().unwrap().remove("failurePolicy");
            }
        }
        println!("---\n{object}");
    }
}
