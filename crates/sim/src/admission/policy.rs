//! `ValidatingAdmissionPolicy`: rejects or warns about a write according to the policies bound to it.
//! Expressions are compiled when a policy or binding changes, not per write.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Operation};
use crate::context::Context;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

mod check;
mod compiled;
mod matching;
mod params;
mod run;

pub use check::{check_binding, check_policy};
pub use compiled::Policies;
use compiled::Policy;
use run::Variables;

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";

/// A failed validation of a policy.
pub(super) struct Denial {
    message: String,
    reason: String,
}

/// Evaluates every policy that is bound to the write.
pub fn validate(
    state: &mut State,
    attributes: &Attributes<'_>,
    value: &Value,
    context: &mut Context,
) -> Result<()> {
    if state.store.all(BINDINGS).next().is_none() || is_excluded(attributes) {
        return Ok(());
    }
    compiled::refresh(state);
    let policies = Arc::clone(&state.policies.all);
    let subresource = context.subresource.clone();
    let write = Write {
        attributes,
        subresource: &subresource,
        new: (attributes.operation != Operation::Delete).then_some(value),
    };
    let mut rejection = None;
    for policy in policies.iter() {
        let denied = evaluate(state, &write, policy, context);
        rejection = rejection.or(denied);
    }
    rejection.map_or(Ok(()), |(message, reason)| {
        Err(deny(attributes, value, &message, &reason))
    })
}

/// Whether no policy applies to the write. Policies and bindings are exempt so that a faulty policy can be
/// repaired; reviews are exempt because they are not stored.
fn is_excluded(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.target.resource;
    let is_policy =
        resource.plural.contains("admissionpolicies") || resource.plural.contains("admissionpolicybindings");
    (&*resource.group == "admissionregistration.k8s.io" && is_policy)
        || matches!(&*resource.group, "authentication.k8s.io" | "authorization.k8s.io")
}

/// A write under evaluation.
pub(super) struct Write<'w> {
    pub attributes: &'w Attributes<'w>,
    pub subresource: &'w str,
    pub new: Option<&'w Value>,
}

/// Message and reason of a rejection.
type Rejection = Option<(String, String)>;

fn evaluate(state: &State, write: &Write<'_>, policy: &Policy, context: &mut Context) -> Rejection {
    let name = &policy.name;
    let matched = matching::matching_resource(state, write, &policy.constraints)?;
    let mut rejection: Rejection = None;
    for binding in &policy.bindings {
        let constraints =
            tree::get(&binding.spec, &["matchResources"]).filter(|constraints| !constraints.is_null());
        if constraints
            .is_some_and(|constraints| matching::matching_resource(state, write, constraints).is_none())
        {
            continue;
        }
        let bound = &binding.name;
        let denied = format!("ValidatingAdmissionPolicy '{name}' with binding '{bound}' denied request:");
        let params = match params::collect(state, policy, &binding.spec, write.attributes.target.namespace) {
            Ok(params) => params,
            Err(_) if policy.ignores_failures => continue,
            Err(text) => {
                let text = format!("{denied} failed to configure binding: {text}");
                rejection = rejection.or(Some((text, String::new())));
                continue;
            }
        };
        for param in params {
            let variables = Variables::new(state, write, &matched, param.as_ref(), context);
            for denial in run::failed_validations(policy, &variables) {
                for action in tree::list(&binding.spec, &["validationActions"]) {
                    match action.as_str() {
                        Some("Deny") => {
                            let text = format!("{denied} {}", denial.message);
                            rejection = rejection.or_else(|| Some((text, denial.reason.clone())));
                        }
                        Some("Warn") => context.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{bound}': {}",
                            denial.message
                        )),
                        _ => {}
                    }
                }
            }
        }
    }
    rejection
}

fn deny(attributes: &Attributes<'_>, value: &Value, detail: &str, reason: &str) -> Status {
    let (code, reason) = match reason {
        "Unauthorized" => (401, "Unauthorized"),
        "Forbidden" => (403, "Forbidden"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let what = attributes.target.resource.qualified();
    let name = match attributes.target.name {
        "" => tree::text(value, &["metadata", "name"]),
        name => name,
    };
    let message = format!("{what} {name:?} is forbidden: {detail}");
    Status::new(code, reason, message)
        .about(what, name)
        .cause("", detail, "")
}
