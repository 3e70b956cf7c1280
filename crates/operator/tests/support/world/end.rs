//! The end of a world: everything is taken away as a user would, and nothing may be left; and what is told when it ends otherwise.

use serde_json::Value;

use super::{Backing, World, brief, named};
use crate::support::at::{At, INSTALLED_KINDS, MESH_KINDS};

impl World {
    /// Takes away what a trial that failed has left.
    pub(super) async fn sweep(&self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                let at = At::of(&named(kind, object));
                self.delete(&at).await;
                self.until_gone(&at).await;
            }
        }
        let stays = |space: &&Value| space["status"]["phase"] == "Active";
        let name = |space: &Value| Some(space["metadata"]["name"].as_str()?.to_owned());
        let spaces = self.list("Namespace", "").await;
        let names = spaces.iter().filter(stays).filter_map(name);
        let left: Vec<String> = names.filter(|name| name.starts_with("app-")).collect();
        self.clear(&left).await;
    }

    /// Takes everything of the mesh away as a user would, and looks that nothing is left of it.
    pub async fn end(self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                self.delete(&At::of(&named(kind, object))).await;
            }
        }
        for kind in MESH_KINDS {
            self.until(&format!("no {kind} is left"), async |world| {
                let left = world.list(kind, "").await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| left.iter().map(brief).collect::<Vec<_>>().join("\n"))
            })
            .await;
        }
        self.until("nothing that was installed is left", async |world| {
            let mut left = Vec::new();
            for kind in INSTALLED_KINDS {
                let found = world.list(kind, "managed-by=sail-operator").await;
                left.extend(
                    found
                        .into_iter()
                        .map(|object| At::of(&named(kind, object)).to_string()),
                );
            }
            left.is_empty().then_some(()).ok_or(left.join(", "))
        })
        .await;
        let namespaces = self.namespaces.take();
        self.clear(&namespaces).await;
        for namespace in &namespaces {
            self.delete(&At::cluster("Namespace", namespace)).await;
        }
        self.promises.check();
        assert!(!self.operator_ended(), "the operator ended by itself");
        self.stop_operator().await;
    }

    /// Workloads must not be there any more when the next scenario counts its own. Their namespaces take longer to go, and are
    /// not waited for: they ask for nothing any more.
    async fn clear(&self, namespaces: &[String]) {
        if !matches!(&self.backing, Backing::Real(real) if real.injects) {
            return;
        }
        for namespace in namespaces {
            self.label(namespace, "istio.io/rev= istio-injection=").await;
            for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
                let path = At::inside(kind, namespace, "").collection();
                self.call("DELETE", &path, "", None).await;
            }
        }
        for namespace in namespaces {
            let path = At::inside("Pod", namespace, "").collection();
            self.until(&format!("{namespace} is empty"), async |world| {
                let (_, list) = world.call("GET", &path, "", None).await;
                let left = list["items"].as_array().map_or(0, Vec::len);
                (left == 0).then_some(()).ok_or(format!("{left} pods"))
            })
            .await;
        }
    }

    /// What a reader of a failure wants to see.
    pub(super) async fn last_words(&self) -> String {
        let mut words = Vec::new();
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                words.push(brief(&named(kind, object)));
            }
        }
        if let Backing::Sim(sim) = &self.backing {
            let calls = super::time::traced_calls(sim.sim(), 0);
            let from = calls.len().saturating_sub(12);
            words.extend(calls[from..].iter().map(|call| call.line.clone()));
        }
        words.push(format!("operator ended: {}", self.operator_ended()));
        words.extend(self.promises.broken());
        words.join("\n")
    }
}
