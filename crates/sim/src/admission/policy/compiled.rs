//! Compiled policies and their bindings.

use std::sync::Arc;

use serde_json::Value;

use super::{BINDINGS, POLICIES};
use crate::cel::{self, CompileError, Program, Type};
use crate::state::State;
use crate::tree;

/// Policies that have at least one binding, sorted by name.
#[derive(Debug, Default)]
pub struct Policies {
    pub(super) all: Arc<Vec<Policy>>,
    /// Number and highest version of the policies and bindings that were compiled.
    seen: (usize, u64),
}

/// A policy with compiled expressions.
#[derive(Debug)]
pub(super) struct Policy {
    pub name: String,
    pub constraints: Value,
    pub param_kind: Option<(String, String)>,
    pub ignores_failures: bool,
    pub conditions: Vec<Expression>,
    pub variables: Vec<(String, Expression)>,
    pub validations: Vec<Validation>,
    pub bindings: Vec<Binding>,
}

#[derive(Debug)]
pub(super) struct Binding {
    pub name: String,
    pub spec: Value,
}

/// Source of an expression with its program or compile error.
#[derive(Debug)]
pub(super) struct Expression {
    pub source: String,
    pub program: Result<Program, CompileError>,
}

/// A validation and the message and reason of its failure.
#[derive(Debug)]
pub(super) struct Validation {
    pub expression: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: String,
}

/// Names of the variables of policy expressions. `authorizer` is not supported.
const VARIABLE_NAMES: [&str; 6] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
];

impl Expression {
    pub(super) fn new(source: &str) -> Self {
        let names = VARIABLE_NAMES.map(|name| (name, Type::Dyn));
        let compiled = cel::compile(source, &names).map(|(program, _)| program);
        Self {
            source: source.to_owned(),
            program: compiled,
        }
    }
}

/// Recompiles all policies if a policy or binding has changed.
pub(super) fn refresh(state: &mut State) {
    let versions = [POLICIES, BINDINGS]
        .into_iter()
        .flat_map(|table| state.store.all(table))
        .map(|object| object.meta().version);
    let seen = versions.fold((0, 0), |(count, latest), version| {
        (count + 1, latest.max(version))
    });
    if seen == state.policies.seen {
        return;
    }
    let bindings: Vec<Value> = state.store.all(BINDINGS).map(|object| object.value()).collect();
    let all = state
        .store
        .all(POLICIES)
        .map(|object| compile_policy(&object.value(), &bindings));
    let all: Vec<Policy> = all.filter(|policy| !policy.bindings.is_empty()).collect();
    state.policies = Policies {
        all: Arc::new(all),
        seen,
    };
}

fn compile_policy(value: &Value, bindings: &[Value]) -> Policy {
    let name = tree::text(value, &["metadata", "name"]).to_owned();
    let spec = |key| tree::list(value, &["spec", key]);
    let expression = |value: &Value| Expression::new(tree::text(value, &["expression"]));
    let kind = tree::get(value, &["spec", "paramKind"]).filter(|kind| kind.is_object());
    Policy {
        constraints: tree::get(value, &["spec", "matchConstraints"])
            .cloned()
            .unwrap_or_default(),
        param_kind: kind.map(|kind| {
            let text = |key| tree::text(kind, &[key]).to_owned();
            (text("apiVersion"), text("kind"))
        }),
        ignores_failures: tree::text(value, &["spec", "failurePolicy"]) == "Ignore",
        conditions: spec("matchConditions").iter().map(expression).collect(),
        variables: spec("variables")
            .iter()
            .map(|one| (tree::text(one, &["name"]).to_owned(), expression(one)))
            .collect(),
        validations: spec("validations").iter().map(compile_validation).collect(),
        bindings: bindings
            .iter()
            .filter(|binding| tree::text(binding, &["spec", "policyName"]) == name)
            .map(|binding| Binding {
                name: tree::text(binding, &["metadata", "name"]).to_owned(),
                spec: binding.get("spec").cloned().unwrap_or_default(),
            })
            .collect(),
        name,
    }
}

fn compile_validation(value: &Value) -> Validation {
    let text = |key| tree::text(value, &[key]);
    Validation {
        expression: Expression::new(text("expression")),
        message: text("message").trim().to_owned(),
        message_expression: Some(text("messageExpression"))
            .filter(|source| !source.trim().is_empty())
            .map(Expression::new),
        reason: text("reason").to_owned(),
    }
}
