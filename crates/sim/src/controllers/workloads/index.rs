//! Index of pods by key, owner and label, and of the Services and budgets that select them. The cost of a
//! query is proportional to its result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::pod::Pod;
use super::{BUDGETS, PODS, SERVICES};
use crate::object::Object;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::tree;

/// Namespace, key and value of a label. An empty key means all pods of the namespace.
type Label = (Box<str>, Box<str>, Box<str>);
/// Table and key of an object with a selector.
pub(super) type SelectorOwner = (&'static str, Box<str>);

#[derive(Debug, Default)]
pub(super) struct Index {
    pods: HashMap<Box<str>, Pod>,
    by_label: HashMap<Label, BTreeSet<Box<str>>>,
    /// Objects with a selector by one of the labels that it requires.
    selectors: HashMap<Label, BTreeSet<SelectorOwner>>,
    /// Labels by which the objects are stored in `selectors`.
    label_of: BTreeMap<SelectorOwner, Label>,
}

impl Index {
    /// Returns the pods controlled by `uid`, in key order.
    pub(super) fn pods_controlled_by<'a>(&'a self, state: &State, uid: &str) -> Vec<&'a Pod> {
        state
            .store
            .dependents(uid)
            .filter(|location| &*location.table == PODS)
            .filter_map(|location| self.pods.get(&location.key))
            .filter(|pod| pod.meta().controller().is_some_and(|owner| &*owner.uid == uid))
            .collect()
    }

    /// Returns the pods of a namespace that match a selector. `hint` is a label that all of them have.
    pub(super) fn pods_matching(
        &self,
        namespace: &str,
        hint: Option<(&str, &str)>,
        selector: &LabelSelector,
    ) -> Vec<&Pod> {
        let (key, value) = hint.unwrap_or(("", ""));
        self.by_label
            .get(&label(namespace, key, value))
            .into_iter()
            .flatten()
            .filter_map(|key| self.pods.get(key))
            .filter(|pod| selector.matches(&|key| pod.meta().label(key)))
            .collect()
    }

    /// Adds, updates or removes a pod. Returns the objects with a selector that may match it.
    pub(super) fn put_pod(&mut self, object: &Arc<Object>, deleted: bool) -> BTreeSet<SelectorOwner> {
        let key: Box<str> = object.key().into();
        let mut affected = BTreeSet::new();
        let before = self.pods.get(&key).map(|pod| Arc::clone(&pod.object));
        let same_labels = before
            .as_ref()
            .is_some_and(|before| before.meta().labels == object.meta().labels);
        if let Some(before) = before {
            for label in labels(&before) {
                self.add_selector_owners(&label, &mut affected);
                if deleted || !same_labels {
                    self.remove_label(&label, &key);
                }
            }
        }
        if deleted {
            self.pods.remove(&key);
            return affected;
        }
        for label in labels(object) {
            self.add_selector_owners(&label, &mut affected);
            if !same_labels {
                self.by_label.entry(label).or_default().insert(key.clone());
            }
        }
        self.pods.insert(key, Pod::from_object(object));
        affected
    }

    fn add_selector_owners(&self, label: &Label, affected: &mut BTreeSet<SelectorOwner>) {
        affected.extend(self.selectors.get(label).into_iter().flatten().cloned());
    }

    fn remove_label(&mut self, label: &Label, key: &str) {
        if let Some(keys) = self.by_label.get_mut(label) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_label.remove(label);
            }
        }
    }

    /// Adds, updates or removes a Service or budget.
    pub(super) fn put_selector(&mut self, table: &str, object: &Arc<Object>, deleted: bool) {
        let table = if table == SERVICES { SERVICES } else { BUDGETS };
        let owner: SelectorOwner = (table, object.key().into());
        if let Some(label) = self.label_of.remove(&owner)
            && let Some(set) = self.selectors.get_mut(&label)
        {
            set.remove(&owner);
            if set.is_empty() {
                self.selectors.remove(&label);
            }
        }
        if deleted {
            return;
        }
        let value = object.packed();
        let hint = selector_hint(table, &value);
        if table == SERVICES && hint.is_none() {
            // A Service without a selector matches no pods. A budget with an empty selector matches all pods.
            return;
        }
        let (key, text) = hint.unwrap_or(("", ""));
        let label = label(&object.meta().namespace, key, text);
        self.selectors
            .entry(label.clone())
            .or_default()
            .insert(owner.clone());
        self.label_of.insert(owner, label);
    }

    /// Removes all objects of a table.
    pub(super) fn clear_table(&mut self, table: &str) {
        if table == PODS {
            self.pods.clear();
            self.by_label.clear();
        } else if matches!(table, SERVICES | BUDGETS) {
            self.label_of.retain(|(owner_table, _), _| *owner_table != table);
            for set in self.selectors.values_mut() {
                set.retain(|(owner_table, _)| *owner_table != table);
            }
        }
    }
}

/// Returns a label that every pod that matches the selector of `value` has.
pub(super) fn selector_hint<'a>(table: &str, value: &'a serde_json::Value) -> Option<(&'a str, &'a str)> {
    let path: &[&str] = if table == SERVICES {
        &["spec", "selector"]
    } else {
        &["spec", "selector", "matchLabels"]
    };
    let (key, value) = tree::map(value, path)?.iter().next()?;
    Some((key, value.as_str()?))
}

fn label(namespace: &str, key: &str, value: &str) -> Label {
    (namespace.into(), key.into(), value.into())
}

fn labels(object: &Object) -> impl Iterator<Item = Label> {
    let meta = object.meta();
    let all = std::iter::once(label(&meta.namespace, "", ""));
    all.chain(
        meta.labels
            .iter()
            .map(|(key, value)| label(&meta.namespace, key, value)),
    )
}
