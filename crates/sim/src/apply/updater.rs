//! Updates field ownership after a write, and merges an applied configuration.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::compare::{Difference, compare};
use super::element::{Element, equal};
use super::fields::fields_of;
use super::managed::{Entry, Managed, Manager};
use super::merge::merge;
use super::reconcile::reconcile;
use super::remove::remove;
use super::set::Set;
use super::types::Ref;
use crate::convert;
use crate::resource::{Resource, Shape};
use crate::state::State;

/// A field owned by another manager that the applied configuration would change.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub manager: Manager,
    pub path: Vec<Element>,
}

impl Conflict {
    /// Returns the field path, such as `.spec.replicas`.
    pub(super) fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }
}

/// The resource of a write.
pub(super) struct Updater<'a> {
    pub state: &'a State,
    pub resource: &'a Resource,
    /// Fields that a write to this subresource never changes.
    pub reset: Set,
}

/// The new object, if it differs from the live one, and its managers.
pub(super) struct Applied {
    pub object: Option<Value>,
    pub owners: Managed,
}

impl Updater<'_> {
    fn kind(&self) -> Ref<'_> {
        Ref::for_resource(self.state.schema, self.resource)
    }

    /// Assigns the changes of an update to `writer` alone and returns them.
    pub(super) fn update(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Managed,
        writer: &Manager,
    ) -> Difference {
        self.reconcile(owners);
        self.transfer_ownership(live, new, owners, Some(writer), true)
            .unwrap_or_default()
    }

    /// Reconciles owned fields with the current schemas; fields of versions that are no longer served are
    /// dropped.
    fn reconcile(&self, owners: &mut Managed) {
        // The schemas of built-in kinds never change.
        if matches!(self.resource.shape, Shape::Builtin(_)) {
            return;
        }
        owners
            .0
            .retain(|_, entry| match self.version(&entry.api_version) {
                Some(version) => {
                    entry.set = reconcile(Ref::for_resource(self.state.schema, &version), &entry.set).into();
                    true
                }
                None => false,
            });
    }

    /// Merges a configuration into the live object on behalf of `manager`.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        mut owners: Managed,
        manager: &Manager,
        force: bool,
    ) -> Result<Applied, Vec<Conflict>> {
        let kind = self.kind();
        self.reconcile(&mut owners);
        let merged = merge(kind, live, config);
        let entry = Entry {
            api_version: self.resource.api_version(),
            set: fields_of(kind, config).difference_below(&self.reset).into(),
            time: owners.0.get(manager).and_then(|last| last.time.clone()),
        };
        // No field of the previous apply is dropped: the most common case.
        let keeps_all = |last: &Entry| last.api_version == entry.api_version && entry.set.contains(&last.set);
        let given_up = owners.0.get(manager).filter(|last| !keeps_all(last)).cloned();
        owners.0.insert(manager.clone(), entry);
        let new = match &given_up {
            Some(last) if !last.set.is_empty() => self.prune(merged, &owners, last),
            _ => merged,
        };
        self.transfer_ownership(live, &new, &mut owners, Some(manager), force)?;
        Ok(Applied {
            object: (!equal(live, &new)).then_some(new),
            owners,
        })
    }

    /// Removes changed and removed fields from all managers except `writer`; without `force`, owners of
    /// changed fields conflict.
    fn transfer_ownership(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Managed,
        writer: Option<&Manager>,
        force: bool,
    ) -> Result<Difference, Vec<Conflict>> {
        let here = self.resource.api_version();
        let found = compare(self.kind(), live, new).without(&self.reset);
        let mut elsewhere: BTreeMap<String, Option<Difference>> = BTreeMap::new();
        let mut conflicts = Vec::new();
        for (manager, entry) in &mut owners.0 {
            if Some(manager) == writer {
                continue;
            }
            let found = if entry.api_version == here {
                Some(&found)
            } else {
                elsewhere
                    .entry(entry.api_version.clone())
                    .or_insert_with(|| self.compare_in(&entry.api_version, live, new))
                    .as_ref()
            };
            // Versions that are no longer served own nothing.
            let Some(found) = found else {
                entry.set = Set::default().into();
                continue;
            };
            if !force {
                let taken = entry.set.intersection(&found.changed.union(&found.added));
                conflicts.extend(taken.paths().into_iter().map(|path| Conflict {
                    manager: manager.clone(),
                    path,
                }));
            }
            let lost = [&found.changed, &found.added, &found.removed];
            if lost.iter().any(|lost| entry.set.intersects(lost)) {
                let left = lost
                    .iter()
                    .fold(Set::clone(&entry.set), |left, lost| left.without(lost));
                entry.set = left.into();
            }
        }
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        owners.drop_empty();
        Ok(found)
    }

    fn compare_in(&self, api_version: &str, live: &Value, new: &Value) -> Option<Difference> {
        let there = self.version(api_version)?;
        let kind = Ref::for_resource(self.state.schema, &there);
        let (live, new) = (self.convert(live, &there), self.convert(new, &there));
        Some(compare(kind, &live, &new).without(&self.reset))
    }

    /// Returns the resource in another version.
    fn version(&self, api_version: &str) -> Option<Arc<Resource>> {
        let mut all = self.state.resources.iter();
        all.find(|other| other.table == self.resource.table && other.api_version() == api_version)
            .cloned()
    }

    /// Converts a value from its own version to that of `to`.
    fn convert<'v>(&self, value: &'v Value, to: &Resource) -> Cow<'v, Value> {
        let at = crate::tree::text(value, &["apiVersion"]);
        if at.is_empty() || at == to.api_version() {
            return Cow::Borrowed(value);
        }
        let Some(from) = self.version(at) else {
            return Cow::Borrowed(value);
        };
        Cow::Owned(convert::from_stored(to, convert::to_stored(&from, value.clone())))
    }

    /// Removes fields that the manager applied before, does not apply now, and no other manager owns.
    fn prune(&self, merged: Value, owners: &Managed, last: &Entry) -> Value {
        let Some(at) = self.version(&last.api_version) else {
            return merged;
        };
        let kind = Ref::for_resource(self.state.schema, &at);
        let merged = self.convert(&merged, &at).into_owned();
        let last = last.set.with_named_fields(kind);
        let pruned = remove(kind, &merged, &last);
        let pruned = self.add_back_owned(&merged, pruned, owners, &at);
        let pruned = self.convert(&pruned, &at);
        // Fields that other managers updated or that are not owned are kept.
        let had = fields_of(kind, &merged).with_named_fields(kind);
        let has = fields_of(kind, &pruned).with_named_fields(kind);
        let pruned = remove(kind, &merged, &had.difference(&has).intersection(&last));
        self.convert(&pruned, self.resource).into_owned()
    }

    fn add_back_owned(&self, merged: &Value, pruned: Value, owners: &Managed, at: &Resource) -> Value {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in owners.0.values() {
            let set = owned.entry(&entry.api_version).or_default();
            *set = set.union(&entry.set);
        }
        let first = at.api_version();
        let mut versions: Vec<_> = owned.into_iter().collect();
        versions.sort_by_key(|(version, _)| **version != *first);
        versions
            .into_iter()
            .filter_map(|(version, set)| Some((self.version(version)?, set)))
            .fold(pruned, |pruned, (version, set)| {
                let kind = Ref::for_resource(self.state.schema, &version);
                let (merged, pruned) = (self.convert(merged, &version), self.convert(&pruned, &version));
                let had = fields_of(kind, &merged).with_named_fields(kind);
                let has = fields_of(kind, &pruned).with_named_fields(kind);
                let keep = has.union(&set.with_named_fields(kind));
                remove(kind, &merged, &had.difference(&keep))
            })
    }
}
