//! Teardown of a world: deletes all objects as a user would, and checks that none is left.

use serde_json::Value;

use super::{Backing, World, summarize, with_kind};
use crate::support::path::{INSTALLED_KINDS, MESH_KINDS, ObjectPath};

impl World {
    /// Deletes remaining objects of a failed test.
    pub(super) async fn delete_leftovers(&self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                let at = ObjectPath::from_object(&with_kind(kind, object));
                self.delete(&at).await;
                self.until_gone(&at).await;
            }
        }
        let stays = |space: &&Value| space["status"]["phase"] == "Active";
        let name = |space: &Value| Some(space["metadata"]["name"].as_str()?.to_owned());
        let spaces = self.list("Namespace", "").await;
        let names = spaces.iter().filter(stays).filter_map(name);
        let left: Vec<String> = names.filter(|name| name.starts_with("app-")).collect();
        self.delete_workloads(&left).await;
    }

    /// Deletes the complete mesh as a user would, and checks that no object is left.
    pub async fn end(self) {
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                self.delete(&ObjectPath::from_object(&with_kind(kind, object)))
                    .await;
            }
        }
        for kind in MESH_KINDS {
            self.until(&format!("no {kind} is left"), async |world| {
                let left = world.list(kind, "").await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| left.iter().map(summarize).collect::<Vec<_>>().join("\n"))
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
                        .map(|object| ObjectPath::from_object(&with_kind(kind, object)).to_string()),
                );
            }
            left.is_empty().then_some(()).ok_or(left.join(", "))
        })
        .await;
        let namespaces = self.namespaces.take();
        self.delete_workloads(&namespaces).await;
        for namespace in &namespaces {
            self.delete(&ObjectPath::cluster_scoped("Namespace", namespace))
                .await;
        }
        self.plan_checks.check();
        assert!(!self.operator_ended(), "the operator ended by itself");
        self.stop_operator().await;
    }

    /// Deletes the workloads of these namespaces, so that the next scenario does not count them. Does not
    /// wait for the deletion of the namespaces, which takes longer; they no longer refer to a revision.
    async fn delete_workloads(&self, namespaces: &[String]) {
        if !matches!(&self.backing, Backing::Real(real) if real.injects) {
            return;
        }
        for namespace in namespaces {
            self.label(namespace, "istio.io/rev= istio-injection=").await;
            for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
                let path = ObjectPath::namespaced(kind, namespace, "").collection();
                self.call("DELETE", &path, "", None).await;
            }
        }
        for namespace in namespaces {
            let path = ObjectPath::namespaced("Pod", namespace, "").collection();
            self.until(&format!("{namespace} is empty"), async |world| {
                let (_, list) = world.call("GET", &path, "", None).await;
                let left = list["items"].as_array().map_or(0, Vec::len);
                (left == 0).then_some(()).ok_or(format!("{left} pods"))
            })
            .await;
        }
    }

    /// Describes the state of the cluster for a failure message.
    pub(super) async fn describe(&self) -> String {
        let mut lines = Vec::new();
        for kind in MESH_KINDS {
            for object in self.list(kind, "").await {
                lines.push(summarize(&with_kind(kind, object)));
            }
        }
        if let Backing::Sim(sim) = &self.backing {
            let calls = super::time::traced_calls(sim.sim(), 0);
            let from = calls.len().saturating_sub(12);
            lines.extend(calls[from..].iter().map(|call| call.line.clone()));
        }
        lines.push(format!("operator ended: {}", self.operator_ended()));
        lines.extend(self.plan_checks.violations());
        lines.join("\n")
    }
}
