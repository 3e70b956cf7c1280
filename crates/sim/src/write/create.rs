//! Creates objects.

use std::sync::Arc;

use serde_json::Value;

use super::{Target, check_namespace, check_size, freeze, persist, warn};
use crate::admission::{self, Attributes, Operation};
use crate::context::Context;
use crate::object::Object;
use crate::resource::Shape;
use crate::state::State;
use crate::status::{Result, Status};
use crate::{apply, defaults, strategy, tree, validation};

/// Maximum length of a generated name including its suffix.
const MAX_GENERATED_NAME_LEN: usize = 63;
const SUFFIX_LEN: usize = 5;
/// Number of attempts to generate an unused name.
const MAX_ATTEMPTS: usize = 8;

/// Admits, validates and stores a new decoded object.
pub fn create(
    state: &mut State,
    target: &Target<'_>,
    value: Value,
    context: &mut Context,
) -> Result<Arc<Object>> {
    if !context.internal {
        return create_now(state, target, value, context);
    }
    admission::attempt(state, context, &mut |state, context| {
        create_now(state, target, value.clone(), context)
    })
}

pub(super) fn create_now(
    state: &mut State,
    target: &Target<'_>,
    mut value: Value,
    context: &mut Context,
) -> Result<Arc<Object>> {
    check_namespace(&mut value, target)?;
    defaults::apply(state, target.resource, &mut value)?;
    fill_system_fields(state, target, &mut value);
    if context.subresource.is_empty() {
        value = apply::track(state, target.resource, None, value, context);
    }
    let attributes = Attributes {
        target,
        operation: Operation::Create,
        old: None,
    };
    reject_if_definition_is_terminating(target, &value)?;
    admission::mutate(state, &attributes, &mut value, context)?;
    strategy::prepare_create(state, target.resource, &mut value, context)?;
    validate(target, &value, context)?;
    warn(target, &value, None, context);
    admission::validate(state, &attributes, &value, context)?;
    store(state, target, value, context)
}

/// Rejects the object if the definition of its kind is being deleted.
fn reject_if_definition_is_terminating(target: &Target<'_>, value: &Value) -> Result<()> {
    match &target.resource.shape {
        Shape::Custom(custom) if custom.terminating => {
            let why = "create not allowed while custom resource definition is terminating";
            let name = tree::text(value, &["metadata", "name"]);
            Err(Status::forbidden(target.resource.qualified(), name, why))
        }
        _ => Ok(()),
    }
}

fn fill_system_fields(state: &mut State, target: &Target<'_>, value: &mut Value) {
    let generate = tree::text(value, &["metadata", "generateName"]).to_owned();
    if tree::text(value, &["metadata", "name"]).is_empty() && !generate.is_empty() {
        let name = generate_name(state, target, &generate);
        tree::set(value, &["metadata", "name"], name);
    }
    let (now, uid) = (state.now().rfc3339(), state.random.uid());
    tree::set(value, &["metadata", "creationTimestamp"], now);
    tree::set(value, &["metadata", "uid"], uid);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ] {
        tree::remove(value, &["metadata", field]);
    }
}

fn generate_name(state: &mut State, target: &Target<'_>, base: &str) -> String {
    let base: String = base.chars().take(MAX_GENERATED_NAME_LEN - SUFFIX_LEN).collect();
    let mut name = String::new();
    for _ in 0..MAX_ATTEMPTS {
        name = format!("{base}{}", state.random.suffix(SUFFIX_LEN));
        let key = crate::object::key(target.namespace, &name);
        if state.store.get(&target.resource.table, &key).is_none() {
            break;
        }
    }
    name
}

fn validate(target: &Target<'_>, value: &Value, context: &mut Context) -> Result<()> {
    let name = tree::text(value, &["metadata", "name"]);
    let errors = validation::create(target.resource, value, context);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(target.resource.qualified_kind(), name, &errors))
    }
}

fn store(state: &mut State, target: &Target<'_>, value: Value, context: &mut Context) -> Result<Arc<Object>> {
    let name = tree::text(&value, &["metadata", "name"]).to_owned();
    if !tree::text(&value, &["metadata", "resourceVersion"]).is_empty() {
        return Err(Status::unknown(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let key = crate::object::key(target.namespace, &name);
    if state.store.get(&target.resource.table, &key).is_some() {
        let generated = !tree::text(&value, &["metadata", "generateName"]).is_empty();
        let what = target.resource.qualified();
        return Err(if generated {
            Status::generate_name_conflict(what, &name)
        } else {
            Status::already_exists(what, &name)
        });
    }
    if context.dry_run {
        return Ok(freeze(target.resource, &value));
    }
    check_size(target.resource, &value)?;
    let stored = persist(state, target.resource, value);
    strategy::after_create(state, target.resource, &stored);
    Ok(stored)
}
