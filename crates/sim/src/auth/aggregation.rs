//! Aggregated cluster roles: copies the rules of the selected roles into the roles that have an
//! `aggregationRule`.

use serde_json::{Value, json};

use super::index::CLUSTER_ROLES;
use crate::context::Context;
use crate::controllers::Controller;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::write::{self, Target};
use crate::{apply, tree};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller that updates aggregated cluster roles.
#[derive(Debug, Default)]
pub struct Aggregation {
    /// Last version of the table at the last step.
    seen_version: u64,
}

impl Controller for Aggregation {
    fn name(&self) -> &'static str {
        MANAGER
    }

    fn step(&mut self, state: &mut State) -> bool {
        let last = state
            .store
            .history(CLUSTER_ROLES)
            .map_or(0, crate::store::History::last_version);
        if last == self.seen_version {
            return false;
        }
        self.seen_version = last;
        let roles: Vec<Value> = state
            .store
            .all(CLUSTER_ROLES)
            .map(|object| object.value())
            .collect();
        let outdated: Vec<(String, Vec<Value>)> = roles
            .iter()
            .filter_map(|role| aggregate_rules(role, &roles))
            .collect();
        let changed = !outdated.is_empty();
        for (name, rules) in outdated {
            set_rules(state, &name, &rules);
        }
        changed
    }
}

/// Returns the name and the expected rules of an aggregated role, or `None` if it is up to date.
fn aggregate_rules(role: &Value, roles: &[Value]) -> Option<(String, Vec<Value>)> {
    tree::get(role, &["aggregationRule"]).filter(|rule| !rule.is_null())?;
    let name = tree::text(role, &["metadata", "name"]);
    let mut all: Vec<Value> = Vec::new();
    for selector in tree::list(role, &["aggregationRule", "clusterRoleSelectors"]) {
        let selector = LabelSelector::from_object(Some(selector));
        let selected = roles.iter().filter(|other| {
            tree::text(other, &["metadata", "name"]) != name
                && selector.matches_map(tree::get(other, &["metadata", "labels"]))
        });
        for rule in selected.flat_map(|other| tree::list(other, &["rules"])) {
            if !all.contains(rule) {
                all.push(rule.clone());
            }
        }
    }
    (all != tree::list(role, &["rules"])).then(|| (name.to_owned(), all))
}

fn set_rules(state: &mut State, name: &str, rules: &[Value]) {
    let Some(resource) = state
        .resources
        .preferred("rbac.authorization.k8s.io", "clusterroles")
        .cloned()
    else {
        return;
    };
    let mut context = Context::for_controller(MANAGER);
    context.manager_named = true;
    context.force = true;
    context.applied = true;
    context.patched = true;
    let mut body = json!({
        "apiVersion": resource.api_version(), "kind": &*resource.kind, "metadata": {"name": name},
    });
    if !rules.is_empty() {
        tree::set(&mut body, &["rules"], rules.to_vec());
    }
    let target = Target {
        resource: &resource,
        namespace: "",
        name,
    };
    let result = write::update(
        state,
        &target,
        &mut context,
        false,
        &mut |state, live, context| {
            let applied = apply::apply(state, &resource, live, &body, context)?;
            write::decode(state, &resource, applied, context)
        },
    );
    if let Err(status) = result {
        let now = state.now();
        state.trace.line(now, &format!("{MANAGER}: {name}: {status}"));
    }
}
