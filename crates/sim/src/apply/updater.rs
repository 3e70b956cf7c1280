//! Ownership after a write: takes the live object, the new or applied one and who owns what, gives who owns what then, and for an
//! apply the object itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::compare::{Difference, compare};
use super::element::{Element, same};
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

/// A field that somebody else owns and the applied configuration would change.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub manager: Manager,
    pub path: Vec<Element>,
}

impl Conflict {
    /// `.spec.replicas`.
    pub(super) fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }
}

/// What a write needs to know about its resource.
pub(super) struct Updater<'a> {
    pub state: &'a State,
    pub resource: &'a Resource,
    /// Fields that a write through this path never changes, whatever it says.
    pub reset: Set,
}

/// The object to be, if it differs from the live one, and who owns what in it.
pub(super) struct Applied {
    pub object: Option<Value>,
    pub owners: Managed,
}

impl Updater<'_> {
    fn kind(&self) -> Ref<'_> {
        Ref::of(self.state.schema, self.resource)
    }

    /// What an update changed belongs to nobody else any more; gives the set of it, which is the writer's.
    pub(super) fn update(&self, live: &Value, new: &Value, owners: &mut Managed) -> Set {
        self.reconcile(owners);
        match self.settle(live, new, owners, None, true) {
            Ok(found) => found.changed.union(&found.added).difference_below(&self.reset),
            Err(_) => Set::default(),
        }
    }

    /// Brings what is owned in line with the schemas of now; versions no longer served own nothing.
    fn reconcile(&self, owners: &mut Managed) {
        // The schemas of builtin kinds never change.
        if matches!(self.resource.shape, Shape::Builtin(_)) {
            return;
        }
        owners
            .0
            .retain(|_, entry| match self.version(&entry.api_version) {
                Some(version) => {
                    entry.set = reconcile(Ref::of(self.state.schema, &version), &entry.set);
                    true
                }
                None => false,
            });
    }

    /// Merges a configuration over the live object in the name of `manager`.
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
            set: fields_of(kind, config).difference_below(&self.reset),
            time: owners.0.get(manager).and_then(|last| last.time.clone()),
        };
        let last = owners.0.insert(manager.clone(), entry);
        let new = match &last {
            Some(last) if !last.set.is_empty() => self.prune(merged, &owners, last),
            _ => merged,
        };
        self.settle(live, &new, &mut owners, Some(manager), force)?;
        Ok(Applied {
            object: (!same(live, &new)).then_some(new),
            owners,
        })
    }

    /// Takes changed and removed fields from everybody but `writer`; without `force`, owners of changed ones object.
    fn settle(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Managed,
        writer: Option<&Manager>,
        force: bool,
    ) -> Result<Difference, Vec<Conflict>> {
        let here = self.resource.api_version();
        let found = compare(self.kind(), live, new).without(&self.reset);
        let mut versions = BTreeMap::from([(here.clone(), Some(found.clone()))]);
        let mut conflicts = Vec::new();
        let mut left = Managed::default();
        for (manager, entry) in &owners.0 {
            if Some(manager) == writer {
                left.0.insert(manager.clone(), entry.clone());
                continue;
            }
            let found = versions
                .entry(entry.api_version.clone())
                .or_insert_with(|| self.compare_in(&entry.api_version, live, new));
            // A version that is no longer served owns nothing.
            let Some(found) = found else {
                continue;
            };
            let taken = entry.set.intersection(&found.changed.union(&found.added));
            conflicts.extend(taken.paths().into_iter().map(|path| Conflict {
                manager: manager.clone(),
                path,
            }));
            let mut entry = entry.clone();
            entry.set = entry.set.difference(&taken).difference(&found.removed);
            left.0.insert(manager.clone(), entry);
        }
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        left.drop_empty();
        *owners = left;
        Ok(found)
    }

    fn compare_in(&self, api_version: &str, live: &Value, new: &Value) -> Option<Difference> {
        let there = self.version(api_version)?;
        let kind = Ref::of(self.state.schema, &there);
        let (live, new) = (self.convert(live, &there), self.convert(new, &there));
        Some(compare(kind, &live, &new).without(&self.reset))
    }

    /// The resource in another of its versions.
    fn version(&self, api_version: &str) -> Option<Arc<Resource>> {
        let mut all = self.state.resources.iter();
        all.find(|other| other.table == self.resource.table && other.api_version() == api_version)
            .cloned()
    }

    /// A value in whatever version it says it is of, in the version of `to`.
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

    /// Takes away what the manager applied last time, does not apply now, and nobody else owns.
    fn prune(&self, merged: Value, owners: &Managed, last: &Entry) -> Value {
        let Some(at) = self.version(&last.api_version) else {
            return merged;
        };
        let kind = Ref::of(self.state.schema, &at);
        let merged = self.convert(&merged, &at).into_owned();
        let last = last.set.with_named_fields(kind);
        let pruned = remove(kind, &merged, &last);
        let pruned = self.add_back_owned(&merged, pruned, owners, &at);
        let pruned = self.convert(&pruned, &at);
        // What others updated or nobody owns was not the manager's to take away.
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
                let kind = Ref::of(self.state.schema, &version);
                let (merged, pruned) = (self.convert(merged, &version), self.convert(&pruned, &version));
                let had = fields_of(kind, &merged).with_named_fields(kind);
                let has = fields_of(kind, &pruned).with_named_fields(kind);
                let keep = has.union(&set.with_named_fields(kind));
                remove(kind, &merged, &had.difference(&keep))
            })
    }
}
