//! Match conditions: CEL expressions that decide whether a webhook is called for a write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::configuration::Hook;
use super::error::ConditionError;
use super::{ReviewedWrite, review};
use crate::cel::{self, Failure, KnownNames, PER_CALL_LIMIT, Program, Type, Val};
use crate::context::Context;
use crate::resource::Resource;
use crate::tree;

/// Names of the variables of the expressions. `authorizer` is not supported.
const VARIABLE_NAMES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];
/// Cost budget of all conditions of one webhook together.
const BUDGET: u64 = 2_500_000;

/// A match condition with its program or compile error.
#[derive(Debug)]
pub(super) struct Condition {
    program: Result<Program, ConditionError>,
    expression: String,
}

impl Condition {
    pub(super) fn parse(condition: &Value) -> Self {
        let expression = tree::text(condition, &["expression"]).to_owned();
        Self {
            program: compile(&expression),
            expression,
        }
    }

    fn holds<'a>(&'a self, names: &KnownNames<'a>, budget: &mut u64) -> Result<bool, ConditionError> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let limit = PER_CALL_LIMIT.min(*budget);
        let mut remaining = limit;
        let outcome = program.evaluate(names, &mut remaining);
        *budget -= limit - remaining;
        match outcome {
            Ok(Val::Bool(value)) => Ok(value),
            Ok(_) => Err(self.evaluation_error("the result is not a bool")),
            Err(Failure::Cost) if limit < PER_CALL_LIMIT => Err(ConditionError::Budget),
            Err(failure) => Err(self.evaluation_error(&failure.to_string())),
        }
    }

    fn evaluation_error(&self, reason: &str) -> ConditionError {
        ConditionError::Evaluate {
            expression: self.expression.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// Compiles an expression that must be a bool.
fn compile(expression: &str) -> Result<Program, ConditionError> {
    let names = VARIABLE_NAMES.map(|name| (name, Type::Dyn));
    let (program, kind) = cel::compile(expression, &names)?;
    match kind {
        Type::Bool => Ok(program),
        other => Err(ConditionError::NotBool(other.name())),
    }
}

/// Returns the error text of a match condition's expression that does not compile, or `None` if it does.
pub(crate) fn compile_error(expression: &str) -> Option<String> {
    compile(expression).err().map(|error| error.to_string())
}

/// Returns whether all conditions are true. A condition that evaluates to false takes precedence over
/// evaluation errors.
pub(super) fn conditions_hold(
    conditions: &[Condition],
    hook: &Hook,
    reviewed: &ReviewedWrite<'_>,
    shown_as: &Arc<Resource>,
    context: &Context,
) -> Result<bool, ConditionError> {
    let mut request = review::build_request(hook, reviewed, shown_as, "", context);
    let mut request = request.get_mut("request").map(Value::take).unwrap_or_default();
    let mut take = |key: &str| {
        let value = request.as_object_mut().and_then(|map| map.remove(key));
        value.unwrap_or_default()
    };
    let (object, old, namespace) = (take("object"), take("oldObject"), json!({}));
    let names = KnownNames(vec![
        ("object", Val::from_json(&object, None)),
        ("oldObject", Val::from_json(&old, None)),
        ("request", Val::from_json(&request, None)),
        // Empty for webhooks, as in the real server.
        ("namespaceObject", Val::from_json(&namespace, None)),
    ]);
    let mut budget = BUDGET;
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.holds(&names, &mut budget) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        several => Err(ConditionError::Several(several.to_vec())),
    }
}
