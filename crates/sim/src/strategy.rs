//! Behavior of writes that differs by kind, such as fields that only the server sets. Corresponds to the
//! strategies of the API server.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::object::Object;
use crate::resource::{Resource, Shape};
use crate::state::State;
use crate::status::Result;
use crate::tree;
use crate::write::{Deleted, Target};

mod namespace;
mod pod;
mod service;

pub use namespace::finalize;
pub use pod::qos_class;

/// Prepares a new object. Called before the object is validated.
pub fn prepare_create(
    state: &mut State,
    resource: &Resource,
    value: &mut Value,
    context: &Context,
) -> Result<()> {
    tree::remove(value, &["metadata", "generation"]);
    if resource.traits.generation {
        tree::set(value, &["metadata", "generation"], 1);
    }
    reset_status(state, resource, value);
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => pod::prepare_create(value),
        ("", "namespaces") => namespace::prepare_create(value),
        ("", "services") => service::allocate(state, value, None, context.dry_run)?,
        ("", "persistentvolumeclaims" | "persistentvolumes") => {
            tree::set(value, &["status", "phase"], "Pending");
        }
        ("apps", "daemonsets") => set_template_generation(value, None),
        ("batch", "jobs") => set_job_selector(value),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crate::crd::prepare(value, None),
        ("certificates.k8s.io", "certificatesigningrequests") => set_requesting_user(value, context),
        _ => {}
    }
    Ok(())
}

/// Prepares a changed object. Called before the object is validated.
pub fn prepare_update(
    state: &mut State,
    resource: &Resource,
    new: &mut Value,
    old: &Value,
    context: &Context,
) -> Result<()> {
    match context.subresource.as_str() {
        "status" => {
            restore_all_but_status(resource, new, old);
            return Ok(());
        }
        "" => {}
        "ephemeralcontainers" | "resize" if resource.is("", "pods") => {
            pod::prepare_subresource(new, old, &context.subresource);
            bump_generation(resource, new, old);
            return Ok(());
        }
        "approval" => {
            fill_condition_times(state, new, old);
            return Ok(());
        }
        _ => {
            bump_generation(resource, new, old);
            return Ok(());
        }
    }
    if has_status(resource) {
        tree::copy(old, new, &["status"]);
    }
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => tree::copy(old, new, &["spec", "finalizers"]),
        ("", "services") => {
            service::keep_allocated(new, old);
            service::allocate(state, new, Some(old), context.dry_run)?;
        }
        ("apps", "daemonsets") => set_template_generation(new, Some(old)),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crate::crd::prepare(new, Some(old)),
        _ => {}
    }
    bump_generation(resource, new, old);
    Ok(())
}

/// Updates the state after a new object has been stored.
pub fn after_create(state: &mut State, resource: &Resource, object: &Arc<Object>) {
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        let definition = object.value();
        crate::crd::serve(state, &definition);
        crate::crd::definition::update_accepted_names(state, &definition);
    }
}

/// Updates the state after a changed object has been stored.
pub fn after_update(state: &mut State, resource: &Resource, old: &Arc<Object>, new: &Arc<Object>) {
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        let definition = new.value();
        crate::crd::serve(state, &definition);
        let named = tree::get(&definition, &["spec", "names"])
            == tree::get(&definition, &["status", "acceptedNames"]);
        if !new.meta().deleting && (!named || old.value().get("spec") != definition.get("spec")) {
            crate::crd::definition::update_accepted_names(state, &definition);
        }
    }
    if resource.is("", "services") {
        service::release_changed(state, &old.value(), &new.value());
    }
}

/// Updates the state when an object is deleted. Called before the object is removed from the store.
pub fn after_delete(state: &mut State, resource: &Resource, object: &Arc<Object>) {
    if resource.is("", "services") {
        service::release(state, &object.value());
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::crd::stop_serving(state, &object.value());
    }
}

/// Deletes an object of a kind with a special deletion. Returns `None` for all other kinds.
pub fn special_delete(
    state: &mut State,
    target: &Target<'_>,
    live: &Arc<Object>,
    old: &Value,
    context: &Context,
) -> Result<Option<Deleted>> {
    if target.resource.is("", "namespaces") {
        return Ok(namespace::delete(state, target, live, old, context));
    }
    if target
        .resource
        .is("apiextensions.k8s.io", "customresourcedefinitions")
        && !live.meta().deleting
    {
        return Ok(Some(crate::crd::definition::delete(state, target, old, context)));
    }
    Ok(None)
}

/// Returns the grace period of an object in seconds, or `None` if its kind has no grace periods. `requested`
/// is the period in the delete options.
#[must_use]
pub fn grace_period(resource: &Resource, value: &Value, requested: Option<i64>) -> Option<i64> {
    if !resource.is("", "pods") {
        return None;
    }
    let phase = tree::text(value, &["status", "phase"]);
    let unscheduled = tree::text(value, &["spec", "nodeName"]).is_empty();
    if unscheduled || matches!(phase, "Failed" | "Succeeded") {
        return Some(0);
    }
    let period = requested
        .or(tree::int(value, &["spec", "terminationGracePeriodSeconds"]))
        .unwrap_or(0);
    Some(if period < 0 { 1 } else { period })
}

/// Returns whether the status is a subresource, so that other writes cannot change it.
fn has_status(resource: &Resource) -> bool {
    resource.subresource("status").is_some()
}

fn reset_status(state: &State, resource: &Resource, value: &mut Value) {
    if !has_status(resource) || resource.is("", "nodes") {
        return;
    }
    tree::remove(value, &["status"]);
    if let Shape::Builtin(Some(id)) = &resource.shape
        && let Some(status) = state.schema.zero(*id).get("status")
    {
        tree::set(value, &["status"], status.clone());
    }
}

/// Restores the fields that a write to the status cannot change. Besides the status, a write can change most
/// of the metadata of builtin kinds, and `managedFields` of custom kinds.
fn restore_all_but_status(resource: &Resource, new: &mut Value, old: &Value) {
    if matches!(resource.shape, Shape::Custom(_)) {
        let (status, managed) = (
            tree::get(new, &["status"]).cloned(),
            tree::get(new, &["metadata", "managedFields"]).cloned(),
        );
        *new = old.clone();
        set_or_remove(new, &["status"], status);
        set_or_remove(new, &["metadata", "managedFields"], managed);
        return;
    }
    let sent = new
        .as_object()
        .map(|map| map.keys().cloned().collect::<Vec<_>>())
        .unwrap_or_default();
    for key in sent
        .iter()
        .filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"))
    {
        tree::copy(old, new, &[key.as_str()]);
    }
    match (&*resource.group, &*resource.plural) {
        ("apps", "deployments") => tree::copy(old, new, &["metadata", "labels"]),
        ("", "pods") => {
            tree::copy(old, new, &["metadata", "ownerReferences"]);
            if tree::text(new, &["status", "qosClass"]).is_empty() {
                tree::copy(old, new, &["status", "qosClass"]);
            }
        }
        _ => {}
    }
}

fn set_or_remove(value: &mut Value, path: &[&str], new: Option<Value>) {
    match new {
        Some(new) => tree::set(value, path, new),
        None => drop(tree::remove(value, path)),
    }
}

/// Increases the generation if the desired state changed. Must be called after the status has been restored.
fn bump_generation(resource: &Resource, new: &mut Value, old: &Value) {
    let changed = match (&*resource.group, &*resource.plural) {
        _ if matches!(resource.shape, Shape::Custom(_)) => differs(
            new,
            old,
            &[
                "metadata",
                if has_status(resource) {
                    "status"
                } else {
                    "metadata"
                },
            ],
        ),
        _ if !resource.traits.generation => return,
        ("apps", "deployments") => {
            new.get("spec") != old.get("spec")
                || tree::get(new, &["metadata", "annotations"])
                    != tree::get(old, &["metadata", "annotations"])
        }
        ("discovery.k8s.io", "endpointslices") => {
            differs(new, old, &["metadata"])
                || tree::get(new, &["metadata", "labels"]) != tree::get(old, &["metadata", "labels"])
        }
        _ => differs(new, old, &["metadata", "status"]),
    };
    if changed {
        let generation = tree::int(old, &["metadata", "generation"]).unwrap_or(0);
        tree::set(new, &["metadata", "generation"], generation + 1);
    }
}

fn differs(new: &Value, old: &Value, except: &[&str]) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return true;
    };
    let is_compared = |key: &str| !except.contains(&key);
    new.iter()
        .filter(|(key, _)| is_compared(key))
        .any(|(key, value)| old.get(key) != Some(value))
        || old
            .keys()
            .filter(|key| is_compared(key))
            .any(|key| !new.contains_key(key))
}

/// Sets the annotation in which a `DaemonSet` counts the changes of its template. Only the server sets it.
fn set_template_generation(new: &mut Value, old: Option<&Value>) {
    let location = [
        "metadata",
        "annotations",
        "deprecated.daemonset.template.generation",
    ];
    let before: i64 = old.map_or(0, |old| tree::text(old, &location).parse().unwrap_or(0));
    let template = ["spec", "template"];
    let changed = old.is_none_or(|old| tree::get(old, &template) != tree::get(new, &template));
    let count = if changed { before + 1 } else { before };
    tree::set(new, &location, count.max(1).to_string());
}

/// Sets the labels of the template of a Job, and a selector for its uid if it has none.
fn set_job_selector(value: &mut Value) {
    if tree::flag(value, &["spec", "manualSelector"]) {
        return;
    }
    let (name, uid) = (
        tree::text(value, &["metadata", "name"]).to_owned(),
        tree::text(value, &["metadata", "uid"]).to_owned(),
    );
    let pairs = [
        ("batch.kubernetes.io/controller-uid", uid.as_str()),
        ("batch.kubernetes.io/job-name", name.as_str()),
        ("controller-uid", uid.as_str()),
        ("job-name", name.as_str()),
    ];
    for (key, text) in pairs {
        tree::set_default(value, &["spec", "template", "metadata", "labels", key], text);
    }
    // The API server applies defaults again when it reads the object. The template has labels then, so they
    // become the labels of the Job.
    if let Some(labels) = tree::get(value, &["spec", "template", "metadata", "labels"]).cloned() {
        tree::set_default(value, &["metadata", "labels"], labels);
    }
    if tree::get(value, &["spec", "selector"]).is_none_or(Value::is_null) {
        tree::set(
            value,
            &["spec", "selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
        );
    }
}

/// Sets the times of new conditions of a `CertificateSigningRequest`.
fn fill_condition_times(state: &State, new: &mut Value, old: &Value) {
    let now = state.now().rfc3339();
    let known = tree::list(old, &["status", "conditions"]);
    for condition in tree::list_mut(new, &["status", "conditions"])
        .into_iter()
        .flatten()
    {
        let same =
            |field: &str, other: &Value| tree::text(condition, &[field]) == tree::text(other, &[field]);
        let before = known.iter().find(|one| same("type", one) && same("status", one));
        let since = before.map_or(now.as_str(), |one| tree::text(one, &["lastTransitionTime"]));
        let since = since.to_owned();
        for (field, time) in [("lastUpdateTime", now.clone()), ("lastTransitionTime", since)] {
            if tree::text(condition, &[field]).is_empty() {
                tree::set(condition, &[field], time);
            }
        }
    }
}

fn set_requesting_user(value: &mut Value, context: &Context) {
    tree::set(value, &["spec", "username"], context.user.name.clone());
    tree::set(value, &["spec", "groups"], json!(context.user.groups));
}
