//! Deletes objects: immediately, after a grace period, or after their finalizers are removed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Target, current, freeze, persist};
use crate::admission::{self, Attributes, Operation};
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::finalizers::{FOREGROUND, ORPHAN};
use crate::object::Object;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::{strategy, tree};

/// Propagation policy, which determines the deletion of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
    /// Dependents are not deleted.
    Orphan,
}

impl Propagation {
    /// Returns the policy that a finalizer requests, or `None` if it requests none.
    pub(crate) fn from_finalizer(name: &str) -> Option<Self> {
        match name {
            ORPHAN => Some(Self::Orphan),
            FOREGROUND => Some(Self::Foreground),
            _ => None,
        }
    }
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Grace period in seconds; `None` selects the default of the kind.
    pub grace: Option<i64>,
    /// Propagation policy; `None` selects the policy of existing finalizers, or the default of the kind.
    pub propagation: Option<Propagation>,
    /// Precondition: uid of the object.
    pub uid: Option<String>,
    /// Precondition: resourceVersion of the object.
    pub resource_version: Option<String>,
}

/// Result of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// The object was removed. Contains its last state.
    Removed(Arc<Object>),
    /// The object was marked and is removed after its grace period or after its finalizers are removed.
    Marked(Arc<Object>),
    /// The object was already marked, and nothing changed.
    AlreadyMarked(Arc<Object>),
}

impl DeleteOptions {
    /// Parses a `DeleteOptions` body merged with the query parameters.
    pub fn parse(value: &Value) -> Result<Self> {
        let mut errors = FieldErrors::new();
        let orphan = tree::get(value, &["orphanDependents"]).and_then(Value::as_bool);
        let policy = tree::get(value, &["propagationPolicy"]).and_then(Value::as_str);
        if let (Some(_), Some(policy)) = (orphan, policy) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.invalid(&Path::new("propagationPolicy"), policy, detail);
        }
        let propagation = match (policy, orphan) {
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(other), _) => {
                let order = ["Foreground", "Background", "Orphan", "nil"];
                errors.not_supported(&Path::new("propagationPolicy"), other, &order);
                None
            }
            (None, None) => None,
        };
        if !errors.is_empty() {
            let kind = Qualified {
                group: "meta.k8s.io",
                name: "DeleteOptions",
            };
            return Err(Status::invalid(kind, "", &errors));
        }
        let text = |path: &[&str]| tree::get(value, path).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            grace: tree::int(value, &["gracePeriodSeconds"]),
            propagation,
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
        })
    }
}

/// Deletes the object of `target`, or marks it for deletion.
pub fn delete(
    state: &mut State,
    target: &Target<'_>,
    options: &DeleteOptions,
    context: &mut Context,
) -> Result<Deleted> {
    admission::attempt(state, context, &mut |state, context| {
        delete_once(state, target, options, context)
    })
}

fn delete_once(
    state: &mut State,
    target: &Target<'_>,
    options: &DeleteOptions,
    context: &mut Context,
) -> Result<Deleted> {
    let Some((live, old)) = current(state, target) else {
        return Err(target.not_found());
    };
    check_preconditions(target, &live, options)?;
    let attributes = Attributes {
        target,
        operation: Operation::Delete,
        old: Some(&old),
    };
    admission::validate_delete(state, &attributes, context)?;
    if let Some(deleted) = strategy::special_delete(state, target, &live, &old, context)? {
        return Ok(deleted);
    }
    let mut new = old.clone();
    let step = begin_deletion(state, target, &mut new, options);
    if step == Step::Pending {
        return Ok(Deleted::AlreadyMarked(live));
    }
    set_propagation_finalizers(target, &mut new, options.propagation);
    let has_finalizers = !tree::list(&new, &["metadata", "finalizers"]).is_empty();
    match step {
        Step::Now if has_finalizers => mark_deleted(state, &mut new),
        Step::Now => return Ok(Deleted::Removed(remove(state, target, &live, context))),
        Step::Graceful(_) | Step::Pending => {}
    }
    if context.dry_run {
        let shown = freeze(target.resource, &new);
        return Ok(if has_finalizers || matches!(step, Step::Graceful(1..)) {
            Deleted::Marked(shown)
        } else {
            Deleted::Removed(shown)
        });
    }
    let stored = if new == old {
        live
    } else {
        persist(state, target.resource, new)
    };
    if has_finalizers || matches!(step, Step::Graceful(1..)) {
        return Ok(Deleted::Marked(stored));
    }
    Ok(Deleted::Removed(remove(state, target, &stored, context)))
}

/// Removes the object regardless of its finalizers and grace period. Used by the controllers of the cluster.
pub fn delete_now(state: &mut State, target: &Target<'_>) -> Option<Arc<Object>> {
    let live = Arc::clone(state.store.get(&target.resource.table, &target.key())?);
    strategy::after_delete(state, target.resource, &live);
    state.store.remove(&target.resource.table, &target.key())
}

fn check_preconditions(target: &Target<'_>, live: &Object, options: &DeleteOptions) -> Result<()> {
    let (kind, meta) = (target.resource.qualified_kind(), live.meta());
    if target
        .resource
        .is("apiextensions.k8s.io", "customresourcedefinitions")
    {
        return check_definition_preconditions(target, live, options);
    }
    if let Some(uid) = options.uid.as_deref().filter(|uid| **uid != *meta.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            meta.uid
        );
        return Err(Status::conflict(kind, target.name, &why));
    }
    let version = meta.version.to_string();
    if let Some(wanted) = options
        .resource_version
        .as_deref()
        .filter(|wanted| **wanted != version)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::conflict(kind, target.name, &why));
    }
    Ok(())
}

/// Checks the preconditions for a `CustomResourceDefinition`. The API server deletes definitions in separate
/// code, with different messages.
fn check_definition_preconditions(target: &Target<'_>, live: &Object, options: &DeleteOptions) -> Result<()> {
    let meta = live.meta();
    let fail = |what: &str, wanted: &str, found: &str| {
        let why =
            format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
        Err(Status::conflict(target.resource.qualified(), target.name, &why))
    };
    let version = meta.version.to_string();
    match (options.uid.as_deref(), options.resource_version.as_deref()) {
        (Some(uid), _) if *uid != *meta.uid => fail("UID", uid, &meta.uid),
        (_, Some(wanted)) if wanted != version => fail("ResourceVersion", wanted, &version),
        _ => Ok(()),
    }
}

/// Next step of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// There is no grace period: the object is removed unless it has finalizers.
    Now,
    /// The object is marked with a grace period in seconds.
    Graceful(i64),
    /// The object was already marked, and nothing changes.
    Pending,
}

fn begin_deletion(state: &State, target: &Target<'_>, new: &mut Value, options: &DeleteOptions) -> Step {
    let requested = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let Some(grace) = strategy::grace_period(target.resource, new, requested) else {
        return Step::Now;
    };
    if let Some(at) = tree::get(new, &["metadata", "deletionTimestamp"]).and_then(Value::as_str) {
        let left = tree::int(new, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        if left == 0 {
            return Step::Now;
        }
        let at = crate::clock::Instant::parse(at).unwrap_or_else(|| state.now());
        return requested
            .filter(|requested| *requested < left)
            .map_or(Step::Pending, |requested| {
                shorten_grace_period(state, new, at.plus_seconds(-left), requested)
            });
    }
    let end = state.now().plus_seconds(grace);
    tree::set(new, &["metadata", "deletionTimestamp"], end.rfc3339());
    tree::set(new, &["metadata", "deletionGracePeriodSeconds"], grace);
    bump_generation(new);
    Step::Graceful(grace)
}

/// Shortens the grace period of a deletion that began at `began`. A second deletion cannot extend it.
fn shorten_grace_period(
    state: &State,
    new: &mut Value,
    began: crate::clock::Instant,
    requested: i64,
) -> Step {
    let (mut end, mut grace) = (began.plus_seconds(requested), requested);
    if end < state.now() {
        end = state.now();
        grace = grace.min(1);
    }
    tree::set(new, &["metadata", "deletionTimestamp"], end.rfc3339());
    tree::set(new, &["metadata", "deletionGracePeriodSeconds"], grace);
    Step::Graceful(grace)
}

fn mark_deleted(state: &State, new: &mut Value) {
    let now = state.now();
    let marked = tree::get(new, &["metadata", "deletionTimestamp"])
        .and_then(Value::as_str)
        .and_then(crate::clock::Instant::parse);
    if marked.is_none() {
        bump_generation(new);
    }
    if marked.is_none_or(|at| at > now) {
        tree::set(new, &["metadata", "deletionTimestamp"], now.rfc3339());
    }
    tree::set(new, &["metadata", "deletionGracePeriodSeconds"], 0);
}

fn bump_generation(new: &mut Value) {
    if let Some(generation) = tree::int(new, &["metadata", "generation"]).filter(|generation| *generation > 0)
    {
        tree::set(new, &["metadata", "generation"], generation + 1);
    }
}

fn set_propagation_finalizers(target: &Target<'_>, new: &mut Value, requested: Option<Propagation>) {
    if target.resource.traits.uncollected {
        return;
    }
    let have: Vec<String> = tree::list(new, &["metadata", "finalizers"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let existing = have.iter().find_map(|one| Propagation::from_finalizer(one));
    let default = if target.resource.traits.orphans {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    let policy = requested.or(existing).unwrap_or(default);
    let mut want: Vec<String> = have
        .iter()
        .filter(|one| Propagation::from_finalizer(one).is_none())
        .cloned()
        .collect();
    match policy {
        Propagation::Orphan => want.push(ORPHAN.into()),
        Propagation::Foreground => want.push(FOREGROUND.into()),
        Propagation::Background => {}
    }
    let same = want.len() == have.len() && want.iter().all(|one| have.contains(one));
    match (same, want.is_empty()) {
        (true, _) => {}
        (false, true) => drop(tree::remove(new, &["metadata", "finalizers"])),
        (false, false) => tree::set(new, &["metadata", "finalizers"], json!(want)),
    }
}

fn remove(state: &mut State, target: &Target<'_>, live: &Arc<Object>, context: &Context) -> Arc<Object> {
    if context.dry_run {
        return Arc::clone(live);
    }
    strategy::after_delete(state, target.resource, live);
    state
        .store
        .remove(&target.resource.table, &target.key())
        .unwrap_or_else(|| Arc::clone(live))
}
