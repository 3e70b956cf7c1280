//! Evaluation of a policy.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::compiled::{Expression, Policy, Validation};
use super::{Denial, Write};
use crate::admission::Operation;
use crate::cel::{CALL_COST, Failure, Names, Val};
use crate::context::Context;
use crate::resource::Resource;
use crate::state::State;
use crate::tree;

/// Cost budget for all expressions of a policy.
const BUDGET: u64 = 10_000_000;
/// Maximum length of a computed message.
const MAX_MESSAGE_LEN: usize = 5 * 1024;

/// The values of the expressions' variables.
pub(super) struct Variables {
    object: Value,
    old: Value,
    request: Value,
    params: Value,
    namespace: Value,
}

impl Variables {
    pub(super) fn new(
        state: &State,
        write: &Write<'_>,
        resource: &Resource,
        params: Option<&Value>,
        context: &Context,
    ) -> Self {
        let target = write.attributes.target;
        let shown = |value: Option<&Value>| {
            value.map_or(Value::Null, |value| {
                if resource.version == target.resource.version {
                    return value.clone();
                }
                let stored = crate::convert::to_stored(target.resource, value.clone());
                crate::convert::from_stored(resource, stored)
            })
        };
        let namespace = state
            .store
            .get("namespaces", target.namespace)
            .map(|object| object.value());
        Self {
            object: shown(write.new),
            old: shown(write.attributes.old),
            request: request(write, resource, context),
            params: params.cloned().unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
        }
    }
}

fn request(write: &Write<'_>, resource: &Resource, context: &Context) -> Value {
    let target = write.attributes.target;
    let operation = match write.attributes.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    };
    let kind = |of: &Resource| json!({"group": &*of.group, "version": &*of.version, "kind": &*of.kind});
    let named =
        |of: &Resource| json!({"group": &*of.group, "version": &*of.version, "resource": &*of.plural});
    let name = match target.name {
        "" => write
            .new
            .map_or("", |object| tree::text(object, &["metadata", "name"])),
        name => name,
    };
    json!({
        "kind": kind(resource), "resource": named(resource), "subResource": write.subresource,
        "requestKind": kind(target.resource), "requestResource": named(target.resource),
        "requestSubResource": write.subresource, "name": name, "namespace": target.namespace,
        "operation": operation, "dryRun": context.dry_run, "options": {},
        "userInfo": {"username": context.user.name, "uid": context.user.uid, "groups": context.user.groups},
    })
}

/// Variables with their values; composed variables are evaluated on first use.
struct Scope<'s> {
    variables: &'s Variables,
    policy: &'s Policy,
    known: RefCell<BTreeMap<String, Result<Val<'s>, Failure>>>,
}

impl<'s> Names<'s> for Scope<'s> {
    fn get(&self, name: &str, cost: &mut u64) -> Option<Result<Val<'s>, Failure>> {
        let variables = self.variables;
        let value = match name {
            "object" => &variables.object,
            "oldObject" => &variables.old,
            "request" => &variables.request,
            "params" => &variables.params,
            "namespaceObject" => &variables.namespace,
            other => return self.variable(other.strip_prefix("variables.")?, cost),
        };
        Some(Ok(Val::from_json(value, None)))
    }
}

impl<'s> Scope<'s> {
    fn variable(&self, name: &str, cost: &mut u64) -> Option<Result<Val<'s>, Failure>> {
        if let Some(known) = self.known.borrow().get(name) {
            return Some(known.clone());
        }
        let at = self.policy.variables.iter().position(|(own, _)| own == name)?;
        let (_, expression) = self.policy.variables.get(at)?;
        // A variable may refer only to the ones before it, which rules out cycles.
        let pending = Err(Failure::Error(format!("variable {name} is defined by itself")));
        self.known.borrow_mut().insert(name.to_owned(), pending);
        let outcome = match &expression.program {
            Ok(program) => program.run(self, cost),
            Err(error) => Err(Failure::Error(format!("compilation failed: {error}"))),
        };
        self.known.borrow_mut().insert(name.to_owned(), outcome.clone());
        Some(outcome)
    }

    fn run(&self, expression: &'s Expression, budget: &mut u64) -> Result<Val<'s>, String> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Err(format!("compilation error: compilation failed: {error}")),
        };
        let limit = CALL_COST.min(*budget);
        let mut left = limit;
        let outcome = program.run(self, &mut left);
        *budget -= limit - left;
        outcome.map_err(|failure| match failure {
            Failure::Cost if limit < CALL_COST => {
                "validation failed due to running out of cost budget, no further validation rules will be run"
                    .into()
            }
            failure => format!("expression '{}' resulted in error: {failure}", expression.source),
        })
    }
}

/// Returns the failed validations of a policy.
pub(super) fn run(policy: &Policy, variables: &Variables) -> Vec<Denial> {
    let scope = Scope {
        variables,
        policy,
        known: RefCell::default(),
    };
    let mut budget = BUDGET;
    match conditions(&scope, &mut budget) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(_) if policy.ignores_failures => return Vec::new(),
        Err(message) => {
            return vec![Denial {
                message,
                reason: String::new(),
            }];
        }
    }
    let denials = policy
        .validations
        .iter()
        .filter_map(|validation| evaluate(&scope, validation, &mut budget));
    denials.collect()
}

/// Returns whether all match conditions hold. A condition that evaluates to false takes precedence over
/// errors.
fn conditions(scope: &Scope<'_>, budget: &mut u64) -> Result<bool, String> {
    let mut failures = Vec::new();
    for condition in &scope.policy.conditions {
        match scope.run(condition, budget) {
            Ok(Val::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(detail) => failures.push(detail),
        }
    }
    match failures.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

fn evaluate<'s>(scope: &Scope<'s>, validation: &'s Validation, budget: &mut u64) -> Option<Denial> {
    match scope.run(&validation.must, budget) {
        Ok(Val::Bool(true)) => None,
        Ok(_) => Some(Denial {
            message: message(scope, validation, budget),
            reason: validation.reason.clone(),
        }),
        Err(_) if scope.policy.ignores_failures => None,
        Err(message) => Some(Denial {
            message,
            reason: String::new(),
        }),
    }
}

fn message<'s>(scope: &Scope<'s>, validation: &'s Validation, budget: &mut u64) -> String {
    let computed =
        validation
            .message_expression
            .as_ref()
            .and_then(|expression| match scope.run(expression, budget) {
                Ok(Val::Text(text)) => Some(text.trim().to_owned()),
                _ => None,
            });
    let usable =
        computed.filter(|text| !text.is_empty() && text.len() <= MAX_MESSAGE_LEN && !text.contains('\n'));
    usable.unwrap_or_else(|| {
        if validation.message.is_empty() {
            format!("failed expression: {}", validation.must.source.trim())
        } else {
            validation.message.clone()
        }
    })
}
