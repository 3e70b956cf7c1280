//! Matching of writes against `matchConstraints`.

use std::sync::Arc;

use serde_json::Value;

use super::Write;
use crate::admission::Operation;
use crate::resource::Resource;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::tree;

/// Returns the resource that the constraints match: the resource of the write, or the same resource in
/// another version. `None` if the write does not match.
pub(super) fn matching_resource(
    state: &State,
    write: &Write<'_>,
    constraints: &Value,
) -> Option<Arc<Resource>> {
    let own = write.attributes.target.resource;
    if !namespace_matches(state, write, constraints.get("namespaceSelector"))
        || !object_matches(write, constraints)
    {
        return None;
    }
    let exact = tree::text(constraints, &["matchPolicy"]) == "Exact";
    if find_by_rules(
        state,
        write,
        tree::list(constraints, &["excludeResourceRules"]),
        exact,
    )
    .is_some()
    {
        return None;
    }
    let rules = tree::list(constraints, &["resourceRules"]);
    if rules.is_empty() {
        return Some(Arc::clone(own));
    }
    find_by_rules(state, write, rules, exact)
}

fn find_by_rules(state: &State, write: &Write<'_>, rules: &[Value], exact: bool) -> Option<Arc<Resource>> {
    let own = write.attributes.target.resource;
    if rules.iter().any(|rule| rule_matches(rule, write, own)) {
        return Some(Arc::clone(own));
    }
    if exact {
        return None;
    }
    let others = state
        .resources
        .iter()
        .filter(|other| other.table == own.table && !Arc::ptr_eq(other, own));
    let mut others = others.filter(|other| rules.iter().any(|rule| rule_matches(rule, write, other)));
    others.next().cloned()
}

fn namespace_matches(state: &State, write: &Write<'_>, selector: Option<&Value>) -> bool {
    let selector = LabelSelector::from_object(selector);
    let target = write.attributes.target;
    if selector.is_empty() {
        return true;
    }
    if target.resource.is("", "namespaces") {
        let object = write.new.or(write.attributes.old);
        return selector.matches_map(object.and_then(|object| tree::get(object, &["metadata", "labels"])));
    }
    if target.namespace.is_empty() {
        return true;
    }
    let namespace = state
        .store
        .get("namespaces", target.namespace)
        .map(|object| object.value());
    let labels = namespace
        .as_ref()
        .and_then(|value| tree::get(value, &["metadata", "labels"]));
    selector.matches_map(labels)
}

fn object_matches(write: &Write<'_>, constraints: &Value) -> bool {
    let selector = LabelSelector::from_object(constraints.get("objectSelector"));
    let labels = |object: &Value| selector.matches_map(tree::get(object, &["metadata", "labels"]));
    selector.is_empty() || write.new.is_some_and(labels) || write.attributes.old.is_some_and(labels)
}

fn rule_matches(rule: &Value, write: &Write<'_>, resource: &Resource) -> bool {
    let has = |key: &str, wanted: &str| {
        tree::list(rule, &[key])
            .iter()
            .any(|one| one == "*" || one == wanted)
    };
    let target = write.attributes.target;
    let operation = match write.attributes.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    };
    let namespaced = !target.namespace.is_empty() && resource.namespaced;
    let scope_matches = match tree::text(rule, &["scope"]) {
        "Namespaced" => namespaced,
        "Cluster" => !namespaced,
        _ => true,
    };
    let named = |one: &Value| {
        let (plural, sub) = one
            .as_str()
            .map_or(("", ""), |text| text.split_once('/').unwrap_or((text, "")));
        (plural == "*" || plural == &*resource.plural) && (sub == "*" || sub == write.subresource)
    };
    let only = tree::list(rule, &["resourceNames"]);
    let name = match target.name {
        "" => write
            .new
            .map_or("", |object| tree::text(object, &["metadata", "name"])),
        name => name,
    };
    scope_matches
        && has("operations", operation)
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && tree::list(rule, &["resources"]).iter().any(named)
        && (only.is_empty() || only.iter().any(|one| one == name))
}
