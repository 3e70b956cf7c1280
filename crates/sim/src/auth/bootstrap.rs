//! Default roles and bindings: created once per process from the table `bootstrap.txt` and copied into each
//! new cluster.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::Aggregation;
use crate::controllers::{self, Controller as _};
use crate::random::Random;
use crate::state::{Options, State};
use crate::tree;

const TABLE: &str = include_str!("bootstrap.txt");
const GROUP: &str = "rbac.authorization.k8s.io";

/// Creates the default roles and bindings of a new cluster.
pub(crate) fn bootstrap(state: &mut State) {
    let now = state.now().rfc3339();
    // Uses a separate random sequence, so that new roles in a later version do not change other generated
    // names.
    let mut random = Random::new(state.options.seed.rotate_left(32));
    for (plural, default) in default_objects() {
        let Some(resource) = state.resources.preferred(GROUP, plural).cloned() else {
            return;
        };
        let mut value = default.clone();
        tree::set(&mut value, &["metadata", "uid"], random.uid());
        tree::set(&mut value, &["metadata", "creationTimestamp"], now.as_str());
        for entry in tree::list_mut(&mut value, &["metadata", "managedFields"])
            .into_iter()
            .flatten()
        {
            tree::set(entry, &["time"], now.as_str());
        }
        crate::write::persist(state, &resource, value);
    }
}

/// Returns the default objects with the plural names of their resources. Uids and times are replaced in each
/// cluster.
fn default_objects() -> &'static [(&'static str, Value)] {
    static OBJECTS: OnceLock<Vec<(&'static str, Value)>> = OnceLock::new();
    OBJECTS.get_or_init(create_default_objects)
}

/// Creates the objects through the API of a temporary cluster.
fn create_default_objects() -> Vec<(&'static str, Value)> {
    let mut state = State::new(Options {
        trace: false,
        ..Options::default()
    });
    for namespace in ["kube-public", "kube-system"] {
        controllers::create_if_absent(
            &mut state,
            "",
            "namespaces",
            "",
            json!({"metadata": {"name": namespace}}),
        );
    }
    for (plural, value) in parse_table(TABLE) {
        let namespace = tree::text(&value, &["metadata", "namespace"]).to_owned();
        controllers::create_if_absent(&mut state, GROUP, plural, &namespace, value);
    }
    let mut aggregation = Aggregation::default();
    // A role can aggregate roles that are aggregated themselves. The default roles have three levels.
    for _ in 0..4 {
        aggregation.step(&mut state);
    }
    let plurals = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
    let objects = plurals.iter().flat_map(|plural| {
        let table = format!("{plural}.{GROUP}");
        state
            .store
            .all(&table)
            .map(|object| (*plural, object.value()))
            .collect::<Vec<_>>()
    });
    objects.collect()
}

fn parse_table(table: &str) -> Vec<(&'static str, Value)> {
    let mut objects: Vec<(&'static str, Value)> = Vec::new();
    for line in table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        if !line.starts_with(' ') {
            objects.push(parse_head(line));
        } else if let Some((_, object)) = objects.last_mut() {
            let (list, row) = parse_list_entry(line);
            if let Some(items) = tree::list_mut(object, &[list]) {
                items.push(row);
            } else {
                tree::set(object, &[list], vec![row]);
            }
        }
    }
    objects
}

/// Parses the first line of a block.
fn parse_head(line: &str) -> (&'static str, Value) {
    let fields: Vec<&str> = line.split(' ').collect();
    let is_role = fields.first() == Some(&"role");
    let mut value = json!({"metadata": {
        "name": fields.get(1), "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }});
    for pair in fields.get(2..).unwrap_or(&[]).chunks(2) {
        match pair {
            ["in", namespace] => tree::set(&mut value, &["metadata", "namespace"], *namespace),
            ["label", key] => tree::set(&mut value, &["metadata", "labels", key], "true"),
            ["aggregates", key] => {
                let rule = json!({"clusterRoleSelectors": [{"matchLabels": {*key: "true"}}]});
                tree::set(&mut value, &["aggregationRule"], rule);
            }
            ["to", role] => {
                let (kind, name) = role.split_once('/').unwrap_or((role, ""));
                tree::set(
                    &mut value,
                    &["roleRef"],
                    json!({"apiGroup": GROUP, "kind": kind, "name": name}),
                );
            }
            _ => {}
        }
    }
    let namespaced = tree::get(&value, &["metadata", "namespace"]).is_some();
    let plural = match (is_role, namespaced) {
        (true, false) => "clusterroles",
        (true, true) => "roles",
        (false, false) => "clusterrolebindings",
        (false, true) => "rolebindings",
    };
    (plural, value)
}

/// Parses a rule or a subject. Returns the name of the list that contains it.
fn parse_list_entry(line: &str) -> (&'static str, Value) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let list = |text: &str| -> Vec<String> {
        text.split(',')
            .map(|one| one.trim_matches('"').to_owned())
            .collect()
    };
    match fields.as_slice() {
        ["ServiceAccount", name, namespace] => (
            "subjects",
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
        ),
        [kind @ ("User" | "Group"), name] => {
            ("subjects", json!({"apiGroup": GROUP, "kind": kind, "name": name}))
        }
        [verbs, paths] => (
            "rules",
            json!({"verbs": list(verbs), "nonResourceURLs": list(paths)}),
        ),
        [verbs, groups, resources, names @ ..] => {
            let mut rule =
                json!({"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)});
            if let Some(names) = names.first() {
                tree::set(&mut rule, &["resourceNames"], list(names));
            }
            ("rules", rule)
        }
        _ => ("rules", Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_becomes_an_object_and_default_roles_are_aggregated() {
        let objects = default_objects();
        assert_eq!(
            objects.len(),
            TABLE.lines().filter(|line| line.starts_with(['r', 'b'])).count()
        );
        let admin = objects
            .iter()
            .find(|(_, value)| tree::text(value, &["metadata", "name"]) == "admin");
        assert!(tree::list(&admin.unwrap().1, &["rules"]).len() > 20);
    }
}
