//! Updates objects.

use std::sync::Arc;

use serde_json::Value;

use super::{Target, check_namespace, check_size, current, freeze, persist, warn};
use crate::admission::{self, Attributes, Operation};
use crate::context::Context;
use crate::object::Object;
use crate::resource::Shape;
use crate::state::State;
use crate::status::{Result, Status};
use crate::{apply, defaults, strategy, tree, validation};

/// Result of an update.
#[derive(Debug)]
pub struct Updated {
    /// Stored version of the object.
    pub object: Arc<Object>,
    /// Whether the object was created.
    pub created: bool,
}

/// Function that returns the new decoded object for the stored one. The stored object is `None` if it does
/// not exist and may be created.
pub type Change<'a> = dyn FnMut(&mut State, Option<&Value>, &mut Context) -> Result<Value> + 'a;

/// Replaces the object of `target` with the result of `change`.
pub fn update(
    state: &mut State,
    target: &Target<'_>,
    context: &mut Context,
    may_create: bool,
    change: &mut Change<'_>,
) -> Result<Updated> {
    admission::attempt(state, context, &mut |state, context| {
        update_once(state, target, context, may_create, change)
    })
}

fn update_once(
    state: &mut State,
    target: &Target<'_>,
    context: &mut Context,
    may_create: bool,
    change: &mut Change<'_>,
) -> Result<Updated> {
    let Some((live, old)) = current(state, target) else {
        if !may_create || !context.subresource.is_empty() {
            return Err(target.not_found());
        }
        let mut value = change(state, None, context)?;
        check_name(&value, target, context)?;
        let uid = tree::text(&value, &["metadata", "uid"]);
        if !uid.is_empty() {
            return Err(if context.applied {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                Status::conflict(target.resource.qualified(), target.name, &why)
            } else {
                uid_conflict(target, uid, "")
            });
        }
        if context.applied {
            tree::remove(&mut value, &["metadata", "resourceVersion"]);
        }
        let object = super::create::create_now(state, target, value, context)?;
        return Ok(Updated {
            object,
            created: true,
        });
    };
    let mut new = change(state, Some(&old), context)?;
    check_name(&new, target, context)?;
    check_namespace(&mut new, target)?;
    defaults::apply_update(state, target.resource, &mut new, &old)?;
    check_preconditions(target, &mut new, &old, context)?;
    new = apply::track(state, target.resource, Some(&old), new, context);
    let attributes = Attributes {
        target,
        operation: Operation::Update,
        old: Some(&old),
    };
    admission::mutate(state, &attributes, &mut new, context)?;
    prepare(state, target, &mut new, &old, context)?;
    validate(target, &new, &old, context)?;
    if context.subresource != "status" {
        warn(target, &new, Some(&old), context);
    }
    admission::validate(state, &attributes, &new, context)?;
    let object = store(state, target, &live, &old, new, context)?;
    Ok(Updated {
        object,
        created: false,
    })
}

fn check_name(value: &Value, target: &Target<'_>, context: &Context) -> Result<()> {
    let name = tree::text(value, &["metadata", "name"]);
    if name.is_empty() {
        let text = "name must be provided";
        return Err(Status::bad_request(if context.applied {
            format!(
                "the name of the object ({} based on URL) was undeterminable: {text}",
                target.name
            )
        } else {
            text.into()
        }));
    }
    if name == target.name {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        target.name
    )))
}

fn uid_conflict(target: &Target<'_>, wanted: &str, found: &str) -> Status {
    let key = storage_key(target);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Status::conflict(target.resource.qualified(), target.name, &why)
}

/// Returns the key of the object in the etcd of the API server, which some errors contain.
fn storage_key(target: &Target<'_>) -> String {
    let resource = target.resource;
    let directory = match (&*resource.group, &*resource.plural) {
        (_, _) if matches!(resource.shape, Shape::Custom(_)) => {
            format!("{}/{}", resource.group, resource.plural)
        }
        ("apiextensions.k8s.io" | "apiregistration.k8s.io", plural) => format!("{}/{plural}", resource.group),
        ("", "services") => "services/specs".into(),
        ("", "endpoints") => "services/endpoints".into(),
        ("", "nodes") => "minions".into(),
        ("networking.k8s.io", "ingresses") => "ingress".into(),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{directory}/{}", target.key())
}

fn check_preconditions(target: &Target<'_>, new: &mut Value, old: &Value, context: &Context) -> Result<()> {
    let (wanted, found) = (
        tree::text(new, &["metadata", "uid"]),
        tree::text(old, &["metadata", "uid"]),
    );
    if !context.patched && !wanted.is_empty() && wanted != found {
        return Err(uid_conflict(target, wanted, found));
    }
    let version = tree::text(new, &["metadata", "resourceVersion"]);
    if version.is_empty() || version == "0" {
        return check_unconditional_update(target, new, old);
    }
    if version == tree::text(old, &["metadata", "resourceVersion"]) {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        return Err(invalid_version_error(version, context));
    }
    Err(Status::modified(target.resource.qualified(), target.name))
}

fn invalid_version_error(version: &str, context: &Context) -> Status {
    let detail = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
    if context.patched {
        return Status::unknown(detail);
    }
    let mut errors = crate::field::FieldErrors::new();
    errors.invalid(&crate::field::Path::new("resourceVersion"), version, detail);
    Status::unknown(errors.aggregate())
}

fn check_unconditional_update(target: &Target<'_>, new: &mut Value, old: &Value) -> Result<()> {
    if target.resource.traits.versioned_updates {
        let mut errors = crate::field::FieldErrors::new();
        let path = crate::field::Path::new("metadata").child("resourceVersion");
        errors.invalid(&path, 0, "must be specified for an update");
        return Err(Status::invalid(target.resource.qualified(), target.name, &errors));
    }
    tree::copy(old, new, &["metadata", "resourceVersion"]);
    Ok(())
}

/// Restores the fields that an update cannot change.
fn prepare(
    state: &mut State,
    target: &Target<'_>,
    new: &mut Value,
    old: &Value,
    context: &mut Context,
) -> Result<()> {
    tree::copy(old, new, &["metadata", "generation"]);
    strategy::prepare_update(state, target.resource, new, old, context)?;
    if tree::text(new, &["metadata", "uid"]).is_empty() {
        tree::copy(old, new, &["metadata", "uid"]);
    }
    tree::copy(old, new, &["metadata", "creationTimestamp"]);
    tree::remove(new, &["metadata", "selfLink"]);
    if tree::get(old, &["metadata", "deletionTimestamp"]).is_some() {
        tree::copy(old, new, &["metadata", "deletionTimestamp"]);
    }
    if tree::get(new, &["metadata", "deletionGracePeriodSeconds"]).is_none() {
        tree::copy(old, new, &["metadata", "deletionGracePeriodSeconds"]);
    }
    Ok(())
}

fn validate(target: &Target<'_>, new: &Value, old: &Value, context: &mut Context) -> Result<()> {
    let errors = validation::update(target.resource, new, old, context);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(
            target.resource.qualified_kind(),
            target.name,
            &errors,
        ))
    }
}

/// Stores the changed object. An update without changes writes nothing. An update that removes the last
/// finalizer of a deleted object removes the object.
fn store(
    state: &mut State,
    target: &Target<'_>,
    live: &Arc<Object>,
    old: &Value,
    new: Value,
    context: &Context,
) -> Result<Arc<Object>> {
    let new = apply::keep_times_if_unchanged(new, old);
    if new == *old {
        return Ok(Arc::clone(live));
    }
    if context.dry_run {
        return Ok(freeze(target.resource, &new));
    }
    if is_deletion_complete(&new) {
        strategy::after_delete(state, target.resource, live);
        let removed = state.store.remove(&target.resource.table, &target.key());
        drop(removed);
        return Ok(freeze(target.resource, &new));
    }
    check_size(target.resource, &new)?;
    let stored = persist(state, target.resource, new);
    strategy::after_update(state, target.resource, live, &stored);
    Ok(stored)
}

/// Returns whether an object is marked for deletion and has neither finalizers nor a grace period.
fn is_deletion_complete(new: &Value) -> bool {
    let deleting = tree::get(new, &["metadata", "deletionTimestamp"]).is_some();
    let grace = tree::int(new, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    let finalizers =
        tree::list(new, &["metadata", "finalizers"]).len() + tree::list(new, &["spec", "finalizers"]).len();
    deleting && grace == 0 && finalizers == 0
}
