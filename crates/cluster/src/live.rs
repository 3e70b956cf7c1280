//! What is there: takes objects as watches and our own writes show them, gives those of an owner or a release. Never goes back to an
//! older version of an object. Knows no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

use crate::apply::Change;
use crate::desired::{Desired, HELM_NAME, HELM_NAMESPACE, ObjectId, inventory_id};

/// Objects that carry our mark, each in the newest version that was seen.
#[derive(Clone, Debug, Default)]
pub struct Live {
    objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Which objects an owner has, by its uid.
    owned: BTreeMap<String, BTreeSet<ObjectId>>,
    /// The last version of what is known to be gone: a watch that lags must not bring it back.
    graves: BTreeMap<ObjectId, u64>,
}

/// What is known of a release: enough to install or uninstall it without asking, apart from what was never seen.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Objects that are wanted and were seen.
    pub(crate) objects: BTreeMap<ObjectId, Arc<Value>>,
    /// Objects of this owner and this release that are not wanted, its inventory aside.
    pub(crate) leftovers: BTreeMap<ObjectId, Arc<Value>>,
    /// Its inventory.
    pub(crate) inventory: Option<Arc<Value>>,
}

impl Known {
    /// Whether nothing of the release is there: what must be true before its owner may go.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.leftovers.is_empty() && self.inventory.is_none()
    }
}

impl Live {
    /// An object was seen, or (`None`) is known to be gone; use [`Live::remove`] where its last version is known. Says whether that is news.
    pub fn observe(&mut self, id: ObjectId, object: Option<Arc<Value>>) -> bool {
        match object {
            Some(object) => self.seen(id, object),
            None => self.bury(&id, 0),
        }
    }

    /// A watch says that an object is gone (or no longer carries our mark), and shows its last version. It is no news where a newer one
    /// was seen: our own write may be ahead of the watch.
    pub fn remove(&mut self, id: &ObjectId, last: &Value) -> bool {
        let is_newer = |known: &Arc<Value>| version(known) > version(last);
        !self.objects.get(id).is_some_and(is_newer) && self.bury(id, version(last))
    }

    /// What our own writes brought.
    pub fn record(&mut self, changes: &[Change]) {
        for change in changes {
            self.observe(change.id.clone(), change.live.clone());
        }
    }

    /// A watch listed a kind anew: everything of it that is not among `listed` is gone. Gives what that was.
    pub fn retain(&mut self, group: &str, kind: &str, listed: &BTreeSet<ObjectId>) -> Vec<ObjectId> {
        let is_lost = |id: &&ObjectId| id.group == group && id.kind == kind && !listed.contains(*id);
        let lost: Vec<ObjectId> = self.objects.keys().filter(is_lost).cloned().collect();
        for id in &lost {
            // No grave: a list from before our own write lacks what we wrote, and the watch brings it at once.
            self.take(id);
        }
        lost
    }

    /// The newest version of an object.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&Arc<Value>> {
        self.objects.get(id)
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Every object with an owner reference to this uid.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = (&ObjectId, &Arc<Value>)> {
        self.owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|id| self.objects.get_key_value(id))
    }

    /// Every release an owner has something of.
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

    /// What is known of a release that is to be installed.
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

    /// What is known of a release that is to go.
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
        if newest.max(self.graves.get(&id).copied()) >= Some(version(&object)) {
            return false;
        }
        self.take(&id);
        self.graves.remove(&id);
        for owner in owners(&object) {
            self.owned.entry(owner.to_owned()).or_default().insert(id.clone());
        }
        self.objects.insert(id, object);
        true
    }

    fn bury(&mut self, id: &ObjectId, last: u64) -> bool {
        let Some(object) = self.take(id) else {
            return false;
        };
        self.graves.insert(id.clone(), version(&object).max(last));
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

/// Who owns an object.
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

/// Name and namespace of the release an object says it belongs to.
fn release(object: &Value) -> Option<(&str, &str)> {
    Some((
        annotation(object, HELM_NAME)?,
        annotation(object, HELM_NAMESPACE)?,
    ))
}

/// Whether an object asks to stay when its release no longer wants it.
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

/// Versions grow with time on every server there is, and servers promise it since Kubernetes 1.35.
fn version(object: &Value) -> u64 {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
