//! Prints the permissions that the roles of charts grant. An installer must have every permission that it
//! grants.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_yaml::Value;

/// Group, resource, and name of the only permitted object (empty for all objects).
type Target = (String, String, String);

/// Prints the table.
pub(super) fn print<'a>(documents: impl Iterator<Item = &'a Value>) -> String {
    let mut granted = BTreeMap::<Target, BTreeSet<String>>::new();
    let is_role = |document: &&Value| {
        let kind = document.get("kind").and_then(Value::as_str);
        matches!(kind, Some("Role" | "ClusterRole"))
    };
    for rule in documents
        .filter(is_role)
        .filter_map(|role| role.get("rules"))
        .flat_map(|rules| rules.as_list().unwrap_or_default())
    {
        for target in targets(rule) {
            granted.entry(target).or_default().extend(strings(rule, "verbs"));
        }
    }
    let mut out = String::from(
        "# Written by `cargo xtask codegen`: the union of the permissions that the roles of all charts grant, in any pinned version.\n\
         # Kubernetes lets a user grant only permissions that the user holds. Format: ../access.rs.\n",
    );
    for ((group, resource, name), verbs) in &granted {
        let everywhere = (group.clone(), resource.clone(), String::new());
        let wider = granted.get(&everywhere).filter(|_| !name.is_empty());
        if wider.is_some_and(|wider| wider.is_superset(verbs)) {
            continue;
        }
        let group = if group.is_empty() { "core" } else { group };
        let name = if name.is_empty() {
            String::new()
        } else {
            format!("={name}")
        };
        let verbs = verbs.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        out.extend([group, " ", resource, &name, " ", &verbs, "\n"]);
    }
    out
}

fn targets(rule: &Value) -> Vec<Target> {
    let mut names = strings(rule, "resourceNames");
    if names.is_empty() {
        names.push(String::new());
    }
    let mut out = Vec::new();
    for group in strings(rule, "apiGroups") {
        for resource in strings(rule, "resources") {
            out.extend(
                names
                    .iter()
                    .map(|name| (group.clone(), resource.clone(), name.clone())),
            );
        }
    }
    out
}

fn strings(rule: &Value, key: &str) -> Vec<String> {
    let list = rule.get(key).and_then(Value::as_list).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect()
}
