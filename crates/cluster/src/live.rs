//! Cache of live objects from watches and our own writes, by owner and release. Never returns to an older
//! version of an object. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

use crate::apply::Change;
use crate::desired::{Desired, HELM_NAME, HELM_NAMESPACE, ObjectId, inventory_id};

/// Managed objects in the newest observed version.
#[derive(Clone, Debug, Default)]
pub struct Live {
    objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Objects by owner uid.
    owned: BTreeMap<String, BTreeSet<ObjectId>>,
    /// Tombstones: the last version of deleted objects, so that a lagging watch does not restore them.
    tombstones: BTreeMap<ObjectId, u64>,
}

/// Known objects of a release: enough to install or uninstall it without reads, except for objects never
/// observed.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Desired objects that were observed.
    pub(crate) objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Objects of this owner and release that are not desired, without the inventory.
    pub(crate) leftovers: BTreeMap<ObjectId, Arc<Value>>,
    /// The inventory.
    pub(crate) inventory: Option<Arc<Value>>,
}

impl Known {
    /// Whether the release has no objects left; required before its owner is deleted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.leftovers.is_empty() && self.inventory.is_none()
    }
}

impl Live {
    /// Records an observed object, or `None` for a deleted one; use [`Live::remove`] if its last version is
    /// known. Returns whether the cache changed.
    pub fn observe(&mut self, id: ObjectId, object: Option<Arc<Value>>) -> bool {
        match object {
            Some(object) => self.seen(id, object),
            None => self.record_tombstone(&id, 0),
        }
    }

    /// Records a deletion (or loss of our mark) reported by a watch with the last version. Ignored if a newer
    /// version was observed: our own write may be ahead of the watch.
    pub fn remove(&mut self, id: &ObjectId, last: &Value) -> bool {
        let is_newer = |known: &Arc<Value>| version(known) > version(last);
        !self.objects.get(id).is_some_and(is_newer) && self.record_tombstone(id, version(last))
    }

    /// Records the results of our own writes.
    pub fn record(&mut self, changes: &[Change]) {
        for change in changes {
            self.observe(change.id.clone(), change.live.clone());
        }
    }

    /// Records a relist of a kind: objects not in `listed` are gone. Returns them.
    pub fn retain(&mut self, group: &str, kind: &str, listed: &BTreeSet<ObjectId>) -> Vec<ObjectId> {
        let is_lost = |id: &&ObjectId| id.group == group && id.kind == kind && !listed.contains(*id);
        let lost: Vec<ObjectId> = self.objects.keys().filter(is_lost).cloned().collect();
        for id in &lost {
            // No tombstone: a list from before our own write lacks the new object, and the watch adds it
            // shortly.
            self.take(id);
        }
        lost
    }

    /// Returns the newest version of an object.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&Arc<Value>> {
        self.objects.get(id)
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns every object with an owner reference to this uid.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = (&ObjectId, &Arc<Value>)> {
        self.owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|id| self.objects.get_key_value(id))
    }

    /// Returns every release that an owner has objects of.
    #[must_use]
    pub fn releases_of(&self, uid: &str) -> BTreeSet<ReleaseKey> {
        let key = |object: &Value| {
            let (name, namespace) = release(object)?;
            Some(ReleaseKey {
                owner: uid.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        };
        self.owned_by(uid).filter_map(|(_, object)| key(object)).collect()
    }

    /// Returns the known objects of a release to install.
    #[must_use]
    pub fn extract(&self, desired: &Desired) -> Known {
        let mut known = self.release(&desired.key);
        known
            .leftovers
            .retain(|id, object| !desired.contains(id) && !is_kept(object));
        known.objects = desired
            .objects
            .iter()
            .filter_map(|wanted| self.objects.get_key_value(&wanted.id))
            .map(|(id, object)| (id.clone(), object.clone()))
            .collect();
        known.inventory = self.objects.get(&desired.inventory.id).cloned();
        known
    }

    /// Returns the known objects of a release to uninstall.
    #[must_use]
    pub fn release(&self, key: &ReleaseKey) -> Known {
        let of_release = |object: &Value| release(object) == Some((&key.name, &key.namespace));
        let mut leftovers: BTreeMap<_, _> = self
            .owned_by(&key.owner)
            .filter(|(_, object)| of_release(object))
            .map(|(id, object)| (id.clone(), object.clone()))
            .collect();
        Known {
            objects: BTreeMap::new(),
            inventory: leftovers.remove(&inventory_id(key)),
            leftovers,
        }
    }

    fn seen(&mut self, id: ObjectId, object: Arc<Value>) -> bool {
        let newest = self.objects.get(&id).map(|known| version(known));
        if newest.max(self.tombstones.get(&id).copied()) >= Some(version(&object)) {
            return false;
        }
        self.take(&id);
        self.tombstones.remove(&id);
        for owner in owners(&object) {
            self.owned.entry(owner.to_owned()).or_default().insert(id.clone());
        }
        self.objects.insert(id, object);
        true
    }

    fn record_tombstone(&mut self, id: &ObjectId, last: u64) -> bool {
        let Some(object) = self.take(id) else {
            return false;
        };
        self.tombstones.insert(id.clone(), version(&object).max(last));
        true
    }

    fn take(&mut self, id: &ObjectId) -> Option<Arc<Value>> {
        let object = self.objects.remove(id)?;
        for owner in owners(&object) {
            if let Some(ids) = self.owned.get_mut(owner) {
                ids.remove(id);
                if ids.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        Some(object)
    }
}

/// The owners of an object.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
        .filter(|uid| !uid.is_empty())
}

/// An annotation of an object.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Name and namespace of the release in an object's annotations.
fn release(object: &Value) -> Option<(&str, &str)> {
    Some((
        annotation(object, HELM_NAME)?,
        annotation(object, HELM_NAMESPACE)?,
    ))
}

/// Whether an object has the resource policy `keep`.
fn is_kept(object: &Value) -> bool {
    annotation(object, "helm.sh/resource-policy")
        .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

pub(crate) fn uid(object: &Value) -> &str {
    object
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Resource versions increase on every known server, guaranteed since Kubernetes 1.35.
fn version(object: &Value) -> u64 {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
