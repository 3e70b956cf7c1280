//! Who has a say before a write is stored: takes the write, gives it changed or refused. The builtin plugins are here, policies and
//! webhooks in rooms of their own.

use serde_json::Value;

use crate::context::Context;
use crate::state::State;
use crate::status::Result;
use crate::write::Target;

mod lifecycle;
mod pods;
pub mod policy;
mod webhook;

pub use webhook::{Handler, Handlers, Hooks, PendingWebhookCalls};
#[cfg(feature = "serve")]
pub use webhook::{HttpsTransport, Resolver};
pub(crate) use webhook::{attempt, condition_problem};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object goes.
    Delete,
    /// A connection to an object (`exec`, `proxy`).
    Connect,
}

impl Operation {
    /// Its name in rules and reviews.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// One write under consideration.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Where it goes.
    pub target: &'a Target<'a>,
    /// What it does.
    pub operation: Operation,
    /// What is there.
    pub old: Option<&'a Value>,
}

/// Lets everyone change the object, in the real server's order of plugins.
pub fn mutate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &mut Value,
    context: &mut Context,
) -> Result<()> {
    lifecycle::check(state, attributes, value)?;
    let new_pod = attributes.operation == Operation::Create
        && attributes.target.resource.is("", "pods")
        && context.subresource.is_empty();
    let plugins = |state: &mut State, value: &mut Value| {
        if new_pod {
            pods::service_account(state, attributes.target.namespace, value)?;
            pods::tolerations(value);
            pods::priority(state, value)?;
        }
        Ok(())
    };
    plugins(state, value)?;
    webhook::mutate(state, attributes, Some(value), context, &plugins)?;
    crate::auth::check_escalation(state, attributes.target, attributes.old, value, context)
}

/// Lets everyone refuse the finished object.
pub fn validate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &Value,
    context: &mut Context,
) -> Result<()> {
    policy::validate(state, attributes, value, context)?;
    webhook::validate(state, attributes, Some(value), context)
}

/// Lets everyone refuse a deletion.
pub fn validate_delete(state: &mut State, attributes: &Attributes<'_>, context: &mut Context) -> Result<()> {
    lifecycle::check_delete(attributes)?;
    webhook::mutate(state, attributes, None, context, &|_, _| Ok(()))?;
    policy::validate(state, attributes, attributes.old.unwrap_or(&Value::Null), context)?;
    webhook::validate(state, attributes, None, context)
}
