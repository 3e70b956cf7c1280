//! Admission: mutates or rejects a write before it is stored. Built-in plugins are in this module, policies
//! and webhooks in submodules.

use serde_json::Value;

use crate::context::Context;
use crate::state::State;
use crate::status::Result;
use crate::write::Target;

mod lifecycle;
mod limits;
mod pods;
pub mod policy;
mod quota;
mod webhook;

pub use webhook::{Handler, Handlers, Hooks, PendingWebhookCalls};
#[cfg(feature = "serve")]
pub use webhook::{HttpsTransport, Resolver};
pub(crate) use webhook::{attempt, condition_compile_error};

/// Operation of a write under admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creation of an object.
    Create,
    /// Update of an object.
    Update,
    /// Deletion of an object.
    Delete,
    /// A connection to an object (`exec`, `proxy`).
    Connect,
}

impl Operation {
    /// Returns the name used in rules and reviews.
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

/// Attributes of a write under admission.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Location of the object being written.
    pub target: &'a Target<'a>,
    /// Operation of the write.
    pub operation: Operation,
    /// Stored object before the write, if it exists.
    pub old: Option<&'a Value>,
}

/// Runs mutating admission in the real server's plugin order.
pub fn mutate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &mut Value,
    context: &mut Context,
) -> Result<()> {
    lifecycle::check(state, attributes, value)?;
    let is_new_pod = attributes.operation == Operation::Create
        && attributes.target.resource.is("", "pods")
        && context.subresource.is_empty();
    let plugins = |state: &mut State, value: &mut Value| {
        if is_new_pod {
            limits::set_defaults(state, attributes, value);
            pods::set_service_account(state, attributes.target.namespace, value)?;
            pods::add_tolerations(value);
            pods::set_priority(state, value)?;
        }
        Ok(())
    };
    plugins(state, value)?;
    webhook::mutate(state, attributes, Some(value), context, &plugins)?;
    crate::auth::check_escalation(state, attributes.target, attributes.old, value, context)
}

/// Runs validating admission on the final object.
pub fn validate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &Value,
    context: &mut Context,
) -> Result<()> {
    if context.subresource.is_empty() {
        limits::check(state, attributes, value)?;
    }
    policy::validate(state, attributes, value, context)?;
    webhook::validate(state, attributes, Some(value), context)?;
    quota::check(state, attributes, value, context)
}

/// Runs admission for a deletion.
pub fn validate_delete(state: &mut State, attributes: &Attributes<'_>, context: &mut Context) -> Result<()> {
    lifecycle::check_delete(attributes)?;
    webhook::mutate(state, attributes, None, context, &|_, _| Ok(()))?;
    policy::validate(state, attributes, attributes.old.unwrap_or(&Value::Null), context)?;
    webhook::validate(state, attributes, None, context)
}
