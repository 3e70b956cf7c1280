//! Executes the actions of a plan on the model.

use jiff::Timestamp;
use mainstay_api::delivery::{DEPLOYMENT_LABEL, FINALIZER, REVISION_LABEL};
use serde_json::Value;

use super::{Behavior, Model, ModelObject};
use crate::manifest::{Manifest, ObjectKey};
use crate::plan::{Action, Apply, InventoryWrite, MeasureRequest, Plan};
use crate::snapshot::{Inventory, Measurement, Version};
use crate::traffic::{WEIGHTS, parse_weights};

impl Model {
    /// Executes a plan as described at [`Plan`]. Writes to unreachable clusters fail.
    pub fn execute(&mut self, plan: &Plan, behavior: &mut dyn Behavior) {
        for step in &plan.prepare {
            if !self.run("", &step.action, behavior) {
                return;
            }
        }
        for (cluster, steps) in &plan.clusters {
            for step in steps {
                if !self.is_up(cluster) || !self.run(cluster, &step.action, behavior) {
                    break;
                }
            }
        }
        for step in &plan.finish {
            self.run("", &step.action, behavior);
        }
    }

    /// Executes an action. Returns whether its precondition held.
    pub fn run(&mut self, cluster: &str, action: &Action, behavior: &mut dyn Behavior) -> bool {
        let version = Version {
            uid: "uid".into(),
            resource_version: self.next_version(),
        };
        match action {
            Action::AddFinalizer(_) => self.deployment.metadata.finalizers = vec![FINALIZER.into()],
            Action::RemoveFinalizer(_) => self.deployment.metadata.finalizers.clear(),
            Action::WriteStatus(seen, status) => {
                if seen.resource_version != self.deployment.metadata.resource_version {
                    return false;
                }
                self.deployment.metadata.resource_version = version.resource_version;
                self.deployment.status = (**status).clone();
            }
            Action::WriteInventory(write) => return self.write_inventory(write, version),
            Action::Apply(apply) => return self.apply(cluster, apply, version, behavior),
            Action::Scale(scale) => {
                let Some(object) = self.current_object(cluster, &scale.key, &scale.precondition) else {
                    return false;
                };
                object.observed.version = version;
                object.observed.replicas = scale.replicas;
                self.adjust_pods(behavior);
            }
            Action::Delete(delete) => {
                if self
                    .current_object(cluster, &delete.key, &delete.precondition)
                    .is_none()
                {
                    return false;
                }
                if let Some(cluster) = self.clusters.get_mut(cluster) {
                    cluster.objects.remove(&delete.key);
                }
            }
            Action::Release(release) => {
                let Some(object) = self.current_object(cluster, &release.key, &release.precondition) else {
                    return false;
                };
                object.observed.version = version;
                object.observed.owners.retain(|uid| *uid != release.owner);
            }
            Action::CompleteAction { name, status, .. } => {
                let own = self.actions.iter_mut().filter(|action| action.name() == name);
                own.for_each(|action| action.status = status.clone());
            }
            Action::Measure(request) => self.measure(request, behavior),
            Action::Event { .. } | Action::EnsureNamespace(_) => {}
        }
        true
    }

    /// Returns the object if it has this version.
    fn current_object(
        &mut self,
        cluster: &str,
        key: &ObjectKey,
        version: &Version,
    ) -> Option<&mut ModelObject> {
        let object = self.clusters.get_mut(cluster)?.objects.get_mut(key)?;
        (object.observed.version == *version).then_some(object)
    }

    fn write_inventory(&mut self, write: &InventoryWrite, version: Version) -> bool {
        let Some(cluster) = self.clusters.get_mut(&write.cluster) else {
            return false;
        };
        if cluster.inventory.version != write.precondition {
            return false;
        }
        cluster.inventory = Inventory {
            version: (!write.objects.is_empty()).then_some(version),
            objects: write.objects.clone(),
        };
        true
    }

    fn apply(&mut self, cluster: &str, apply: &Apply, version: Version, behavior: &mut dyn Behavior) -> bool {
        let manifest = &apply.manifest;
        let seen = self.object(cluster, &manifest.key);
        if seen.map(|object| &object.observed.version) != apply.precondition.as_ref() {
            return false;
        }
        let now = self.now;
        let Some(state) = self.clusters.get_mut(cluster) else {
            return false;
        };
        let object = state.objects.entry(manifest.key.clone()).or_default();
        object.record_manifest(manifest, version);
        object.observed.owners = apply.owner.iter().map(|owner| owner.uid.clone()).collect();
        if let Some(replicas) = apply.replicas {
            object.observed.replicas = replicas;
        }
        if let Some(weights) = text_at(manifest, &["annotations", WEIGHTS]) {
            object.observed.weights = parse_weights(&weights).unwrap_or_default();
            object.observed.is_accepted = false;
            object.accepted_at = Some(
                now.saturating_add(behavior.route_delay())
                    .unwrap_or(Timestamp::MAX),
            );
        }
        self.adjust_pods(behavior);
        true
    }

    fn measure(&mut self, request: &MeasureRequest, behavior: &mut dyn Behavior) {
        let template = self.templates.get(&request.key.template);
        let metric = template.and_then(|template| {
            let mut metrics = template.spec.metrics.iter();
            metrics.find(|metric| metric.name == request.key.metric)
        });
        let measurement = Measurement {
            key: request.key.clone(),
            at: self.now,
            value: behavior.measure(request, metric),
            samples: metric.and_then(|metric| metric.min_samples).map(u64::from),
        };
        self.measurements.push(measurement);
    }

    /// Creates and deletes pods like the controllers of the clusters. Pods that are not ready are deleted
    /// first.
    pub(super) fn adjust_pods(&mut self, behavior: &mut dyn Behavior) {
        let now = self.now;
        for (name, cluster) in &mut self.clusters {
            for object in cluster.objects.values_mut() {
                let wanted = object.observed.replicas as usize;
                let revision = object.observed.revision.clone().unwrap_or_default();
                while object.pods.len() < wanted {
                    let delay = behavior.pod_delay(name, &revision);
                    let ready_at = delay.and_then(|delay| now.checked_add(delay).ok());
                    object.pods.push(ready_at.unwrap_or(Timestamp::MAX));
                }
                object.pods.sort();
                object.pods.truncate(wanted);
            }
        }
    }
}

impl ModelObject {
    fn record_manifest(&mut self, manifest: &Manifest, version: Version) {
        self.observed.version = version;
        self.observed.deployment = text_at(manifest, &["labels", DEPLOYMENT_LABEL]);
        self.observed.revision = text_at(manifest, &["labels", REVISION_LABEL]);
        self.observed.hash = Some(manifest.hash.clone());
        self.observed.is_drifted = false;
        self.manifest.clone_from(&manifest.object);
    }
}

/// Returns the string at a path of the manifest's metadata.
fn text_at(manifest: &Manifest, path: &[&str]) -> Option<String> {
    let metadata = manifest.object.get("metadata")?;
    let value = path.iter().try_fold(metadata, |value, key| value.get(key))?;
    Value::as_str(value).map(str::to_owned)
}
