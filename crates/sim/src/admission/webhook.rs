//! Webhooks: takes a write and the configurations in the store, gives it changed, allowed or refused. How an answer comes to be, whether
//! from a handler in this process or from outside, is [`call`]'s business.
//!
//! ```text
//! configurations ──Hooks──▶ [Hook] ──wants(write)──▶ review ──call──▶ reply ──verify──▶ patch | leave | refusal
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
#[cfg(feature = "serve")]
mod https;
mod pending;
mod review;

pub use call::{Handler, Handlers};
pub(crate) use condition::problem as condition_problem;
use configuration::Hook;
pub use configuration::Hooks;
#[cfg(feature = "serve")]
pub use https::{HttpsTransport, Resolver};
pub use pending::PendingWebhookCalls;
pub(crate) use pending::attempt;
use review::Verdict;

/// One write under consideration, as webhooks see it.
struct Case<'a> {
    attributes: &'a Attributes<'a>,
    /// The object as it is now; `None` for a deletion.
    object: Option<&'a Value>,
}

/// What was asked, and what must be asked again.
#[derive(Default)]
struct Rounds {
    /// Whether this is the second round.
    second: bool,
    /// Those that want to be asked again if something changes after them.
    asked: BTreeSet<String>,
    /// Those that must be asked again.
    again: BTreeSet<String>,
    changed: bool,
}

impl Rounds {
    fn note_change(&mut self) {
        self.changed = true;
        self.again.append(&mut self.asked);
    }
}

/// Whether anybody may be asked about this write at all.
fn concerns_nobody(attributes: &Attributes<'_>, context: &Context) -> bool {
    let resource = attributes.target.resource;
    // Configurations are beyond the reach of what they configure; scale, eviction and their like are views that nobody is shown yet.
    &*resource.group == "admissionregistration.k8s.io"
        || !matches!(context.subresource.as_str(), "" | "status")
}

/// Lets mutating webhooks change the object; `plugins` are the builtin ones, which look at it again when a webhook changed it.
pub(super) fn mutate(
    state: &mut State,
    attributes: &Attributes<'_>,
    mut value: Option<&mut Value>,
    context: &mut Context,
    plugins: &dyn Fn(&mut State, &mut Value) -> Result<()>,
) -> Result<()> {
    state.webhooks.refresh(&state.store);
    if state.webhooks.mutating.is_empty() || concerns_nobody(attributes, context) {
        return Ok(());
    }
    let mut rounds = Rounds::default();
    ask_all(state, attributes, value.as_deref_mut(), context, &mut rounds)?;
    let Some(value) = value.filter(|_| rounds.changed) else {
        return Ok(());
    };
    let before = value.clone();
    plugins(state, value)?;
    if *value != before {
        rounds.note_change();
    }
    rounds.second = true;
    ask_all(state, attributes, Some(value), context, &mut rounds)
}

fn ask_all(
    state: &mut State,
    attributes: &Attributes<'_>,
    mut value: Option<&mut Value>,
    context: &mut Context,
    rounds: &mut Rounds,
) -> Result<()> {
    for hook in Arc::clone(&state.webhooks.mutating).iter() {
        let case = Case {
            attributes,
            object: value.as_deref(),
        };
        let Some(seen_as) = hook.wants(state, &case, context)? else {
            continue;
        };
        if rounds.second && !rounds.again.contains(&hook.id) {
            continue;
        }
        let verdict = ask(state, hook, &case, &seen_as, context)?;
        if let Some(patch) = verdict.patch {
            let Some(value) = value.as_deref_mut() else {
                let why = format!(
                    "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                    hook.name
                );
                return Err(Status::internal(&why));
            };
            let new = patched(state, attributes, &seen_as, value, &patch, context)?;
            if new != *value {
                *value = new;
                rounds.note_change();
            }
        }
        if hook.reinvoked {
            rounds.asked.insert(hook.id.clone());
        }
    }
    Ok(())
}

/// The object after a webhook's patch, read and filled in like a sent one.
fn patched(
    state: &State,
    attributes: &Attributes<'_>,
    seen_as: &Arc<Resource>,
    value: &Value,
    operations: &Value,
    context: &Context,
) -> Result<Value> {
    let resource = attributes.target.resource;
    let mut shown = review::shown(resource, seen_as, value);
    let new = attributes.operation == super::Operation::Create;
    if new {
        review::hide_identity(&mut shown);
    }
    let Ok(changed) = patch::apply_json_patch(&shown, operations) else {
        return Err(Status::internal(&review::why_not(&shown, operations)));
    };
    // Nobody is told of unknown fields: it was not the client who sent them.
    let mut silent = Context {
        field_validation: crate::context::FieldValidation::Ignore,
        ..context.clone()
    };
    let decoded = write::decode(state, seen_as, changed, &mut silent);
    let mut changed = decoded.map_err(|status| {
        let (_, why) = status
            .message()
            .split_once(" cannot be handled as a ")
            .unwrap_or(("", status.message()));
        Status::internal(why.split_once(": ").map_or(why, |(_, why)| why))
    })?;
    defaults::apply(state, seen_as, &mut changed);
    if !Arc::ptr_eq(resource, seen_as) {
        changed = convert::from_stored(resource, convert::to_stored(seen_as, changed));
    }
    if new {
        tree::copy(value, &mut changed, &["metadata", "uid"]);
        tree::copy(value, &mut changed, &["metadata", "creationTimestamp"]);
    }
    Ok(changed)
}

/// Lets validating webhooks refuse; all that want it are asked, the first refusal in order counts.
pub(super) fn validate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: Option<&Value>,
    context: &mut Context,
) -> Result<()> {
    state.webhooks.refresh(&state.store);
    if state.webhooks.validating.is_empty() || concerns_nobody(attributes, context) {
        return Ok(());
    }
    let case = Case {
        attributes,
        object: value,
    };
    let mut called = Vec::new();
    for hook in state.webhooks.validating.clone().iter() {
        if let Some(seen_as) = hook.wants(state, &case, context)? {
            called.push((Arc::clone(hook), seen_as));
        }
    }
    let mut refusal = Ok(());
    for (hook, seen_as) in called {
        let answer = ask(state, &hook, &case, &seen_as, context).map(drop);
        if context.pending.is_some() {
            return answer;
        }
        refusal = refusal.and(answer);
    }
    refusal
}

/// Asks one webhook; failures that it says to ignore are leave.
fn ask(
    state: &mut State,
    hook: &Hook,
    case: &Case<'_>,
    seen_as: &Arc<Resource>,
    context: &mut Context,
) -> Result<Verdict> {
    if context.dry_run && hook.has_side_effects {
        let text = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Status::bad_request(text));
    }
    let uid = state.random.uid();
    let body = review::request(hook, case, seen_as, &uid, context);
    let reply = call::send(state, hook, body, context)?;
    let verdict = reply.and_then(|text| review::verify(hook, &uid, &text));
    match verdict {
        Ok(verdict) => {
            for warning in &verdict.warnings {
                context.warn(warning.as_str());
            }
            match verdict.refusal {
                Some(refusal) => Err(refusal),
                None => Ok(verdict),
            }
        }
        Err(_) if hook.ignores_failures => Ok(Verdict::default()),
        Err(why) => Err(Status::internal(&format!(
            "failed calling webhook {:?}: {why}",
            hook.name
        ))),
    }
}

/// The name of the object, also when it is about to be made.
fn name<'a>(case: &Case<'a>) -> &'a str {
    match case.attributes.target.name {
        "" => case
            .object
            .map_or("", |object| tree::text(object, &["metadata", "name"])),
        name => name,
    }
}
