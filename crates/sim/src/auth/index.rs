//! RBAC index: roles by key and bindings by subject, updated from the store's history.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::User;
use super::rule::Rule;
use crate::object::Object;
use crate::store::{EventKind, Store};
use crate::tree;

const ROLES: &str = "roles.rbac.authorization.k8s.io";
pub(super) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
const TABLES: [&str; 4] = [ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS];

/// Roles by key and bindings by subject.
#[derive(Debug, Default)]
pub struct Index {
    /// Version up to which each table was read.
    versions: [u64; 4],
    /// Roles by `namespace/name`.
    roles: HashMap<Box<str>, Arc<[Rule]>>,
    cluster_roles: HashMap<Box<str>, Arc<[Rule]>>,
    /// Bindings by namespace. The empty namespace contains the cluster role bindings.
    bindings: HashMap<Box<str>, NamespaceBindings>,
}

/// Bindings of one namespace by user name and by group. Service accounts are users.
#[derive(Debug, Default)]
struct NamespaceBindings {
    users: BindingsBySubject,
    groups: BindingsBySubject,
}

/// Bindings by subject, then by name of the binding and position of the subject in it.
type BindingsBySubject = HashMap<Box<str>, BTreeMap<(Box<str>, usize), Binding>>;

/// A binding of one subject.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) role_kind: Box<str>,
    pub(super) role: Box<str>,
    subject: Box<str>,
}

impl Binding {
    /// Returns the text for the binding in the reason of an allowed request.
    pub(super) fn describe(&self) -> String {
        let (kind, name) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", self.name.to_string())
        } else {
            ("RoleBinding", format!("{}/{}", self.name, self.namespace))
        };
        format!(
            "{kind} {name:?} of {} {:?} to {}",
            self.role_kind, self.role, self.subject
        )
    }
}

impl Index {
    /// Applies the changes since the last refresh.
    pub fn refresh(&mut self, store: &Store) {
        let current = TABLES.map(|table| {
            store
                .history(table)
                .map_or(0, crate::store::History::last_version)
        });
        if current == self.versions {
            return;
        }
        for (at, table) in TABLES.into_iter().enumerate() {
            let (read, last) = (self.versions.get(at).copied(), current.get(at).copied());
            if read != last && !self.apply_changes(store, table, read.unwrap_or(0)) {
                self.rebuild(store);
                break;
            }
        }
        self.versions = current;
    }

    /// Applies the changes of a table after `version`; returns `false` if the history has been compacted.
    fn apply_changes(&mut self, store: &Store, table: &str, version: u64) -> bool {
        let Some(history) = store.history(table) else {
            return true;
        };
        let Some(events) = history.after(version) else {
            return false;
        };
        for event in events {
            if let Some(previous) = &event.previous {
                self.remove(table, previous);
            }
            if event.kind != EventKind::Deleted {
                self.insert(table, &event.object);
            }
        }
        true
    }

    fn rebuild(&mut self, store: &Store) {
        *self = Self::default();
        for table in TABLES {
            for object in store.all(table) {
                self.insert(table, object);
            }
        }
    }

    fn insert(&mut self, table: &str, object: &Object) {
        let value = object.value();
        let key = object.key().into_boxed_str();
        match table {
            ROLES => drop(self.roles.insert(key, Rule::parse_all(&value).into())),
            CLUSTER_ROLES => drop(self.cluster_roles.insert(key, Rule::parse_all(&value).into())),
            _ => {
                let scope = self.bindings.entry(object.meta().namespace.clone()).or_default();
                for (at, (user, subject, binding)) in parse_subjects(&value).into_iter().enumerate() {
                    let by_subject = if user { &mut scope.users } else { &mut scope.groups };
                    let position = (object.meta().name.clone(), at);
                    by_subject.entry(subject).or_default().insert(position, binding);
                }
            }
        }
    }

    fn remove(&mut self, table: &str, object: &Object) {
        match table {
            ROLES => drop(self.roles.remove(object.key().as_str())),
            CLUSTER_ROLES => drop(self.cluster_roles.remove(object.key().as_str())),
            _ => {
                let Some(scope) = self.bindings.get_mut(&object.meta().namespace) else {
                    return;
                };
                for (at, (user, subject, _)) in parse_subjects(&object.value()).into_iter().enumerate() {
                    let by_subject = if user { &mut scope.users } else { &mut scope.groups };
                    if let Some(bindings) = by_subject.get_mut(&subject) {
                        bindings.remove(&(object.meta().name.clone(), at));
                        if bindings.is_empty() {
                            by_subject.remove(&subject);
                        }
                    }
                }
            }
        }
    }

    /// Returns the bindings of `user` without duplicates: first cluster-wide bindings, then those of
    /// `namespace`.
    pub(super) fn bindings_for(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        let mut all = self.bindings_in("", user);
        if !namespace.is_empty() {
            all.extend(self.bindings_in(namespace, user));
        }
        all
    }

    fn bindings_in(&self, namespace: &str, user: &User) -> Vec<&Binding> {
        let Some(scope) = self.bindings.get(namespace) else {
            return Vec::new();
        };
        let by_name = scope.users.get(user.name.as_str());
        let by_group = user
            .groups
            .iter()
            .filter_map(|group| scope.groups.get(group.as_str()));
        let mut found: Vec<_> = by_name.into_iter().chain(by_group).flatten().collect();
        found.sort_by_key(|(position, _)| *position);
        found.dedup_by(|(one, _), (other, _)| one.0 == other.0);
        found.into_iter().map(|(_, binding)| binding).collect()
    }

    /// Returns the rules of a role; if it does not exist, the singular name of its resource.
    pub(super) fn rules(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<&Arc<[Rule]>, &'static str> {
        if kind == "Role" {
            return self
                .roles
                .get(crate::object::key(namespace, name).as_str())
                .ok_or("role");
        }
        self.cluster_roles.get(name).ok_or("clusterrole")
    }
}

/// Returns one entry per subject of a binding: whether the subject is a user rather than a group, its
/// name, and the binding.
fn parse_subjects(value: &Value) -> Vec<(bool, Box<str>, Binding)> {
    let namespace = tree::text(value, &["metadata", "namespace"]);
    let parse_subject = |subject: &Value| {
        let (kind, name) = (tree::text(subject, &["kind"]), tree::text(subject, &["name"]));
        let subject_namespace = Some(tree::text(subject, &["namespace"]))
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or(namespace);
        let (user, key, shown) = match kind {
            "ServiceAccount" => (
                true,
                format!("system:serviceaccount:{subject_namespace}:{name}"),
                format!("{name}/{subject_namespace}"),
            ),
            "Group" => (false, name.to_owned(), name.to_owned()),
            _ => (true, name.to_owned(), name.to_owned()),
        };
        let binding = Binding {
            name: tree::text(value, &["metadata", "name"]).into(),
            namespace: namespace.into(),
            role_kind: tree::text(value, &["roleRef", "kind"]).into(),
            role: tree::text(value, &["roleRef", "name"]).into(),
            subject: format!("{kind} {shown:?}").into(),
        };
        (user, key.into_boxed_str(), binding)
    };
    tree::list(value, &["subjects"])
        .iter()
        .map(parse_subject)
        .collect()
}
