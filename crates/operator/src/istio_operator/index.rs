//! Observed state of the controller: the `IstioOperator` resources, and a fingerprint of every owned object.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::istio_operator::IstioOperator;
use mainstay_cluster::install::readiness;
use mainstay_manifest::controller::Claim;
use serde_json::Value;

use super::planning::CachedPlan;
use crate::delivery::Name;
use crate::delivery::index::{Tombstones, is_older};
use crate::delivery::queue::Queue;

const OWNER_NAME: &str = "install.operator.istio.io/owning-resource";
const OWNER_NAMESPACE: &str = "install.operator.istio.io/owning-resource-namespace";

/// Key of an owned object: URL path of its collection, namespace and name.
pub(super) type ObjectKey = (String, Name);

/// An observed owned object.
#[derive(Debug)]
struct Observed {
    owner: Name,
    fingerprint: u64,
}

/// Claim of a resource for one generation and version. `claim` is `None` if the resource is invalid.
#[derive(Debug)]
pub(super) struct CachedClaim {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) version: String,
    pub(super) claim: Option<Claim>,
}

/// Observed state of the controller.
#[derive(Debug, Default)]
pub(super) struct Index {
    operators: BTreeMap<Name, Arc<IstioOperator>>,
    tombstones: Tombstones,
    objects: BTreeMap<ObjectKey, Observed>,
    pub(super) queue: Queue<Name>,
    pub(super) plans: BTreeMap<Name, CachedPlan>,
    pub(super) claims: BTreeMap<Name, CachedClaim>,
    pub(super) is_listed: bool,
}

impl Index {
    /// Returns a resource, or `None` if it is not known.
    pub(super) fn get(&self, name: &Name) -> Option<Arc<IstioOperator>> {
        self.operators.get(name).cloned()
    }

    /// Returns all resources.
    pub(super) fn operators(&self) -> impl Iterator<Item = (&Name, &Arc<IstioOperator>)> {
        self.operators.iter()
    }

    /// Stores a resource, unless a newer version is known. Enqueues all resources if it is new or has a
    /// relevant change. Returns its name, or `None` if it cannot be decoded or was already deleted.
    pub(super) fn observe(&mut self, object: Value, now: Timestamp) -> Option<Name> {
        let name = Name::from_object(&object);
        let operator: IstioOperator = match serde_json::from_value(object) {
            Ok(operator) => operator,
            Err(error) => {
                tracing::warn!(object = %name, error = %error, "cannot read an IstioOperator");
                return None;
            }
        };
        if self.tombstones.contains(&operator.metadata.uid) {
            return None;
        }
        let known = self.operators.get(&name);
        if known.is_some_and(|known| {
            is_older(
                &operator.metadata.resource_version,
                &known.metadata.resource_version,
            )
        }) {
            return Some(name);
        }
        let is_changed = known.is_none_or(|known| is_relevant_change(known, &operator));
        if known.is_none_or(|known| change_key(known) != change_key(&operator)) {
            self.queue.reset(&name);
        }
        self.operators.insert(name.clone(), Arc::new(operator));
        if is_changed {
            self.enqueue_all(now);
        }
        Some(name)
    }

    /// Removes the resource with this name and UID. A later resource of the same name is kept.
    pub(super) fn remove(&mut self, name: &Name, uid: &str, now: Timestamp) {
        self.tombstones.add(uid);
        if self
            .operators
            .get(name)
            .is_some_and(|known| known.metadata.uid == uid)
        {
            self.drop_operator(name, now);
        }
    }

    /// Removes the resources that are not in `names`, the result of a list at `version`. Resources that are
    /// newer than the list are kept.
    pub(super) fn finish_list(&mut self, names: &BTreeSet<Name>, version: &str, now: Timestamp) {
        self.is_listed = true;
        let is_gone = |(name, known): &(&Name, &Arc<IstioOperator>)| {
            !names.contains(*name) && !is_older(version, &known.metadata.resource_version)
        };
        let gone: Vec<Name> = self
            .operators
            .iter()
            .filter(is_gone)
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            self.drop_operator(name, now);
        }
    }

    fn drop_operator(&mut self, name: &Name, now: Timestamp) {
        self.operators.remove(name);
        self.plans.remove(name);
        self.claims.remove(name);
        self.queue.reset(name);
        self.enqueue_all(now);
    }

    /// Enqueues every resource, because a change of one resource may transfer a revision or the shared
    /// objects to another one.
    fn enqueue_all(&mut self, now: Timestamp) {
        for name in self.operators.keys() {
            self.queue.enqueue(name.clone(), now);
        }
    }

    /// Stores an owned object. If it changed, enqueues its owner and the previous owner.
    pub(super) fn observe_object(&mut self, key: ObjectKey, kind: &str, object: &Value, now: Timestamp) {
        let owner = object_owner(object);
        let fingerprint = fingerprint(kind, object);
        let observed = Observed {
            owner: owner.clone(),
            fingerprint,
        };
        let known = self.objects.insert(key, observed);
        match known {
            Some(known) if known.fingerprint == fingerprint => {}
            Some(known) => {
                self.enqueue(known.owner, now);
                self.enqueue(owner, now);
            }
            None => self.enqueue(owner, now),
        }
    }

    /// Removes an owned object, and enqueues its owner.
    pub(super) fn remove_object(&mut self, key: &ObjectKey, now: Timestamp) {
        if let Some(known) = self.objects.remove(key) {
            self.enqueue(known.owner, now);
        }
    }

    /// Removes the owned objects of a collection that are not in `names`, the result of a list, and
    /// enqueues their owners.
    pub(super) fn finish_object_list(&mut self, path: &str, names: &BTreeSet<Name>, now: Timestamp) {
        let gone: Vec<ObjectKey> = self
            .objects
            .keys()
            .filter(|(collection, name)| collection == path && !names.contains(name))
            .cloned()
            .collect();
        for key in &gone {
            self.remove_object(key, now);
        }
    }

    fn enqueue(&mut self, owner: Name, now: Timestamp) {
        if self.operators.contains_key(&owner) {
            self.queue.enqueue(owner, now);
        }
    }

    /// Returns the number of owned objects.
    pub(super) fn object_count(&self) -> usize {
        self.objects.len()
    }
}

/// Whether a change requires a reconciliation. A change of the status does not, because the controller
/// writes the status itself.
fn is_relevant_change(known: &IstioOperator, new: &IstioOperator) -> bool {
    let key = |one: &IstioOperator| {
        (
            one.metadata.uid.clone(),
            one.metadata.generation,
            one.metadata.deletion_timestamp,
            one.metadata.finalizers.clone(),
            one.metadata.annotations.clone(),
        )
    };
    key(known) != key(new)
}

/// Returns what identifies a resource and its desired state.
fn change_key(operator: &IstioOperator) -> (&str, i64, bool) {
    let metadata = &operator.metadata;
    (&metadata.uid, metadata.generation, metadata.is_deleting())
}

fn object_owner(object: &Value) -> Name {
    let labels = object.pointer("/metadata/labels");
    let label = |name: &str| {
        labels
            .and_then(|labels| labels.get(name)?.as_str())
            .unwrap_or_default()
    };
    Name::new(label(OWNER_NAMESPACE), label(OWNER_NAME))
}

/// Returns a hash of the fields that the controller writes and of the object's readiness. Other fields
/// change without the controller and are ignored.
fn fingerprint(kind: &str, object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let fields = object.as_object().into_iter().flatten();
    for (field, value) in fields.filter(|(field, _)| !matches!(field.as_str(), "status" | "metadata")) {
        (field, value.to_string()).hash(&mut hasher);
    }
    for field in ["labels", "annotations", "ownerReferences", "deletionTimestamp"] {
        let value = object.pointer(&format!("/metadata/{field}"));
        (field, value.map(Value::to_string)).hash(&mut hasher);
    }
    format!("{:?}", readiness(kind, object)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn operator(version: u32, generation: u32, state: &str) -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": version.to_string(),
                "generation": generation},
            "status": {"status": state},
        })
    }

    fn drain(index: &mut Index) -> usize {
        let mut count = 0;
        while let Some(name) = index.queue.start_next(NOW) {
            index.queue.succeed(&name);
            count += 1;
        }
        count
    }

    #[test]
    fn a_status_enqueues_nothing_and_an_old_version_is_ignored() {
        let mut index = Index::default();
        index.observe(operator(5, 1, ""), NOW);
        assert_eq!(drain(&mut index), 1);
        index.observe(operator(6, 1, "HEALTHY"), NOW);
        assert_eq!(drain(&mut index), 0, "status");
        index.observe(operator(4, 3, ""), NOW);
        assert_eq!(drain(&mut index), 0, "old");
        index.observe(operator(7, 2, "HEALTHY"), NOW);
        assert_eq!(drain(&mut index), 1, "spec");
        index.remove(&Name::new("n", "a"), "u", NOW);
        index.observe(operator(8, 2, ""), NOW);
        assert!(index.get(&Name::new("n", "a")).is_none(), "deleted");
    }

    #[test]
    fn an_edit_resets_the_backoff_and_a_status_does_not() {
        let mut index = Index::default();
        let name = Name::new("n", "a");
        let fail = |index: &mut Index| {
            assert!(index.queue.start_next(Timestamp::MAX).is_some());
            index.queue.fail(&name, NOW);
            index.queue.next_due().unwrap().duration_since(NOW).as_millis()
        };
        index.observe(operator(1, 1, ""), NOW);
        for _ in 0..9 {
            fail(&mut index);
        }
        index.observe(operator(2, 1, "ERROR"), NOW);
        assert_eq!(fail(&mut index), 120_000);
        index.observe(operator(3, 2, "ERROR"), NOW);
        assert_eq!(fail(&mut index), 500, "edit");
        let mut deleted = operator(4, 2, "ERROR");
        deleted["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        index.observe(deleted, NOW);
        assert_eq!(fail(&mut index), 500, "deletion");
    }

    #[test]
    fn drift_and_readiness_enqueue_the_owner() {
        let mut index = Index::default();
        index.observe(operator(1, 1, ""), NOW);
        drain(&mut index);
        let deployment = |replicas: u32, available: u32| {
            json!({
                "metadata": {"name": "istiod", "namespace": "s", "resourceVersion": replicas.to_string(),
                    "labels": {OWNER_NAME: "a", OWNER_NAMESPACE: "n"}},
                "spec": {"replicas": replicas},
                "status": {"updatedReplicas": replicas, "replicas": replicas, "availableReplicas": available,
                    "conditions": [{"lastUpdateTime": available}]},
            })
        };
        let key: ObjectKey = ("/apis/apps/v1/deployments".into(), Name::new("s", "istiod"));
        let mut observe = |object: &Value| {
            index.observe_object(key.clone(), "Deployment", object, NOW);
            drain(&mut index)
        };
        assert_eq!(observe(&deployment(1, 0)), 1, "new");
        assert_eq!(observe(&deployment(1, 0)), 0, "unchanged");
        assert_eq!(observe(&deployment(1, 1)), 1, "ready");
        assert_eq!(observe(&deployment(1, 2)), 0, "only its status");
        assert_eq!(observe(&deployment(2, 2)), 1, "drift");
        index.finish_object_list(&key.0, &BTreeSet::new(), NOW);
        assert_eq!(drain(&mut index), 1, "deleted");
    }
}
