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

/// A field of another manager that the applied configuration would change.
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

/// Updates the owners of fields after a write to a resource.
pub(super) struct Updater<'a> {
    pub state: &'a State,
    pub resource: &'a Resource,
    /// Fields that a write to this subresource does not change.
    pub reset: Set,
}

/// Result of an apply.
pub(super) struct Applied {
    /// New object; `None` if it equals the live object.
    pub object: Option<Value>,
    pub owners: Managed,
}

impl Updater<'_> {
    fn kind(&self) -> Ref<'_> {
        Ref::for_resource(self.state.schema, self.resource)
    }

    /// Removes the changed fields of an update from all managers except `writer`, and returns the changes.
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

    /// Reconciles owned fields with the current schemas. Entries of versions that are no longer served are
    /// removed.
    fn reconcile(&self, owners: &mut Managed) {
        // The schemas of built-in kinds never change.
        if matches!(self.resource.shape, Shape::Builtin(_)) {
            return;
        }
        owners
            .0
            .retain(|_, entry| match self.resource_in_version(&entry.api_version) {
                Some(version) => {
                    entry.set = reconcile(Ref::for_resource(self.state.schema, &version), &entry.set).into();
                    true
                }
                None => false,
            });
    }

    /// Merges a configuration that `manager` applies into the live object.
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
        // The most common case: the configuration still contains all fields of the previous apply.
        let keeps_all = |last: &Entry| last.api_version == entry.api_version && entry.set.contains(&last.set);
        let reduced = owners.0.get(manager).filter(|last| !keeps_all(last)).cloned();
        owners.0.insert(manager.clone(), entry);
        let new = match &reduced {
            Some(last) if !last.set.is_empty() => self.prune(merged, &owners, last),
            _ => merged,
        };
        self.transfer_ownership(live, &new, &mut owners, Some(manager), force)?;
        Ok(Applied {
            object: (!equal(live, &new)).then_some(new),
            owners,
        })
    }

    /// Removes changed and removed fields from all managers except `writer`. Without `force`, other owners of
    /// changed fields are conflicts.
    fn transfer_ownership(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Managed,
        writer: Option<&Manager>,
        force: bool,
    ) -> Result<Difference, Vec<Conflict>> {
        let own_version = self.resource.api_version();
        let difference = compare(self.kind(), live, new).without(&self.reset);
        let mut by_version: BTreeMap<String, Option<Difference>> = BTreeMap::new();
        let mut conflicts = Vec::new();
        for (manager, entry) in &mut owners.0 {
            if Some(manager) == writer {
                continue;
            }
            let difference = if entry.api_version == own_version {
                Some(&difference)
            } else {
                by_version
                    .entry(entry.api_version.clone())
                    .or_insert_with(|| self.compare_in_version(&entry.api_version, live, new))
                    .as_ref()
            };
            // A version that is no longer served owns no fields.
            let Some(difference) = difference else {
                entry.set = Set::default().into();
                continue;
            };
            if !force {
                let conflicting = entry
                    .set
                    .intersection(&difference.changed.union(&difference.added));
                conflicts.extend(conflicting.paths().into_iter().map(|path| Conflict {
                    manager: manager.clone(),
                    path,
                }));
            }
            let written = [&difference.changed, &difference.added, &difference.removed];
            if written.iter().any(|paths| entry.set.intersects(paths)) {
                let remaining = written.iter().fold(Set::clone(&entry.set), |remaining, paths| {
                    remaining.without(paths)
                });
                entry.set = remaining.into();
            }
        }
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        owners.drop_empty();
        Ok(difference)
    }

    fn compare_in_version(&self, api_version: &str, live: &Value, new: &Value) -> Option<Difference> {
        let resource = self.resource_in_version(api_version)?;
        let kind = Ref::for_resource(self.state.schema, &resource);
        let (live, new) = (self.convert(live, &resource), self.convert(new, &resource));
        Some(compare(kind, &live, &new).without(&self.reset))
    }

    /// Returns the resource in another version, or `None` if the version is not served.
    fn resource_in_version(&self, api_version: &str) -> Option<Arc<Resource>> {
        let mut all = self.state.resources.iter();
        all.find(|other| other.table == self.resource.table && other.api_version() == api_version)
            .cloned()
    }

    /// Converts a value from its version to the version of `to`.
    fn convert<'v>(&self, value: &'v Value, to: &Resource) -> Cow<'v, Value> {
        let version = crate::tree::text(value, &["apiVersion"]);
        if version.is_empty() || version == to.api_version() {
            return Cow::Borrowed(value);
        }
        let Some(from) = self.resource_in_version(version) else {
            return Cow::Borrowed(value);
        };
        Cow::Owned(convert::from_stored(to, convert::to_stored(&from, value.clone())))
    }

    /// Removes the fields that the manager applied before but does not apply now, unless another manager
    /// owns them.
    fn prune(&self, merged: Value, owners: &Managed, last: &Entry) -> Value {
        let Some(resource) = self.resource_in_version(&last.api_version) else {
            return merged;
        };
        let kind = Ref::for_resource(self.state.schema, &resource);
        let merged = self.convert(&merged, &resource).into_owned();
        let last = last.set.with_named_fields(kind);
        let pruned = remove(kind, &merged, &last);
        let pruned = self.add_back_owned(&merged, pruned, owners, &resource);
        let pruned = self.convert(&pruned, &resource);
        // Removes only fields of the last apply: fields of other managers and fields without a manager
        // remain.
        let before = fields_of(kind, &merged).with_named_fields(kind);
        let after = fields_of(kind, &pruned).with_named_fields(kind);
        let pruned = remove(kind, &merged, &before.difference(&after).intersection(&last));
        self.convert(&pruned, self.resource).into_owned()
    }

    /// Restores fields of `merged` in `pruned` that any manager owns.
    fn add_back_owned(&self, merged: &Value, pruned: Value, owners: &Managed, resource: &Resource) -> Value {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in owners.0.values() {
            let set = owned.entry(&entry.api_version).or_default();
            *set = set.union(&entry.set);
        }
        let first = resource.api_version();
        let mut versions: Vec<_> = owned.into_iter().collect();
        versions.sort_by_key(|(version, _)| **version != *first);
        versions
            .into_iter()
            .filter_map(|(version, set)| Some((self.resource_in_version(version)?, set)))
            .fold(pruned, |pruned, (version, set)| {
                let kind = Ref::for_resource(self.state.schema, &version);
                let (merged, pruned) = (self.convert(merged, &version), self.convert(&pruned, &version));
                let before = fields_of(kind, &merged).with_named_fields(kind);
                let after = fields_of(kind, &pruned).with_named_fields(kind);
                let keep = after.union(&set.with_named_fields(kind));
                remove(kind, &merged, &before.difference(&keep))
            })
    }
}
