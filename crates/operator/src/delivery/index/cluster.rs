//! Observed state of one cluster: its link, the watched kinds and their objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::delivery::Provider;
use mainstay_api::{OwnerReference, Reason};
use mainstay_rollout::manifest::{Manifest, ObjectKey};
use mainstay_rollout::snapshot::Observed;
use serde_json::Value;

use super::store::{Tombstones, is_older};
use crate::delivery::names::ObjectType;
use crate::delivery::observed::{is_drifted, observe};

/// Connection state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// No call has been made yet.
    #[default]
    Unknown,
    /// The last call succeeded.
    Up {
        /// Kubernetes version.
        version: String,
        /// Route providers that the cluster supports.
        providers: BTreeSet<Provider>,
    },
    /// The last call failed.
    Down(Outage),
}

/// Outage of a cluster. The circuit breaker of the cluster is open until the next probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) since: Timestamp,
    pub(crate) retry_at: Timestamp,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// A watched kind.
#[derive(Clone, Debug, Default)]
struct WatchedType {
    /// Plural that is used in URLs; `None` until discovery.
    plural: Option<String>,
    is_listed: bool,
}

/// An observed object. `live` is the complete object until it has been compared with the desired one.
#[derive(Clone, Debug)]
struct Tracked {
    observed: Observed,
    live: Option<Value>,
}

/// The desired state of an object.
#[derive(Clone, Debug)]
struct Desired {
    manifest: Arc<Manifest>,
    owner: Option<OwnerReference>,
    /// Whether the object still differed right after an apply. Such a difference is ignored, because the
    /// object would otherwise be applied forever.
    is_tolerated: bool,
}

impl Desired {
    fn is_drifted(&self, live: &Value) -> bool {
        !self.is_tolerated && is_drifted(&self.manifest, self.owner.as_ref(), live)
    }
}

/// State of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterState {
    link: Link,
    last_contact: Option<Timestamp>,
    types: BTreeMap<ObjectType, WatchedType>,
    objects: BTreeMap<ObjectKey, Tracked>,
    desired: BTreeMap<ObjectKey, Desired>,
    tombstones: Tombstones,
}

/// Kinds that are watched in every cluster.
const BASE_TYPES: &[(&str, &str)] = &[("apps/v1", "Deployment"), ("v1", "Service")];

impl Default for ClusterState {
    fn default() -> Self {
        let base = |(version, kind): &(&str, &str)| (ObjectType::new(version, kind), WatchedType::default());
        Self {
            link: Link::Unknown,
            last_contact: None,
            types: BASE_TYPES.iter().map(base).collect(),
            objects: BTreeMap::new(),
            desired: BTreeMap::new(),
            tombstones: Tombstones::default(),
        }
    }
}

impl ClusterState {
    /// Returns the link.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the time of the last response.
    pub(crate) fn last_contact(&self) -> Option<Timestamp> {
        self.last_contact
    }

    /// Sets the time of the last response.
    pub(crate) fn record_contact(&mut self, now: Timestamp) {
        self.last_contact = Some(now);
    }

    /// Sets the link. A continued outage keeps its start time. Returns whether the link changed.
    pub(super) fn set_link(&mut self, link: Link) -> bool {
        let link = match (&self.link, link) {
            (Link::Down(known), Link::Down(outage)) => Link::Down(Outage {
                since: known.since,
                ..outage
            }),
            (_, link) => link,
        };
        if matches!(link, Link::Down(_)) {
            self.reset_lists();
        }
        let is_changed = self.link != link;
        self.link = link;
        is_changed
    }

    /// Marks all kinds as not listed, so that they are listed again over a new connection.
    pub(crate) fn reset_lists(&mut self) {
        for watched in self.types.values_mut() {
            watched.is_listed = false;
        }
    }

    /// Whether every watched kind was listed.
    pub(crate) fn is_synced(&self) -> bool {
        self.types.values().all(|watched| watched.is_listed)
    }

    /// Adds a kind to the watched kinds. Returns whether it was not watched before.
    pub(crate) fn watch_type(&mut self, kind: ObjectType) -> bool {
        let is_new = !self.types.contains_key(&kind);
        if is_new {
            self.types.insert(kind, WatchedType::default());
        }
        is_new
    }

    /// Returns the watched kinds.
    pub(crate) fn types(&self) -> impl Iterator<Item = &ObjectType> {
        self.types.keys()
    }

    /// Sets the plural of a kind.
    pub(crate) fn set_plural(&mut self, kind: &ObjectType, plural: &str) {
        if let Some(watched) = self.types.get_mut(kind) {
            watched.plural = Some(plural.to_owned());
        }
    }

    /// Returns the URL path of an object, or of its collection if `name` is `None`. Returns `None` if the
    /// plural of the kind is not known.
    pub(crate) fn path(&self, key: &ObjectKey, name: Option<&str>) -> Option<String> {
        let kind = ObjectType::from(key);
        let plural = self.types.get(&kind)?.plural.as_ref()?;
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        Some(format!(
            "{}/namespaces/{}/{plural}{name}",
            kind.root(),
            key.namespace
        ))
    }

    /// Returns the number of known objects.
    pub(crate) fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// Returns the objects with the label of a deployment, and the objects without our label whose names the
    /// deployment uses.
    pub(super) fn objects_for(&self, namespace: &str, label: &str) -> BTreeMap<ObjectKey, Observed> {
        let is_relevant = |key: &ObjectKey, tracked: &Tracked| {
            key.namespace == namespace
                && tracked
                    .observed
                    .deployment
                    .as_ref()
                    .is_none_or(|deployment| deployment == label)
        };
        self.objects
            .iter()
            .filter(|(key, tracked)| is_relevant(key, tracked))
            .map(|(key, tracked)| (key.clone(), tracked.observed.clone()))
            .collect()
    }

    /// Stores an object. Returns the label of the affected deployment, an empty label if all deployments of
    /// the namespace are affected, or `None` if nothing changed.
    pub(super) fn observe(&mut self, key: ObjectKey, object: Value) -> Option<String> {
        let mut observed = observe(&key.kind, &object);
        if self.tombstones.contains(&observed.version.uid) || self.is_stale(&key, &observed) {
            return None;
        }
        let desired = self.desired.get(&key);
        let desired = desired.filter(|desired| observed.hash.as_ref() == Some(&desired.manifest.hash));
        let live = match desired {
            Some(desired) => {
                observed.is_drifted = desired.is_drifted(&object);
                None
            }
            None => Some(object),
        };
        let label = observed.deployment.clone().unwrap_or_default();
        let known = self.objects.insert(
            key,
            Tracked {
                observed: observed.clone(),
                live,
            },
        );
        let known = known.map(|known| known.observed);
        (known.as_ref() != Some(&observed)).then_some(label)
    }

    fn is_stale(&self, key: &ObjectKey, observed: &Observed) -> bool {
        let known = self.objects.get(key).map(|known| &known.observed.version);
        known.is_some_and(|known| {
            known.uid == observed.version.uid
                && is_older(&observed.version.resource_version, &known.resource_version)
        })
    }

    /// Stores the response to an apply. Returns the same as `observe`.
    pub(super) fn observe_applied(&mut self, key: &ObjectKey, object: Value) -> Option<String> {
        let hash = observe(&key.kind, &object).hash;
        if let Some(desired) = self.desired.get_mut(key)
            && hash.as_ref() == Some(&desired.manifest.hash)
        {
            desired.is_tolerated = desired.is_drifted(&object);
        }
        self.observe(key.clone(), object)
    }

    /// Removes an object. Returns the label of the affected deployment, or `None` if the object was not
    /// known.
    pub(super) fn remove(&mut self, key: &ObjectKey, uid: &str) -> Option<String> {
        self.tombstones.add(uid);
        let is_known = self
            .objects
            .get(key)
            .is_some_and(|known| known.observed.version.uid == uid);
        let known = self.objects.remove(key).filter(|_| is_known)?;
        Some(known.observed.deployment.unwrap_or_default())
    }

    /// Completes the list of a kind. Returns namespaces and labels of removed objects, and whether this list
    /// was the last one that was missing.
    pub(super) fn finish_list(
        &mut self,
        kind: &ObjectType,
        names: &BTreeSet<ObjectKey>,
        version: &str,
    ) -> (Vec<(String, String)>, bool) {
        let is_gone = |key: &ObjectKey, tracked: &Tracked| {
            ObjectType::from(key) == *kind
                && !names.contains(key)
                // Objects without our label are not in the list, because the list has a label selector.
                && tracked.observed.deployment.is_some()
                && !is_older(version, &tracked.observed.version.resource_version)
        };
        let gone: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|(key, tracked)| is_gone(key, tracked))
            .map(|(key, _)| key.clone())
            .collect();
        let mut labels = Vec::new();
        for key in gone {
            let known = self.objects.remove(&key);
            let label = known.and_then(|known| known.observed.deployment);
            labels.push((key.namespace, label.unwrap_or_default()));
        }
        let was_synced = self.is_synced();
        if let Some(watched) = self.types.get_mut(kind) {
            watched.is_listed = true;
        }
        (labels, !was_synced && self.is_synced())
    }

    /// Returns keys, paths and UIDs of objects without our label.
    pub(crate) fn foreign_objects(&self) -> Vec<(ObjectKey, String, String)> {
        let foreign = self
            .objects
            .iter()
            .filter(|(_, tracked)| tracked.observed.deployment.is_none());
        let located = foreign.filter_map(|(key, tracked)| {
            let path = self.path(key, Some(&key.name))?;
            Some((key.clone(), path, tracked.observed.version.uid.clone()))
        });
        located.collect()
    }

    /// Records the desired state of an object, and compares the live object if it has not been compared
    /// yet. Returns whether drift was found.
    pub(super) fn record_desired(
        &mut self,
        manifest: &Arc<Manifest>,
        owner: Option<&OwnerReference>,
    ) -> bool {
        let known = self.desired.get(&manifest.key);
        if known.is_none_or(|known| known.manifest.hash != manifest.hash) {
            let desired = Desired {
                manifest: Arc::clone(manifest),
                owner: owner.cloned(),
                is_tolerated: false,
            };
            self.desired.insert(manifest.key.clone(), desired);
        }
        let Some(desired) = self.desired.get(&manifest.key) else {
            return false;
        };
        let Some(tracked) = self.objects.get_mut(&manifest.key) else {
            return false;
        };
        if tracked.observed.hash.as_ref() != Some(&manifest.hash) {
            return false;
        }
        let Some(live) = tracked.live.take() else {
            return false;
        };
        tracked.observed.is_drifted = desired.is_drifted(&live);
        tracked.observed.is_drifted
    }
}
