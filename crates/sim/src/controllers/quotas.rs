//! Resource quotas: computes their status when they change, when a counted object is deleted and when a
//! pod has finished. The admission plugin adds the usage of new objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Controller;
use crate::object::Object;
use crate::quota::{self, Amounts};
use crate::resource::Resource;
use crate::schema::Quantity;
use crate::state::State;
use crate::store::EventKind;
use crate::tree;
use crate::write;

/// Controller for resource quotas.
#[derive(Debug, Default)]
pub struct Quotas {
    seen_version: u64,
}

impl Controller for Quotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let since = std::mem::replace(&mut self.seen_version, state.store.version());
        if since == self.seen_version || state.store.count(quota::TABLE) == 0 {
            return false;
        }
        let namespaces = affected_namespaces(state, since);
        let mut changed = false;
        for namespace in namespaces {
            changed |= update_quotas(state, &namespace);
        }
        changed
    }
}

/// Returns the namespaces with changed quotas or with a usage that may have decreased.
fn affected_namespaces(state: &State, since: u64) -> BTreeSet<Box<str>> {
    let mut found = BTreeSet::new();
    for table in state.store.changed_since(since) {
        let events = state
            .store
            .history(&table)
            .and_then(|history| history.after(since));
        let Some(events) = events else {
            // The history has been compacted: check all quotas.
            let quotas = state.store.all(quota::TABLE);
            return quotas.map(|object| object.meta().namespace.clone()).collect();
        };
        let is_quota = &*table == quota::TABLE;
        let affected = events.filter(|event| {
            is_quota || event.kind == EventKind::Deleted || (&*table == "pods" && has_finished(&event.object))
        });
        found.extend(affected.map(|event| event.object.meta().namespace.clone()));
    }
    found.remove("");
    found
}

fn has_finished(pod: &Object) -> bool {
    matches!(pod.field("status.phase"), Some("Succeeded" | "Failed"))
}

/// Updates the quotas of a namespace; returns whether one changed.
fn update_quotas(state: &mut State, namespace: &str) -> bool {
    let quotas: Vec<Value> = state
        .store
        .range(quota::TABLE, namespace, None)
        .map(|(_, object)| object.packed())
        .collect();
    let Some(resource) = state.resources.preferred("", quota::TABLE).cloned() else {
        return false;
    };
    let mut changed = false;
    for mut quota in quotas {
        let status = quota_status(state, namespace, &quota);
        if quota.get("status") != Some(&status) {
            tree::set(&mut quota, &["status"], status);
            write::persist(state, &resource, quota);
            changed = true;
        }
    }
    changed
}

fn quota_status(state: &State, namespace: &str, quota: &Value) -> Value {
    let hard = quota::parse_amounts(tree::get(quota, &["spec", "hard"]));
    let mut used = Amounts::new();
    let resources: Vec<Arc<Resource>> = state
        .resources
        .tables()
        .filter(|resource| resource.namespaced)
        .cloned()
        .collect();
    for resource in resources {
        let names = quota::matching_names(&hard, &resource);
        if names.is_empty() {
            continue;
        }
        let total = total_usage(state, namespace, quota, &resource);
        used.extend(names.into_iter().map(|name| {
            let amount = total.get(&name).copied().unwrap_or(Quantity::ZERO);
            (name, amount)
        }));
    }
    json!({"hard": to_map(&hard), "used": to_map(&used)})
}

/// Returns the usage of all objects of a resource in a namespace that the quota selects.
fn total_usage(state: &State, namespace: &str, quota: &Value, resource: &Resource) -> Amounts {
    let mut total = Amounts::new();
    for (_, object) in state.store.range(&resource.table, namespace, None) {
        let value = object.packed();
        if quota::selects(quota, resource, &value) {
            quota::add_amounts(&mut total, &quota::usage(state, resource, &value));
        }
    }
    total
}

fn to_map(amounts: &Amounts) -> Map<String, Value> {
    let entry = |(name, amount): (&String, &Quantity)| (name.clone(), json!(amount.to_string()));
    amounts.iter().map(entry).collect()
}
