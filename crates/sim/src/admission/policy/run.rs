//! Evaluation of a policy.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::compiled::{Expression, Policy, Validation};
use super::{Denial, Write};
use crate::admission::Operation;
use crate::cel::{self, Failure, Names, PER_CALL_LIMIT, VALIDATION_BUDGET, Val};
use crate::context::Context;
use crate::resource::Resource;
use crate::state::State;
use crate::tree;

/// Values of the variables of the expressions.
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
        let convert = |value: Option<&Value>| {
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
            object: convert(write.new),
            old: convert(write.attributes.old),
            request: admission_request(write, resource, context),
            params: params.cloned().unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
        }
    }
}

/// Returns the value of the variable `request`.
fn admission_request(write: &Write<'_>, resource: &Resource, context: &Context) -> Value {
    let target = write.attributes.target;
    let operation = match write.attributes.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    };
    let kind = |resource: &Resource| json!({"group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind});
    let group_resource = |resource: &Resource| json!({"group": &*resource.group, "version": &*resource.version, "resource": &*resource.plural});
    let name = match target.name {
        "" => write
            .new
            .map_or("", |object| tree::text(object, &["metadata", "name"])),
        name => name,
    };
    json!({
        "kind": kind(resource), "resource": group_resource(resource), "subResource": write.subresource,
        "requestKind": kind(target.resource), "requestResource": group_resource(target.resource),
        "requestSubResource": write.subresource, "name": name, "namespace": target.namespace,
        "operation": operation, "dryRun": context.dry_run, "options": {},
        "userInfo": {"username": context.user.name, "uid": context.user.uid, "groups": context.user.groups},
    })
}

/// Variables with their values. Composed variables are evaluated on first use and cached.
struct Scope<'s> {
    variables: &'s Variables,
    policy: &'s Policy,
    evaluated: RefCell<BTreeMap<String, Result<Val<'s>, Failure>>>,
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
            other => return self.evaluate_variable(other.strip_prefix("variables.")?, cost),
        };
        Some(Ok(Val::from_json(value, None)))
    }
}

impl<'s> Scope<'s> {
    fn evaluate_variable(&self, name: &str, cost: &mut u64) -> Option<Result<Val<'s>, Failure>> {
        if let Some(outcome) = self.evaluated.borrow().get(name) {
            return Some(outcome.clone());
        }
        let at = self
            .policy
            .variables
            .iter()
            .position(|(variable, _)| variable == name)?;
        let (_, expression) = self.policy.variables.get(at)?;
        // Placeholder during the evaluation: a variable that refers to itself fails instead of recursing.
        let pending = Err(Failure::Error(format!("variable {name} is defined by itself")));
        self.evaluated.borrow_mut().insert(name.to_owned(), pending);
        let outcome = match &expression.program {
            Ok(program) => program.evaluate(self, cost),
            Err(error) => Err(Failure::Error(format!("compilation failed: {error}"))),
        };
        self.evaluated
            .borrow_mut()
            .insert(name.to_owned(), outcome.clone());
        Some(outcome)
    }

    fn evaluate(&self, expression: &'s Expression, budget: &mut u64) -> Result<Val<'s>, String> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Err(format!("compilation error: compilation failed: {error}")),
        };
        let limit = PER_CALL_LIMIT.min(*budget);
        let mut remaining = limit;
        let outcome = program.evaluate(self, &mut remaining);
        *budget -= limit - remaining;
        outcome.map_err(|failure| match failure {
            Failure::Cost if limit < PER_CALL_LIMIT => {
                "validation failed due to running out of cost budget, no further validation rules will be run"
                    .into()
            }
            failure => format!("expression '{}' resulted in error: {failure}", expression.source),
        })
    }
}

/// Returns the failed validations of a policy.
pub(super) fn failed_validations(policy: &Policy, variables: &Variables) -> Vec<Denial> {
    let scope = Scope {
        variables,
        policy,
        evaluated: RefCell::default(),
    };
    let mut budget = VALIDATION_BUDGET;
    match match_conditions_hold(&scope, &mut budget) {
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
        .filter_map(|validation| evaluate_validation(&scope, validation, &mut budget));
    denials.collect()
}

/// Returns whether all match conditions are true. A condition that evaluates to false takes precedence over
/// errors.
fn match_conditions_hold(scope: &Scope<'_>, budget: &mut u64) -> Result<bool, String> {
    let mut failures = Vec::new();
    for condition in &scope.policy.conditions {
        match scope.evaluate(condition, budget) {
            Ok(Val::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(detail) => failures.push(detail),
        }
    }
    match failures.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn evaluate_validation<'s>(
    scope: &Scope<'s>,
    validation: &'s Validation,
    budget: &mut u64,
) -> Option<Denial> {
    match scope.evaluate(&validation.expression, budget) {
        Ok(Val::Bool(true)) => None,
        Ok(_) => Some(Denial {
            message: denial_message(scope, validation, budget),
            reason: validation.reason.clone(),
        }),
        Err(_) if scope.policy.ignores_failures => None,
        Err(message) => Some(Denial {
            message,
            reason: String::new(),
        }),
    }
}

/// Returns the result of the message expression if it is usable, otherwise the static or default message.
fn denial_message<'s>(scope: &Scope<'s>, validation: &'s Validation, budget: &mut u64) -> String {
    let computed = validation
        .message_expression
        .as_ref()
        .and_then(|expression| cel::message_text(&scope.evaluate(expression, budget).ok()?));
    computed.unwrap_or_else(|| {
        if validation.message.is_empty() {
            format!("failed expression: {}", validation.expression.source.trim())
        } else {
            validation.message.clone()
        }
    })
}
