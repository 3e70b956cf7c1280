//! Cache of live objects from watches and our own writes, indexed by owner and release. An older version
//! never replaces a newer one. Pure.
//!
//! Any user may create objects with our label. So only objects of known owners, and objects that we read
//! or wrote, are stored completely. Of all others, only the identifying metadata is stored.

mod reduce;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

use crate::apply::Change;
use crate::desired::{
    APPLY_SET_ID, APPLY_SET_PART, Desired, HELM_NAME, HELM_NAMESPACE, ObjectId, inventory_id, set_id,
};

/// Managed objects, each in the newest observed version.
#[derive(Clone, Debug, Default)]
pub struct Live {
    objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Objects that are kept with their identifying metadata only.
    reduced: BTreeSet<ObjectId>,
    /// Objects by the UID of their owner.
    owned: BTreeMap<String, BTreeSet<ObjectId>>,
    /// UIDs of known owners.
    owners: BTreeSet<String>,
    /// Whether `owners` is complete, so that any other owner is unknown.
    has_all_owners: bool,
    /// Tombstones of deleted objects, so that a lagging watch does not restore them.
    tombstones: BTreeMap<ObjectId, Tombstone>,
}

/// Record of the last version of a deleted object. The second relist of its kind removes it.
#[derive(Clone, Copy, Debug)]
struct Tombstone {
    version: u64,
    was_relisted: bool,
}

/// Known objects of a release. To install or uninstall the release, only objects that were never observed
/// must be read.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Desired objects that were observed.
    pub(crate) objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Objects of this owner and release that are not desired. Does not contain the inventory.
    pub(crate) leftovers: BTreeMap<ObjectId, Arc<Value>>,
    /// Inventory of the release; `None` if it was not observed.
    pub(crate) inventory: Option<Arc<Value>>,
}

impl Known {
    /// Whether the release has no objects left. The owner is deleted only then.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.leftovers.is_empty() && self.inventory.is_none()
    }
}

impl Live {
    /// Records an object that a watch reported. Returns whether the cache changed.
    pub fn observe(&mut self, id: ObjectId, object: Arc<Value>) -> bool {
        if self.get(&id).is_some() || self.has_known_owner(&object) {
            return self.insert_if_newer(id, object);
        }
        let known = self.objects.get(&id).map(|known| version(known));
        if known >= Some(version(&object)) {
            return false;
        }
        let is_changed = self.insert_if_newer(id.clone(), Arc::new(reduce::identity(&object)));
        if is_changed {
            self.reduced.insert(id);
        }
        is_changed
    }

    /// Records an object that we read or wrote, or a deletion if `object` is `None`. If the last version
    /// of a deleted object is known, use [`Live::remove`]. Returns whether the cache changed.
    pub fn record(&mut self, id: ObjectId, object: Option<Arc<Value>>) -> bool {
        match object {
            Some(object) => self.insert_if_newer(id, object),
            None => self.record_tombstone(&id, 0),
        }
    }

    /// Adds a known owner. Its objects that were observed before are read again when they are needed.
    pub fn add_owner(&mut self, uid: &str) {
        if !self.owners.contains(uid) {
            self.owners.insert(uid.to_owned());
        }
    }

    /// Removes a deleted owner.
    pub fn remove_owner(&mut self, uid: &str) {
        self.owners.remove(uid);
    }

    /// Records that all owners have been added, and reduces the objects of unknown owners to identifying
    /// metadata.
    pub fn mark_owners_complete(&mut self) {
        if std::mem::replace(&mut self.has_all_owners, true) {
            return;
        }
        let is_unknown = |object: &Value| !owners(object).any(|uid| self.owners.contains(uid));
        let objects = self.objects.iter();
        let unknown = objects.filter(|(id, object)| !self.reduced.contains(id) && is_unknown(object));
        let unknown: Vec<ObjectId> = unknown.map(|(id, _)| id.clone()).collect();
        for id in unknown {
            if let Some(object) = self.objects.get_mut(&id) {
                *object = Arc::new(reduce::identity(object));
                self.reduced.insert(id);
            }
        }
    }

    /// Whether the object has a known owner, or one that may become known.
    fn has_known_owner(&self, object: &Value) -> bool {
        if self.has_all_owners {
            return owners(object).any(|uid| self.owners.contains(uid));
        }
        reduce::has_own_owner(object)
    }

    /// Records that a watch reported the deletion of an object, or the loss of our label, with its last
    /// version. Ignored if a newer version is known, because our own write may be ahead of the watch.
    /// Returns whether the cache changed.
    pub fn remove(&mut self, id: &ObjectId, last: &Value) -> bool {
        let is_newer = |known: &Arc<Value>| version(known) > version(last);
        !self.objects.get(id).is_some_and(is_newer) && self.record_tombstone(id, version(last))
    }

    /// Records the results of our own writes.
    pub fn record_all(&mut self, changes: &[Change]) {
        for change in changes {
            self.record(change.id.clone(), change.live.clone());
        }
    }

    /// Records a relist of a kind. Removes and returns the objects that are not in `listed`.
    pub fn retain(&mut self, group: &str, kind: &str, listed: &BTreeSet<ObjectId>) -> Vec<ObjectId> {
        let is_lost = |id: &&ObjectId| id.group == group && id.kind == kind && !listed.contains(*id);
        let lost: Vec<ObjectId> = self.objects.keys().filter(is_lost).cloned().collect();
        for id in &lost {
            // No tombstone is recorded: a list from before our own write lacks the new object, and the
            // watch will add it again.
            self.remove_object(id);
        }
        self.expire_tombstones(group, kind);
        lost
    }

    /// Removes the tombstones of a kind that an earlier relist has passed: events from before the
    /// deletion can no longer arrive.
    fn expire_tombstones(&mut self, group: &str, kind: &str) {
        self.tombstones.retain(|id, tombstone| {
            let is_listed = id.group == group && id.kind == kind;
            let is_expired = is_listed && tombstone.was_relisted;
            tombstone.was_relisted |= is_listed;
            !is_expired
        });
    }

    /// Returns the newest version of an object, or `None` if it is unknown or only its metadata is kept.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&Arc<Value>> {
        self.objects.get(id).filter(|_| !self.reduced.contains(id))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns every object with an owner reference to this UID.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = (&ObjectId, &Arc<Value>)> {
        self.owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|id| self.objects.get_key_value(id))
    }

    /// Returns the releases that the objects of an owner belong to.
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

    /// Returns the known objects that are relevant for installing a release.
    #[must_use]
    pub fn extract(&self, desired: &Desired) -> Known {
        let mut known = self.release(&desired.key);
        known
            .leftovers
            .retain(|id, object| !desired.contains(id) && !is_kept(object));
        known.objects = desired
            .objects
            .iter()
            .filter_map(|wanted| Some((wanted.id.clone(), self.get(&wanted.id)?.clone())))
            .collect();
        known.inventory = self.get(&desired.inventory.id).cloned();
        known
    }

    /// Returns the known objects that are relevant for uninstalling a release.
    #[must_use]
    pub fn release(&self, key: &ReleaseKey) -> Known {
        let mut leftovers: BTreeMap<_, _> = self
            .owned_by(&key.owner)
            .filter(|(_, object)| is_part_of(object, key))
            .map(|(id, object)| (id.clone(), object.clone()))
            .collect();
        Known {
            objects: BTreeMap::new(),
            inventory: leftovers.remove(&inventory_id(key)),
            leftovers,
        }
    }

    fn insert_if_newer(&mut self, id: ObjectId, object: Arc<Value>) -> bool {
        // A full object replaces a reduced one of the same version.
        let known = self.objects.get(&id).map(|known| version(known));
        let newest = known.map(|known| known.saturating_sub(u64::from(self.reduced.contains(&id))));
        let deleted = self.tombstones.get(&id).map(|tombstone| tombstone.version);
        if newest.max(deleted) >= Some(version(&object)) {
            return false;
        }
        self.remove_object(&id);
        self.tombstones.remove(&id);
        for owner in owners(&object) {
            self.owned.entry(owner.to_owned()).or_default().insert(id.clone());
        }
        self.objects.insert(id, object);
        true
    }

    fn record_tombstone(&mut self, id: &ObjectId, last: u64) -> bool {
        let Some(object) = self.remove_object(id) else {
            return false;
        };
        let tombstone = Tombstone {
            version: version(&object).max(last),
            was_relisted: false,
        };
        self.tombstones.insert(id.clone(), tombstone);
        true
    }

    fn remove_object(&mut self, id: &ObjectId) -> Option<Arc<Value>> {
        let object = self.objects.remove(id)?;
        self.reduced.remove(id);
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

/// Returns the UIDs of the owners of an object.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
        .filter(|uid| !uid.is_empty())
}

/// Returns an annotation of an object, or `None` if it is absent.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Whether an object belongs to a release: by Helm's annotations, or by our label if it has none of them.
pub(crate) fn is_part_of(object: &Value, key: &ReleaseKey) -> bool {
    match (annotation(object, HELM_NAME), annotation(object, HELM_NAMESPACE)) {
        (None, None) => set_label(object) == Some(&set_id(key)),
        (name, namespace) => name == Some(&key.name) && namespace == Some(&key.namespace),
    }
}

/// Returns the ID of the set that the object belongs to as a member or as the inventory.
pub(crate) fn set_label(object: &Value) -> Option<&str> {
    let labels = object.pointer("/metadata/labels")?;
    let label = labels.get(APPLY_SET_PART).or_else(|| labels.get(APPLY_SET_ID));
    label.and_then(Value::as_str)
}

/// Returns name and namespace of the release in Helm's annotations of an object.
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

/// Parses a resource version, or returns `None` if it is not a number. Resource versions increase on every
/// known server, and Kubernetes guarantees it since 1.35.
#[must_use]
pub fn parse_version(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Returns the resource version of an object as a number; 0 if it is not a number.
fn version(object: &Value) -> u64 {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(parse_version)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
