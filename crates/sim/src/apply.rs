//! Field ownership and server-side apply: maintains `managedFields`; for an apply, merges the configuration
//! or reports the conflicts.

use serde_json::{Value, json};

use crate::context::Context;
use crate::resource::{Resource, Shape, split_api_version};
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

mod check;
mod compare;
mod element;
mod error;
mod fields;
mod last_applied;
mod managed;
mod memo;
mod merge;
mod reconcile;
mod remove;
mod reset;
mod set;
mod types;
mod updater;

use compare::Difference;
use managed::{Entry, Managed, Manager};
use set::Set;
use updater::{Applied, Conflict, Updater};

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Annotation that counts as `0` if a `DaemonSet` does not have it, so that the manager that sets it becomes
/// its owner.
const TEMPLATE_GENERATION: [&str; 3] = [
    "metadata",
    "annotations",
    "deprecated.daemonset.template.generation",
];

/// Name of the manager of fields that existed before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies `patch` to `live`, or to an empty object if there is no live object. Fails if the configuration is
/// invalid or conflicts with other managers.
pub fn apply(
    state: &State,
    resource: &Resource,
    live: Option<&Value>,
    patch: &Value,
    context: &Context,
) -> Result<Value> {
    check_type(resource, patch)?;
    if let Some(text) = check::validation_errors(types::Ref::for_resource(state.schema, resource), patch) {
        let text = format!(
            "failed to create typed patch object ({}): {text}",
            describe_object(patch)
        );
        return Err(Status::unknown(text));
    }
    let mut live = live.cloned().unwrap_or_else(|| empty_object(state, resource));
    let sent = tree::remove(&mut live, &MANAGED_FIELDS);
    let mut owners = Managed::parse(sent.as_ref().map_or(&[], |list| tree::list(list, &[])))
        .map_err(|text| Status::unknown(format!("failed to decode managed fields: {text}")))?;
    let updater = new_updater(state, resource, context);
    let now = state.now().rfc3339();
    if owners.0.is_empty() {
        let empty = empty_object(state, resource);
        let writer = Manager::new(
            BEFORE_FIRST_APPLY,
            false,
            &resource.api_version(),
            &context.subresource,
        );
        assign_changes(&updater, &empty, &live, &mut owners, writer, &now);
    }
    let manager = Manager::new(
        &context.manager,
        true,
        &resource.api_version(),
        &context.subresource,
    );
    let Applied { object, mut owners } =
        apply_or_take_over(&updater, &live, patch, owners, &manager, context)?;
    if let Some(entry) = owners.0.get_mut(&manager) {
        entry.set = entry.set.difference(never_owned()).into();
        if object.is_some() {
            entry.time = Some(now);
        }
    }
    owners.drop_empty();
    let mut object = object.unwrap_or(live);
    if context.manager == "kubectl" {
        last_applied::update_annotation(&mut object, patch);
    }
    Ok(with_managed_fields(object, &owners))
}

/// Records the changes of a create or update in `managedFields`.
#[must_use]
pub fn track(
    state: &State,
    resource: &Resource,
    live: Option<&Value>,
    mut new: Value,
    context: &Context,
) -> Value {
    if context.applied {
        return new;
    }
    let sent = tree::remove(&mut new, &MANAGED_FIELDS);
    let mut owners = owners_before(live, sent.as_ref(), context);
    if owners.0.is_empty() && live.is_some() {
        return new;
    }
    let empty = live.is_none().then(|| empty_object(state, resource));
    let old = live.or(empty.as_ref()).unwrap_or(&Value::Null);
    let updater = new_updater(state, resource, context);
    let version = resource.api_version();
    let writer = Manager::new(&context.manager, false, &version, &context.subresource);
    let now = state.now().rfc3339();
    if resource.is("apps", "daemonsets") {
        let mut with_annotation = new.clone();
        tree::set_default_text(&mut with_annotation, &TEMPLATE_GENERATION, "0");
        assign_changes(&updater, old, &with_annotation, &mut owners, writer, &now);
    } else {
        assign_changes(&updater, old, &new, &mut owners, writer, &now);
    }
    with_managed_fields(new, &owners)
}

/// Returns the new object, with the old `managedFields` if only the times in them differ from the old object.
#[must_use]
pub fn keep_times_if_unchanged(mut new: Value, old: &Value) -> Value {
    let (Some(now), Some(before)) = (tree::get(&new, &MANAGED_FIELDS), tree::get(old, &MANAGED_FIELDS))
    else {
        return new;
    };
    if now == before || !equal_except_times(tree::list(now, &[]), tree::list(before, &[])) {
        return new;
    }
    let kept = before.clone();
    let sent = std::mem::take(tree::get_mut(&mut new, &MANAGED_FIELDS).unwrap_or(&mut Value::Null));
    tree::set(&mut new, &MANAGED_FIELDS, kept);
    if new != *old {
        tree::set(&mut new, &MANAGED_FIELDS, sent);
    }
    new
}

/// Returns whether two `managedFields` lists are equal, ignoring times.
fn equal_except_times(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            [
                "manager",
                "operation",
                "apiVersion",
                "fieldsType",
                "subresource",
                "fieldsV1",
            ]
            .iter()
            .all(|key| one.get(key) == other.get(key))
        })
}

/// Converts an object sent by a client to the stored form, in which each field set is one string.
pub fn pack(sent: &mut Value) {
    if let Some(list) = tree::list_mut(sent, &MANAGED_FIELDS) {
        managed::pack(list);
    }
}

/// Converts a stored object to the form sent to clients.
#[must_use]
pub fn unpacked(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(list) = tree::list_mut(&mut object, &MANAGED_FIELDS) {
        managed::unpack(list);
    }
    object
}

/// Returns whether an object sent by a client resets field ownership.
#[must_use]
pub fn resets_ownership(sent: &Value) -> bool {
    managed::is_reset(tree::get(sent, &MANAGED_FIELDS))
}

/// Returns the managers before a write: those in the object sent by the client if it contains a valid list,
/// otherwise those of the live object.
fn owners_before(live: Option<&Value>, sent: Option<&Value>, context: &Context) -> Managed {
    let live_owners = || {
        let list = live.map_or(&[][..], |live| tree::list(live, &MANAGED_FIELDS));
        Managed::parse(list).unwrap_or_default()
    };
    if !context.subresource.is_empty() {
        return live_owners();
    }
    if context.resets_owners || managed::is_reset(sent) {
        return Managed::default();
    }
    match Managed::parse(sent.map_or(&[], |list| tree::list(list, &[]))) {
        Ok(owners) if !owners.0.is_empty() => owners,
        _ => live_owners(),
    }
}

/// Makes `writer` the owner of the fields that differ between two versions of an object.
fn assign_changes(
    updater: &Updater<'_>,
    old: &Value,
    new: &Value,
    owners: &mut Managed,
    writer: Manager,
    now: &str,
) {
    let Difference {
        changed: mut written,
        added,
        removed,
    } = updater.update(old, new, owners, &writer);
    written.extend(added);
    if let Some(entry) = owners.0.get_mut(&writer) {
        if entry.set.intersects(&removed) {
            entry.set = entry.set.difference(&removed).into();
        }
        if entry.set.intersects(never_owned()) {
            entry.set = entry.set.difference(&written).into();
        }
    }
    let written = written.without(never_owned());
    if !written.is_empty() {
        let set = match owners.0.get(&writer) {
            Some(before) if before.set.contains(&written) => before.set.clone(),
            Some(before) => before.set.union(&written).into(),
            None => written.into(),
        };
        // The real server records scaling without a time.
        let entry = Entry {
            api_version: updater.resource.api_version(),
            set,
            time: (writer.subresource != "scale").then(|| now.to_owned()),
        };
        owners.0.insert(writer, entry);
    }
    owners.drop_empty();
    owners.cap_update_entries();
}

/// Applies a configuration. `kubectl` takes over conflicting fields that it set by an earlier client-side
/// apply.
fn apply_or_take_over(
    updater: &Updater<'_>,
    live: &Value,
    patch: &Value,
    owners: Managed,
    manager: &Manager,
    context: &Context,
) -> Result<Applied> {
    let result = updater.apply(live, patch, owners.clone(), manager, context.force);
    let conflicts = match result {
        Ok(applied) => return Ok(applied),
        Err(conflicts) => conflicts,
    };
    let client_side = (context.manager == "kubectl")
        .then(|| last_applied::unchanged_since(updater.state, updater.resource, live))
        .flatten();
    let Some(client_side) = client_side else {
        return Err(conflict_status(&conflicts));
    };
    let remaining: Vec<Conflict> = conflicts
        .into_iter()
        .filter(|conflict| !client_side.has_path(&conflict.path))
        .collect();
    if !remaining.is_empty() {
        return Err(conflict_status(&remaining));
    }
    updater
        .apply(live, patch, owners, manager, true)
        .map_err(|conflicts| conflict_status(&conflicts))
}

fn conflict_status(conflicts: &[Conflict]) -> Status {
    let message = if let [one] = conflicts {
        let (owner, field) = (&one.manager, one.field());
        format!("Apply failed with 1 conflict: conflict with {owner}: {field}")
    } else {
        let mut lines = Vec::new();
        let mut last = None;
        for conflict in conflicts {
            if last != Some(&conflict.manager) {
                lines.push(format!("conflicts with {}:", conflict.manager));
                last = Some(&conflict.manager);
            }
            lines.push(format!("- {}", conflict.field()));
        }
        let (count, shown) = (conflicts.len(), lines.join("\n"));
        format!("Apply failed with {count} conflicts: {shown}")
    };
    let status = Status::new(409, "Conflict", message);
    conflicts.iter().fold(status, |status, conflict| {
        let text = format!("conflict with {}", conflict.manager);
        status.cause("FieldManagerConflict", &text, &conflict.field())
    })
}

fn new_updater<'a>(state: &'a State, resource: &'a Resource, context: &Context) -> Updater<'a> {
    Updater {
        state,
        resource,
        reset: reset::reset_fields(resource, &context.subresource),
    }
}

/// Returns the object that a create is compared with: the zero value of a Go struct, or an object that
/// contains only its type.
fn empty_object(state: &State, resource: &Resource) -> Value {
    let mut value = match resource.shape {
        Shape::Builtin(Some(id)) => state.schema.zero(id).clone(),
        _ => json!({}),
    };
    tree::set(&mut value, &["apiVersion"], resource.api_version());
    tree::set(&mut value, &["kind"], &*resource.kind);
    value
}

/// Returns the fields that no manager owns: the type and the metadata that identify an object or are set
/// by the server.
fn never_owned() -> &'static Set {
    static SET: std::sync::OnceLock<Set> = std::sync::OnceLock::new();
    SET.get_or_init(|| {
        Set::from_field_paths(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

fn with_managed_fields(mut object: Value, owners: &Managed) -> Value {
    match owners.to_list() {
        Some(list) => tree::set(&mut object, &MANAGED_FIELDS, list),
        None => drop(tree::remove(&mut object, &MANAGED_FIELDS)),
    }
    object
}

/// Formats the type as `apps/v1, Kind=Deployment`. The slash is present even if the group is empty.
fn type_name(value: &Value) -> String {
    let (group, version) = split_api_version(tree::text(value, &["apiVersion"]));
    format!("{group}/{version}, Kind={}", tree::text(value, &["kind"]))
}

/// Formats name and type as `namespace/name; apps/v1, Kind=Deployment`.
fn describe_object(value: &Value) -> String {
    let (namespace, name) = (
        tree::text(value, &["metadata", "namespace"]),
        tree::text(value, &["metadata", "name"]),
    );
    format!("{namespace}/{name}; {}", type_name(value))
}

/// Rejects a configuration of a different type or with managed fields.
fn check_type(resource: &Resource, patch: &Value) -> Result<()> {
    let (version, kind) = (tree::text(patch, &["apiVersion"]), tree::text(patch, &["kind"]));
    if version != resource.api_version() || kind != &*resource.kind {
        return Err(Status::bad_request(format!(
            "invalid object type: {}",
            type_name(patch)
        )));
    }
    if tree::get(patch, &MANAGED_FIELDS).is_some_and(|list| !list.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
