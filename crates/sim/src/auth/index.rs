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

/// All roles by key and all bindings by subject.
#[derive(Debug, Default)]
pub struct Index {
    /// The version up to which each table was read.
    seen: [u64; 4],
    /// Roles by `namespace/name`.
    roles: HashMap<Box<str>, Arc<[Rule]>>,
    cluster_roles: HashMap<Box<str>, Arc<[Rule]>>,
    /// Bindings by namespace; the empty namespace has the cluster role bindings.
    scopes: HashMap<Box<str>, Scope>,
}

/// The bindings of one namespace by user name and by group; service accounts are users.
#[derive(Debug, Default)]
struct Scope {
    users: Bound,
    groups: Bound,
}

type Bound = HashMap<Box<str>, BTreeMap<(Box<str>, usize), Binding>>;

/// One subject of a binding.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) role_kind: Box<str>,
    pub(super) role: Box<str>,
    subject: Box<str>,
}

impl Binding {
    /// Returns the description of the binding in the reason for an approval.
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
        if current == self.seen {
            return;
        }
        for (at, table) in TABLES.into_iter().enumerate() {
            let (seen, now) = (self.seen.get(at).copied(), current.get(at).copied());
            if seen != now && !self.follow(store, table, seen.unwrap_or(0)) {
                self.rebuild(store);
                break;
            }
        }
        self.seen = current;
    }

    /// Applies the changes of a table; returns `false` if its history has been compacted.
    fn follow(&mut self, store: &Store, table: &str, seen: u64) -> bool {
        let Some(history) = store.history(table) else {
            return true;
        };
        let Some(events) = history.after(seen) else {
            return false;
        };
        for event in events {
            if let Some(previous) = &event.previous {
                self.forget(table, previous);
            }
            if event.kind != EventKind::Deleted {
                self.remember(table, &event.object);
            }
        }
        true
    }

    fn rebuild(&mut self, store: &Store) {
        *self = Self::default();
        for table in TABLES {
            for object in store.all(table) {
                self.remember(table, object);
            }
        }
    }

    fn remember(&mut self, table: &str, object: &Object) {
        let value = object.value();
        let key = object.key().into_boxed_str();
        match table {
            ROLES => drop(self.roles.insert(key, Rule::parse_all(&value).into())),
            CLUSTER_ROLES => drop(self.cluster_roles.insert(key, Rule::parse_all(&value).into())),
            _ => {
                let scope = self.scopes.entry(object.meta().namespace.clone()).or_default();
                for (at, (user, subject, binding)) in bindings(&value).into_iter().enumerate() {
                    let side = if user { &mut scope.users } else { &mut scope.groups };
                    let position = (object.meta().name.clone(), at);
                    side.entry(subject).or_default().insert(position, binding);
                }
            }
        }
    }

    fn forget(&mut self, table: &str, object: &Object) {
        match table {
            ROLES => drop(self.roles.remove(object.key().as_str())),
            CLUSTER_ROLES => drop(self.cluster_roles.remove(object.key().as_str())),
            _ => {
                let Some(scope) = self.scopes.get_mut(&object.meta().namespace) else {
                    return;
                };
                for (at, (user, subject, _)) in bindings(&object.value()).into_iter().enumerate() {
                    let side = if user { &mut scope.users } else { &mut scope.groups };
                    if let Some(places) = side.get_mut(&subject) {
                        places.remove(&(object.meta().name.clone(), at));
                        if places.is_empty() {
                            side.remove(&subject);
                        }
                    }
                }
            }
        }
    }

    /// Returns the bindings of `user`: cluster-wide ones, then those of `namespace`, each once.
    pub(super) fn bindings_for(&self, user: &User, namespace: &str) -> Vec<&Binding> {
        let mut all = self.bindings_in("", user);
        if !namespace.is_empty() {
            all.extend(self.bindings_in(namespace, user));
        }
        all
    }

    fn bindings_in(&self, namespace: &str, user: &User) -> Vec<&Binding> {
        let Some(scope) = self.scopes.get(namespace) else {
            return Vec::new();
        };
        let own = scope.users.get(user.name.as_str());
        let by_group = user
            .groups
            .iter()
            .filter_map(|group| scope.groups.get(group.as_str()));
        let mut found: Vec<_> = own.into_iter().chain(by_group).flatten().collect();
        found.sort_by_key(|(position, _)| *position);
        found.dedup_by(|(one, _), (other, _)| one.0 == other.0);
        found.into_iter().map(|(_, binding)| binding).collect()
    }

    /// Returns the rules of a role, or the role's name if it does not exist.
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

/// Returns whether the subject is a user (or a group), its name, and the binding, per subject.
fn bindings(value: &Value) -> Vec<(bool, Box<str>, Binding)> {
    let namespace = tree::text(value, &["metadata", "namespace"]);
    let of_subject = |subject: &Value| {
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
    tree::list(value, &["subjects"]).iter().map(of_subject).collect()
}
