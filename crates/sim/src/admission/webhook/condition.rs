//! Match conditions: CEL expressions that decide whether a webhook is called for a write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::configuration::Hook;
use super::error::ConditionError;
use super::{ReviewedWrite, review};
use crate::cel::{self, CALL_COST, Failure, Given, Program, Type, Val};
use crate::context::Context;
use crate::resource::Resource;
use crate::tree;

/// Variables of the expressions; `authorizer` is not supported.
const NAMES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];
/// Cost budget for all conditions of one webhook.
const BUDGET: u64 = 2_500_000;

/// A compiled condition.
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

    fn holds<'a>(&'a self, names: &Given<'a>, budget: &mut u64) -> Result<bool, ConditionError> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let limit = CALL_COST.min(*budget);
        let mut left = limit;
        let outcome = program.run(names, &mut left);
        *budget -= limit - left;
        match outcome {
            Ok(Val::Bool(yes)) => Ok(yes),
            Ok(_) => Err(self.failed("the result is not a bool")),
            Err(Failure::Cost) if limit < CALL_COST => Err(ConditionError::Budget),
            Err(failure) => Err(self.failed(&failure.to_string())),
        }
    }

    fn failed(&self, reason: &str) -> ConditionError {
        ConditionError::Evaluate {
            expression: self.expression.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// Compiles an expression; the error is the text with which the API server rejects it.
fn compile(expression: &str) -> Result<Program, ConditionError> {
    let names = NAMES.map(|name| (name, Type::Dyn));
    let (program, kind) = cel::compile(expression, &names)?;
    match kind {
        Type::Bool => Ok(program),
        other => Err(ConditionError::NotBool(other.name())),
    }
}

/// Returns the compile error of a match condition's expression.
pub(crate) fn problem(expression: &str) -> Option<String> {
    compile(expression).err().map(|error| error.to_string())
}

/// Returns whether all conditions hold. A condition that evaluates to false takes precedence over evaluation
/// errors.
pub(super) fn decide(
    conditions: &[Condition],
    hook: &Hook,
    reviewed: &ReviewedWrite<'_>,
    shown_as: &Arc<Resource>,
    context: &Context,
) -> Result<bool, ConditionError> {
    let mut request = review::request(hook, reviewed, shown_as, "", context);
    let mut request = request.get_mut("request").map(Value::take).unwrap_or_default();
    let mut part = |key: &str| {
        let part = request.as_object_mut().and_then(|map| map.remove(key));
        part.unwrap_or_default()
    };
    let (object, old, namespace) = (part("object"), part("oldObject"), json!({}));
    let names = Given(vec![
        ("object", Val::from_json(&object, None)),
        ("oldObject", Val::from_json(&old, None)),
        ("request", Val::from_json(&request, None)),
        // The real server leaves it empty for webhooks.
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
        many => Err(ConditionError::Several(many.to_vec())),
    }
}
