//! `CustomResourceDefinition` objects: defaults, accepted names, conditions and validation.

use serde_json::{Value, json};

use super::prune;
use super::schema::{Additional, Node};
use crate::context::Context;
use crate::state::State;
use crate::tree;
use crate::write::{self, Deleted, Target};

mod conversion;
mod defaults;
mod internal;
mod naming;
mod openapi;
mod structural;
mod validate;
mod version;
mod warnings;

pub use validate::validate;
pub(crate) use validate::validate_status;
pub(crate) use warnings::warn;

/// Table of definitions.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
/// Finalizer of a definition, which is removed when its objects are deleted.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Applies the defaults of a definition.
pub fn defaults(value: &mut Value) {
    let kind = tree::text(value, &["spec", "names", "kind"]).to_owned();
    tree::set_default_text(value, &["spec", "names", "singular"], &kind.to_lowercase());
    if !kind.is_empty() {
        tree::set_default_text(value, &["spec", "names", "listKind"], &format!("{kind}List"));
    }
    tree::set_default(value, &["spec", "conversion"], json!({"strategy": "None"}));
    let service = ["spec", "conversion", "webhook", "clientConfig", "service"];
    if tree::get(value, &service).is_some_and(Value::is_object) {
        tree::set_default(value, &[&service[..], &["port"]].concat(), 443);
    }
}

/// Sets the status of a new or changed definition to the stored status, and adds the storage version to the
/// stored versions.
pub fn prepare(value: &mut Value, old: Option<&Value>) {
    match old {
        Some(old) => tree::copy(old, value, &["status"]),
        None => tree::set(
            value,
            &["status"],
            json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null}),
        ),
    }
    let stored = tree::list(value, &["spec", "versions"])
        .iter()
        .find(|version| tree::flag(version, &["storage"]))
        .and_then(|version| version.get("name").cloned());
    let mut all = tree::list(value, &["status", "storedVersions"]).to_vec();
    if let Some(name) = stored.filter(|name| !all.contains(name)) {
        all.push(name);
    }
    if !all.is_empty() {
        tree::set(value, &["status", "storedVersions"], all);
    }
}

/// Returns whether the condition `kind` of a definition is true.
pub(crate) fn is_condition_true(definition: &Value, kind: &str) -> bool {
    tree::list(definition, &["status", "conditions"])
        .iter()
        .any(|condition| {
            tree::text(condition, &["type"]) == kind && tree::text(condition, &["status"]) == "True"
        })
}

/// A condition of a definition.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub kind: &'a str,
    pub status: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Message of the conditions after the names of a definition are accepted for the first time.
const INITIAL_NAMES_ACCEPTED: &str = "the initial names have been accepted";

/// Sets a condition. The transition time changes only with the status.
pub(crate) fn set_condition(definition: &mut Value, condition: Condition<'_>, now: &str) {
    let Condition {
        kind,
        reason,
        message,
        ..
    } = condition;
    let status = if condition.status { "True" } else { "False" };
    let new = json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
    let mut all = tree::list(definition, &["status", "conditions"]).to_vec();
    match all
        .iter_mut()
        .find(|existing| tree::text(existing, &["type"]) == kind)
    {
        Some(existing) => {
            let since = existing.get("lastTransitionTime").cloned();
            let status_unchanged = tree::text(existing, &["status"]) == status;
            *existing = new;
            if let Some(since) = since.filter(|_| status_unchanged) {
                tree::set(existing, &["lastTransitionTime"], since);
            }
        }
        None => all.push(new),
    }
    tree::set(definition, &["status", "conditions"], all);
}

/// Accepts the names of a definition that was written, or reports conflicts. Then does the same for the other
/// definitions of the group, because names may have become free.
pub(crate) fn update_accepted_names(state: &mut State, definition: &Value) {
    let name = tree::text(definition, &["metadata", "name"]).to_owned();
    accept_names(state, &name);
    update_accepted_names_of_others(state, definition);
}

/// Updates the accepted names of the other definitions of the group that have names that are not accepted.
pub(crate) fn update_accepted_names_of_others(state: &mut State, definition: &Value) {
    let (group, own) = (
        tree::text(definition, &["spec", "group"]),
        tree::text(definition, &["metadata", "name"]),
    );
    let unaccepted: Vec<String> = state
        .store
        .all(TABLE)
        .map(|object| object.value())
        .filter(|other| {
            tree::text(other, &["spec", "group"]) == group
                && tree::text(other, &["metadata", "name"]) != own
                && tree::get(other, &["spec", "names"]) != tree::get(other, &["status", "acceptedNames"])
        })
        .map(|other| tree::text(&other, &["metadata", "name"]).to_owned())
        .collect();
    for name in unaccepted {
        accept_names(state, &name);
    }
}

fn accept_names(state: &mut State, name: &str) {
    let Some(live) = state.store.get(TABLE, name).map(|object| object.value()) else {
        return;
    };
    let now = state.now().rfc3339();
    let used_names = naming::names_in_use(state, &live);
    if let Some(renamed) = naming::with_accepted_names(&live, &used_names, &now) {
        write_status(state, name, &renamed);
    }
    let Some(live) = state.store.get(TABLE, name).map(|object| object.value()) else {
        return;
    };
    if is_condition_true(&live, "NamesAccepted") && !is_condition_true(&live, "Established") {
        let mut established = live;
        let condition = Condition {
            kind: "Established",
            status: true,
            reason: "InitialNamesAccepted",
            message: INITIAL_NAMES_ACCEPTED,
        };
        set_condition(&mut established, condition, &now);
        write_status(state, name, &established);
    }
}

/// Writes the status of a definition like the controllers in the API server.
pub(crate) fn write_status(state: &mut State, name: &str, new: &Value) {
    let Some(resource) = state
        .resources
        .preferred(GROUP, "customresourcedefinitions")
        .cloned()
    else {
        return;
    };
    let target = Target {
        resource: &resource,
        namespace: "",
        name,
    };
    let mut context = Context::for_controller("kube-apiserver");
    "status".clone_into(&mut context.subresource);
    // Errors are ignored, because the definition may have been deleted.
    let _ = write::update(
        state,
        &target,
        &mut context,
        false,
        &mut |_, _, _| Ok(new.clone()),
    );
}

/// Marks a definition for deletion. It is removed when all of its objects are deleted.
pub(crate) fn delete(state: &mut State, target: &Target<'_>, old: &Value, context: &Context) -> Deleted {
    let mut new = old.clone();
    let now = state.now().rfc3339();
    tree::set(&mut new, &["metadata", "deletionTimestamp"], now.as_str());
    let mut finalizers = tree::list(&new, &["metadata", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    tree::set(&mut new, &["metadata", "finalizers"], finalizers);
    let detail = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(
        &mut new,
        Condition {
            kind: "Terminating",
            status: true,
            reason: "InstanceDeletionPending",
            message: detail,
        },
        &now,
    );
    if context.dry_run {
        return Deleted::Marked(write::freeze(target.resource, &new));
    }
    let stored = write::persist(state, target.resource, new.clone());
    super::serve(state, &new);
    Deleted::Marked(stored)
}

/// Establishes a definition that was loaded without conditions.
pub(crate) fn establish(definition: &mut Value, now: &str) {
    if !tree::list(definition, &["status", "conditions"]).is_empty() {
        return;
    }
    defaults(definition);
    prepare(definition, None);
    let names = tree::get(definition, &["spec", "names"])
        .cloned()
        .unwrap_or_default();
    tree::set(definition, &["status", "acceptedNames"], names);
    set_condition(
        definition,
        Condition {
            kind: "NamesAccepted",
            status: true,
            reason: "NoConflicts",
            message: "no conflicts found",
        },
        now,
    );
    set_condition(
        definition,
        Condition {
            kind: "Established",
            status: true,
            reason: "InitialNamesAccepted",
            message: INITIAL_NAMES_ACCEPTED,
        },
        now,
    );
}

/// Prunes the defaults in a schema.
pub(crate) fn prune_defaults(node: &mut Node) {
    if let Some(mut default) = node.default.take() {
        prune::prune_part(&mut default, node);
        node.default = Some(default);
    }
    node.properties.values_mut().for_each(prune_defaults);
    if let Some(items) = &mut node.items {
        prune_defaults(items);
    }
    if let Some(Additional::Schema(values)) = &mut node.additional {
        prune_defaults(values);
    }
}
