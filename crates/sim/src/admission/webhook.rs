//! Admission webhooks: let the configured webhooks mutate, allow or reject a write. [`call`] sends the review
//! to a handler in this process or to the transport.
//!
//! ```text
//! configurations ──Hooks──▶ [Hook] ──match──▶ review ──call──▶ reply ──parse──▶ patch | allow | reject
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::Attributes;
use crate::context::Context;
use crate::resource::Resource;
use crate::state::State;
use crate::status::{Result, Status};
use crate::{convert, defaults, patch, tree, write};

mod call;
mod condition;
mod configuration;
mod error;
#[cfg(feature = "serve")]
mod https;
mod pending;
mod review;

pub use call::{Handler, Handlers};
pub(crate) use condition::compile_error as condition_compile_error;
use configuration::Hook;
pub use configuration::Hooks;
#[cfg(feature = "serve")]
pub use https::{HttpsTransport, Resolver};
pub use pending::PendingWebhookCalls;
pub(crate) use pending::attempt;
use review::ReviewResult;

/// A write under admission, as shown to webhooks.
struct ReviewedWrite<'a> {
    attributes: &'a Attributes<'a>,
    /// The current object; `None` for a deletion.
    object: Option<&'a Value>,
}

/// State of the mutating rounds: a webhook with `reinvocationPolicy: IfNeeded` is called again if a later
/// plugin changed the object.
#[derive(Default)]
struct Rounds {
    /// Whether this is the second round.
    is_second: bool,
    /// Ids of the webhooks to call again if the object changes after their call.
    reinvocable: BTreeSet<String>,
    /// Ids of the webhooks to call again in the second round.
    reinvoke: BTreeSet<String>,
    changed: bool,
}

impl Rounds {
    fn record_change(&mut self) {
        self.changed = true;
        self.reinvoke.append(&mut self.reinvocable);
    }
}

/// Whether no webhook applies to this write.
fn is_exempt(attributes: &Attributes<'_>, context: &Context) -> bool {
    let resource = attributes.target.resource;
    // Webhook configurations are exempt from webhooks. Webhooks for scale, eviction and other virtual
    // subresources are not implemented.
    &*resource.group == "admissionregistration.k8s.io"
        || !matches!(context.subresource.as_str(), "" | "status")
}

/// Calls the mutating webhooks. The built-in `plugins` run again if a webhook changed the object.
pub(super) fn mutate(
    state: &mut State,
    attributes: &Attributes<'_>,
    mut value: Option<&mut Value>,
    context: &mut Context,
    plugins: &dyn Fn(&mut State, &mut Value) -> Result<()>,
) -> Result<()> {
    state.webhooks.refresh(&state.store);
    if state.webhooks.mutating.is_empty() || is_exempt(attributes, context) {
        return Ok(());
    }
    let mut rounds = Rounds::default();
    call_mutating(state, attributes, value.as_deref_mut(), context, &mut rounds)?;
    let Some(value) = value.filter(|_| rounds.changed) else {
        return Ok(());
    };
    let before = value.clone();
    plugins(state, value)?;
    if *value != before {
        rounds.record_change();
    }
    rounds.is_second = true;
    call_mutating(state, attributes, Some(value), context, &mut rounds)
}

fn call_mutating(
    state: &mut State,
    attributes: &Attributes<'_>,
    mut value: Option<&mut Value>,
    context: &mut Context,
    rounds: &mut Rounds,
) -> Result<()> {
    for hook in Arc::clone(&state.webhooks.mutating).iter() {
        let reviewed = ReviewedWrite {
            attributes,
            object: value.as_deref(),
        };
        let Some(shown_as) = hook.matching_resource(state, &reviewed, context)? else {
            continue;
        };
        if rounds.is_second && !rounds.reinvoke.contains(&hook.id) {
            continue;
        }
        let result = call_hook(state, hook, &reviewed, &shown_as, context)?;
        if let Some(patch) = result.patch {
            let Some(value) = value.as_deref_mut() else {
                let reason = format!(
                    "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                    hook.name
                );
                return Err(Status::internal(&reason));
            };
            let new = apply_patch(state, attributes, &shown_as, value, &patch, context)?;
            if new != *value {
                *value = new;
                rounds.record_change();
            }
        }
        if hook.reinvoked {
            rounds.reinvocable.insert(hook.id.clone());
        }
    }
    Ok(())
}

/// Applies a webhook's patch, then decodes and defaults the result like an object sent by a client.
fn apply_patch(
    state: &State,
    attributes: &Attributes<'_>,
    shown_as: &Arc<Resource>,
    value: &Value,
    operations: &Value,
    context: &Context,
) -> Result<Value> {
    let resource = attributes.target.resource;
    let mut shown = review::convert_between(resource, shown_as, value);
    let new = attributes.operation == super::Operation::Create;
    if new {
        review::remove_identity(&mut shown);
    }
    let Ok(changed) = patch::apply_json_patch(&shown, operations) else {
        return Err(Status::internal(&review::patch_error(&shown, operations)));
    };
    // Unknown fields produce no warning: the client did not send them.
    let mut silent = Context {
        field_validation: crate::context::FieldValidation::Ignore,
        ..context.clone()
    };
    let decoded = write::decode(state, shown_as, changed, &mut silent);
    let mut changed = decoded.map_err(|status| {
        let (_, reason) = status
            .message()
            .split_once(" cannot be handled as a ")
            .unwrap_or(("", status.message()));
        Status::internal(reason.split_once(": ").map_or(reason, |(_, reason)| reason))
    })?;
    defaults::apply(state, shown_as, &mut changed)?;
    if !Arc::ptr_eq(resource, shown_as) {
        changed = convert::from_stored(resource, convert::to_stored(shown_as, changed));
    }
    if new {
        tree::copy(value, &mut changed, &["metadata", "uid"]);
        tree::copy(value, &mut changed, &["metadata", "creationTimestamp"]);
    }
    Ok(changed)
}

/// Calls all matching validating webhooks and returns the first rejection in order.
pub(super) fn validate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: Option<&Value>,
    context: &mut Context,
) -> Result<()> {
    state.webhooks.refresh(&state.store);
    if state.webhooks.validating.is_empty() || is_exempt(attributes, context) {
        return Ok(());
    }
    let reviewed = ReviewedWrite {
        attributes,
        object: value,
    };
    let mut called = Vec::new();
    for hook in state.webhooks.validating.clone().iter() {
        if let Some(shown_as) = hook.matching_resource(state, &reviewed, context)? {
            called.push((Arc::clone(hook), shown_as));
        }
    }
    let mut rejection = Ok(());
    for (hook, shown_as) in called {
        let outcome = call_hook(state, &hook, &reviewed, &shown_as, context).map(drop);
        if context.pending.is_some() {
            return outcome;
        }
        rejection = rejection.and(outcome);
    }
    rejection
}

/// Calls one webhook. With `failurePolicy: Ignore`, a failure counts as allowed.
fn call_hook(
    state: &mut State,
    hook: &Hook,
    reviewed: &ReviewedWrite<'_>,
    shown_as: &Arc<Resource>,
    context: &mut Context,
) -> Result<ReviewResult> {
    if context.dry_run && hook.has_side_effects {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Status::bad_request(text));
    }
    let uid = state.random.uid();
    let body = review::build_request(hook, reviewed, shown_as, &uid, context);
    let reply = call::send(state, hook, body, context)?;
    let result = reply.and_then(|text| review::parse_response(hook, &uid, &text));
    match result {
        Ok(result) => {
            for warning in &result.warnings {
                context.warn(warning.as_str());
            }
            match result.rejection {
                Some(rejection) => Err(rejection),
                None => Ok(result),
            }
        }
        Err(_) if hook.ignores_failures => Ok(ReviewResult::default()),
        Err(reason) => Err(Status::internal(&format!(
            "failed calling webhook {:?}: {reason}",
            hook.name
        ))),
    }
}

/// Returns the name of the object, also for a create without a name in the path.
fn object_name<'a>(reviewed: &ReviewedWrite<'a>) -> &'a str {
    match reviewed.attributes.target.name {
        "" => reviewed
            .object
            .map_or("", |object| tree::text(object, &["metadata", "name"])),
        name => name,
    }
}
