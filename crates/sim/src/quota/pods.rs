//! Quota usage of pods: requests and limits of their containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Amounts;
use crate::clock::Instant;
use crate::schema::Quantity;
use crate::state::State;
use crate::strategy::qos_class;
use crate::tree;

/// Resources for which requests also count under the bare resource name.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resource names that every container of a pod must specify if a quota limits them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// Adds the usage of a pod. A completed pod, or a pod past its deletion time, counts only as an object.
pub(super) fn add_usage(state: &State, pod: &Value, used: &mut Amounts) {
    if has_ended(state, pod) {
        return;
    }
    used.insert("pods".into(), Quantity::count(1));
    let (requests, limits) = (total(pod, "requests"), total(pod, "limits"));
    add_named(&requests, &limits, used);
}

fn has_ended(state: &State, pod: &Value) -> bool {
    if matches!(tree::text(pod, &["status", "phase"]), "Succeeded" | "Failed") {
        return true;
    }
    let deleted = Instant::parse(tree::text(pod, &["metadata", "deletionTimestamp"]));
    deleted.is_some_and(|at| at < state.now())
}

/// Adds requests and limits under the resource names that quotas use.
fn add_named(requests: &Amounts, limits: &Amounts, used: &mut Amounts) {
    for (name, amount) in requests {
        if COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-") {
            used.insert(name.clone(), *amount);
        }
        if COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-") || name.contains('/') {
            used.insert(format!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if COMPUTE.contains(&name.as_str()) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
}

/// Returns the total requests or limits of a pod: the sum over its containers and sidecars, or the amount
/// that one of its init containers needs if that is larger.
pub(crate) fn total(pod: &Value, kind: &str) -> Amounts {
    let declared = |container: &Value| super::parse_amounts(tree::get(container, &["resources", kind]));
    let mut sum = Amounts::new();
    for container in tree::list(pod, &["spec", "containers"]) {
        super::add_amounts(&mut sum, &declared(container));
    }
    let (mut sidecars, mut needed) = (Amounts::new(), Amounts::new());
    for container in tree::list(pod, &["spec", "initContainers"]) {
        let mut at_once = sidecars.clone();
        super::add_amounts(&mut at_once, &declared(container));
        if tree::text(container, &["restartPolicy"]) == "Always" {
            super::add_amounts(&mut sum, &declared(container));
            sidecars.clone_from(&at_once);
        }
        keep_larger(&mut needed, &at_once);
    }
    keep_larger(&mut sum, &needed);
    for (name, amount) in super::parse_amounts(tree::get(pod, &["spec", "resources", kind])) {
        sum.insert(name, amount);
    }
    let overhead = super::parse_amounts(tree::get(pod, &["spec", "overhead"]));
    for (name, amount) in overhead {
        if kind == "requests" || sum.contains_key(&name) {
            super::add_amounts(&mut sum, &Amounts::from([(name, amount)]));
        }
    }
    sum
}

fn keep_larger(into: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let have = into.entry(name.clone()).or_insert(*amount);
        if have.nanos() < amount.nanos() {
            *have = *amount;
        }
    }
}

/// Returns whether pods use the quota resource `name`.
pub(super) fn is_counted(name: &str) -> bool {
    let bare = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."));
    name == "pods"
        || COMPUTE.contains(&bare.unwrap_or(name))
        || name.starts_with("hugepages-")
        || name
            .strip_prefix("requests.")
            .is_some_and(|bare| bare.contains('/') || bare.starts_with("hugepages-"))
}

/// Returns whether a pod is in a scope of a quota.
pub(super) fn in_scope(pod: &Value, scope: &str, expression: Option<&Value>) -> bool {
    let has_deadline = tree::int(pod, &["spec", "activeDeadlineSeconds"]).is_some();
    let best_effort = qos_class(pod) == "BestEffort";
    match scope {
        "Terminating" => has_deadline,
        "NotTerminating" => !has_deadline,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => in_priority_class(tree::text(pod, &["spec", "priorityClassName"]), expression),
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn in_priority_class(class: &str, expression: Option<&Value>) -> bool {
    let Some(expression) = expression else {
        return !class.is_empty();
    };
    let mut values = tree::list(expression, &["values"]).iter();
    let listed = values.any(|value| value.as_str() == Some(class));
    match tree::text(expression, &["operator"]) {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        _ => false,
    }
}

/// Returns whether an affinity term of the pod refers to other namespaces.
fn crosses_namespaces(pod: &Value) -> bool {
    let affinities = ["podAffinity", "podAntiAffinity"].map(|kind| ["spec", "affinity", kind]);
    let terms = affinities
        .iter()
        .filter_map(|path| tree::get(pod, path))
        .flat_map(|affinity| {
            let preferred = tree::list(affinity, &["preferredDuringSchedulingIgnoredDuringExecution"]);
            let preferred = preferred.iter().filter_map(|term| term.get("podAffinityTerm"));
            tree::list(affinity, &["requiredDuringSchedulingIgnoredDuringExecution"])
                .iter()
                .chain(preferred)
        });
    let mut terms = terms;
    terms.any(|term| {
        !tree::list(term, &["namespaces"]).is_empty()
            || term
                .get("namespaceSelector")
                .is_some_and(|selector| !selector.is_null())
    })
}

/// Returns the message about containers that lack required requests or limits, or `None` if there are none.
pub(super) fn missing_resources_message(pod: &Value, required: &[String]) -> Option<String> {
    if tree::get(pod, &["spec", "resources"]).is_some_and(|own| !own.is_null()) {
        return None;
    }
    let mut lacking: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"]
        .iter()
        .flat_map(|kind| tree::list(pod, &["spec", kind]))
    {
        let part = |kind: &str| super::parse_amounts(tree::get(container, &["resources", kind]));
        let mut named = Amounts::new();
        add_named(&part("requests"), &part("limits"), &mut named);
        let needed = required.iter().filter(|name| REQUIRED.contains(&name.as_str()));
        for name in needed.filter(|name| !named.contains_key(*name)) {
            lacking
                .entry(name)
                .or_default()
                .insert(tree::text(container, &["name"]));
        }
    }
    let list = |(name, containers): (&str, BTreeSet<&str>)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    };
    let parts: Vec<String> = lacking.into_iter().map(list).collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}
