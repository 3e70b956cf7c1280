//! Finds name conflicts between the definitions of a group, and sets accepted names and conditions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Condition, INITIAL_NAMES_ACCEPTED, TABLE, set_condition};
use crate::state::State;
use crate::tree;

/// Names that are in use in a group.
#[derive(Debug, Default)]
pub(super) struct NamesInUse {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Returns the accepted names of all definitions of the group.
pub(super) fn names_in_use(state: &State, definition: &Value) -> NamesInUse {
    let group = tree::text(definition, &["spec", "group"]);
    let mut in_use = NamesInUse::default();
    for other in state.store.all(TABLE).map(|object| object.value()) {
        if tree::text(&other, &["spec", "group"]) != group {
            continue;
        }
        let name = |key| tree::text(&other, &["status", "acceptedNames", key]).to_owned();
        in_use.resources.extend([name("plural"), name("singular")]);
        let short = tree::list(&other, &["status", "acceptedNames", "shortNames"]);
        in_use
            .resources
            .extend(short.iter().filter_map(Value::as_str).map(str::to_owned));
        in_use.kinds.extend([name("kind"), name("listKind")]);
    }
    in_use
}

/// Returns the definition with updated accepted names and conditions, or `None` if nothing changes.
pub(super) fn with_accepted_names(definition: &Value, in_use: &NamesInUse, now: &str) -> Option<Value> {
    let requested = tree::get(definition, &["spec", "names"])?;
    if Some(requested) == tree::get(definition, &["status", "acceptedNames"]) {
        return None;
    }
    let mut new = definition.clone();
    let mut conflict: Option<(&str, String)> = None;
    for (key, reason, used) in [
        ("plural", "PluralConflict", &in_use.resources),
        ("singular", "SingularConflict", &in_use.resources),
        ("shortNames", "ShortNamesConflict", &in_use.resources),
        ("kind", "KindConflict", &in_use.kinds),
        ("listKind", "ListKindConflict", &in_use.kinds),
    ] {
        let location = ["status", "acceptedNames", key];
        let detail = if key == "shortNames" {
            short_name_conflicts(requested, definition, used)
        } else {
            name_conflict(
                tree::text(requested, &[key]),
                tree::text(definition, &location),
                used,
            )
        };
        match (detail, requested.get(key)) {
            (Some(detail), _) => conflict = Some((reason, detail)),
            (None, Some(name)) => tree::set(&mut new, &location, name.clone()),
            (None, None) => drop(tree::remove(&mut new, &location)),
        }
    }
    match requested.get("categories") {
        Some(categories) => tree::set(
            &mut new,
            &["status", "acceptedNames", "categories"],
            categories.clone(),
        ),
        None => drop(tree::remove(&mut new, &["status", "acceptedNames", "categories"])),
    }
    set_name_conditions(&mut new, conflict.as_ref(), now);
    (new != *definition).then_some(new)
}

fn set_name_conditions(new: &mut Value, conflict: Option<&(&str, String)>, now: &str) {
    let (status, reason, message) = match conflict {
        Some((reason, detail)) => (false, *reason, detail.as_str()),
        None => (true, "NoConflicts", "no conflicts found"),
    };
    set_condition(
        new,
        Condition {
            kind: "NamesAccepted",
            status,
            reason,
            message,
        },
        now,
    );
    if super::is_condition_true(new, "Established") {
        return;
    }
    let has_condition = tree::list(new, &["status", "conditions"])
        .iter()
        .any(|one| tree::text(one, &["type"]) == "Established");
    if conflict.is_none() {
        set_condition(
            new,
            Condition {
                kind: "Established",
                status: false,
                reason: "Installing",
                message: INITIAL_NAMES_ACCEPTED,
            },
            now,
        );
    } else if !has_condition {
        set_condition(
            new,
            Condition {
                kind: "Established",
                status: false,
                reason: "NotAccepted",
                message: "not all names are accepted",
            },
            now,
        );
    }
}

fn name_conflict(requested: &str, accepted: &str, used: &BTreeSet<String>) -> Option<String> {
    (requested != accepted && used.contains(requested)).then(|| format!("{requested:?} is already in use"))
}

fn short_name_conflicts(requested: &Value, definition: &Value, used: &BTreeSet<String>) -> Option<String> {
    let accepted = tree::list(definition, &["status", "acceptedNames", "shortNames"]);
    let conflicts: Vec<String> = tree::list(requested, &["shortNames"])
        .iter()
        .filter(|name| !accepted.contains(name))
        .filter_map(|name| name_conflict(name.as_str()?, "", used))
        .collect();
    match conflicts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
