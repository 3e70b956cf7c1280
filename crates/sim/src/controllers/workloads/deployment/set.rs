//! The `ReplicaSets` of a Deployment: creation, sizes and annotations.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::actor;
use super::super::names;
use super::super::pod::created_at;
use super::sizes::SetSize;
use super::{ACTOR, Rollout, SETS};
use crate::object::Object;
use crate::state::State;
use crate::status::Result;
use crate::tree;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const HASH_LABEL: &str = "pod-template-hash";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a Deployment that are not copied to its sets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

/// A `ReplicaSet` during a sync.
pub(super) struct ReplicaSet {
    pub(super) value: Value,
    pub(super) object: Arc<Object>,
}

/// Returns the `ReplicaSets` controlled by the Deployment `uid`, oldest first.
pub(super) fn list_for_deployment(state: &State, uid: &str) -> Vec<ReplicaSet> {
    let mut sets: Vec<ReplicaSet> = state
        .store
        .dependents(uid)
        .filter(|location| &*location.table == "replicasets.apps")
        .filter_map(|location| actor::load(state, &location.table, &location.key))
        .filter(|(object, _)| object.meta().controller().is_some_and(|owner| &*owner.uid == uid))
        .map(|(object, value)| ReplicaSet { value, object })
        .collect();
    sets.sort_by(|a, b| (created_at(&a.value), a.name()).cmp(&(created_at(&b.value), b.name())));
    sets
}

/// Returns the sets of earlier templates and the set of the current template.
pub(super) fn split_by_template(
    mut sets: Vec<ReplicaSet>,
    deployment: &Value,
) -> (Vec<ReplicaSet>, Option<ReplicaSet>) {
    let template = tree::get(deployment, &["spec", "template"]);
    let at = sets
        .iter()
        .position(|set| template.is_some_and(|template| same_template(template, &set.value)));
    let new = at.map(|at| sets.remove(at));
    (sets, new)
}

/// Returns whether the templates are equal except for the hash label.
fn same_template(template: &Value, set: &Value) -> bool {
    let Some(mut theirs) = tree::get(set, &["spec", "template"]).cloned() else {
        return false;
    };
    tree::remove(&mut theirs, &["metadata", "labels", HASH_LABEL]);
    if theirs == *template {
        return true;
    }
    let mut ours = template.clone();
    tree::remove(&mut ours, &["metadata", "labels", HASH_LABEL]);
    theirs == ours
}

impl ReplicaSet {
    /// Returns a set for the template of the Deployment. It is not stored.
    pub(super) fn from_template(deployment: &Value) -> Self {
        let mut template = tree::get(deployment, &["spec", "template"])
            .cloned()
            .unwrap_or_default();
        let collisions = tree::int(deployment, &["status", "collisionCount"]).unwrap_or(0);
        let hash = names::template_hash(&template, collisions);
        tree::set(&mut template, &["metadata", "labels", HASH_LABEL], hash.as_str());
        let name = format!("{}-{hash}", tree::text(deployment, &["metadata", "name"]));
        let mut value = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "labels": tree::get(&template, &["metadata", "labels"]),
                "ownerReferences": [actor::controller_reference("apps/v1", "Deployment", deployment)],
            },
            "spec": {"replicas": 0, "selector": Rollout::selector_with_hash(deployment, &hash), "template": template},
        });
        if let Some(seconds) =
            tree::int(deployment, &["spec", "minReadySeconds"]).filter(|seconds| *seconds > 0)
        {
            tree::set(&mut value, &["spec", "minReadySeconds"], seconds);
        }
        let object = Arc::new(Object::freeze(&value, Box::default()));
        Self { value, object }
    }

    pub(super) fn name(&self) -> &str {
        tree::text(&self.value, &["metadata", "name"])
    }

    pub(super) fn uid(&self) -> &str {
        tree::text(&self.value, &["metadata", "uid"])
    }

    pub(super) fn deleting(&self) -> bool {
        self.object.meta().deleting
    }

    pub(super) fn replicas(&self) -> i64 {
        tree::int(&self.value, &["spec", "replicas"]).unwrap_or(1)
    }

    /// Returns a counter in the status.
    pub(super) fn status_field(&self, field: &str) -> i64 {
        tree::int(&self.value, &["status", field]).unwrap_or(0)
    }

    pub(super) fn available(&self) -> i64 {
        self.status_field("availableReplicas")
    }

    fn annotation(&self, name: &str) -> &str {
        tree::text(&self.value, &["metadata", "annotations", name])
    }

    pub(super) fn revision(&self) -> i64 {
        self.annotation(REVISION).parse().unwrap_or(0)
    }

    /// Returns the replicas of the Deployment when the set was last scaled.
    pub(super) fn desired_replicas(&self) -> Option<i64> {
        self.annotation(DESIRED_REPLICAS)
            .parse::<i32>()
            .ok()
            .map(i64::from)
    }

    pub(super) fn set_size(&self) -> SetSize {
        SetSize {
            replicas: self.replicas(),
            max_total: self.annotation(MAX_REPLICAS).parse::<i32>().ok().map(i64::from),
            created: created_at(&self.value).as_seconds(),
        }
    }

    /// Returns whether the set has no replicas and no pods.
    pub(super) fn is_idle(&self) -> bool {
        let observed = self.status_field("observedGeneration");
        let generation = tree::int(&self.value, &["metadata", "generation"]).unwrap_or(0);
        self.status_field("replicas") == 0
            && self.replicas() == 0
            && generation <= observed
            && !self.deleting()
    }

    /// Sets the annotations with the desired and the maximum replicas. Returns whether they changed.
    pub(super) fn set_size_annotations(&mut self, desired: i64, limit: i64) -> bool {
        let changed = self.annotation(DESIRED_REPLICAS) != desired.to_string()
            || self.annotation(MAX_REPLICAS) != limit.to_string();
        for (name, number) in [(DESIRED_REPLICAS, desired), (MAX_REPLICAS, limit)] {
            tree::set(
                &mut self.value,
                &["metadata", "annotations", name],
                number.to_string(),
            );
        }
        changed
    }

    /// Copies `minReadySeconds` of the Deployment. Returns whether it changed.
    pub(super) fn copy_min_ready(&mut self, deployment: &Value) -> bool {
        let seconds = |value: &Value| tree::int(value, &["spec", "minReadySeconds"]).unwrap_or(0);
        if seconds(deployment) == seconds(&self.value) {
            return false;
        }
        tree::set(&mut self.value, &["spec", "minReadySeconds"], seconds(deployment));
        true
    }

    /// Copies the annotations of the Deployment and sets the revision. Returns whether anything changed.
    pub(super) fn copy_annotations(&mut self, deployment: &Value, revision: i64, exists: bool) -> bool {
        let before = tree::get(&self.value, &["metadata", "annotations"]).cloned();
        for (key, value) in tree::map(deployment, &["metadata", "annotations"])
            .into_iter()
            .flatten()
        {
            if !NOT_COPIED.contains(&key.as_str()) {
                tree::set(&mut self.value, &["metadata", "annotations", key], value.clone());
            }
        }
        let old = self.revision();
        if old < revision {
            let old_text = self.annotation(REVISION).to_owned();
            tree::set(
                &mut self.value,
                &["metadata", "annotations", REVISION],
                revision.to_string(),
            );
            if exists && !old_text.is_empty() {
                let history = self.annotation(REVISION_HISTORY);
                let history = if history.is_empty() {
                    old_text
                } else {
                    format!("{history},{old_text}")
                };
                tree::set(
                    &mut self.value,
                    &["metadata", "annotations", REVISION_HISTORY],
                    history,
                );
            }
        }
        tree::get(&self.value, &["metadata", "annotations"]) != before.as_ref()
    }

    /// Writes the set.
    pub(super) fn store(&mut self, state: &mut State) -> Result<()> {
        self.object = ACTOR.update(state, SETS, &self.value, "")?;
        self.value = self.object.packed();
        Ok(())
    }
}
