//! Conditions on a webhook: takes CEL expressions and a write, says whether the webhook is to be asked.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context as Scope, ExecutionError, Program, Value as Cel};
use serde_json::Value;

use super::configuration::Hook;
use super::{Case, review};
use crate::context::Context;
use crate::resource::Resource;
use crate::tree;

/// Longer or deeper expressions are refused: the parser works by recursion.
const LONGEST: usize = 8 * 1024;
const DEEPEST: usize = 64;

/// One condition, compiled once.
pub(super) struct Condition {
    program: Result<Program, String>,
    expression: String,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.expression)
    }
}

impl Condition {
    pub(super) fn parse(condition: &Value) -> Self {
        let expression = tree::text(condition, &["expression"]).to_owned();
        Self {
            program: compile(&expression),
            expression,
        }
    }

    fn holds(&self, scope: &Scope<'_>) -> Result<bool, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        match program.execute(scope) {
            Ok(Cel::Bool(yes)) => Ok(yes),
            Ok(_) => Err(self.failed("the result is no bool")),
            Err(ExecutionError::NoSuchKey(key)) => Err(self.failed(&format!("no such key: {key}"))),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    fn failed(&self, why: &str) -> String {
        format!("expression '{}' resulted in error: {why}", self.expression)
    }
}

fn compile(expression: &str) -> Result<Program, String> {
    let mut depth = 0_usize;
    for letter in expression.chars() {
        match letter {
            '(' | '[' | '{' | '!' | '-' | '?' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err("the expression is nested too deeply".to_owned());
        }
    }
    if expression.len() > LONGEST {
        return Err("the expression is too long".to_owned());
    }
    Program::compile(expression).map_err(|error| error.to_string())
}

/// Whether all conditions hold. One that does not outweighs those that fail.
pub(super) fn decide(
    conditions: &[Condition],
    hook: &Hook,
    case: &Case<'_>,
    seen_as: &Arc<Resource>,
    context: &Context,
) -> Result<bool, String> {
    let mut request = review::request(hook, case, seen_as, "", context);
    let mut request = request.get_mut("request").map(Value::take).unwrap_or_default();
    let mut part = |key: &str| {
        let part = request.as_object_mut().and_then(|map| map.remove(key));
        to_cel(&part.unwrap_or_default())
    };
    let (object, old) = (part("object"), part("oldObject"));
    let mut scope = Scope::default().with_all();
    scope.add_variable_from_value("object", object);
    scope.add_variable_from_value("oldObject", old);
    scope.add_variable_from_value("request", to_cel(&request));
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.holds(&scope) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// Whole numbers are ints to CEL, whatever their sign.
fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), to_cel(value)));
            Cel::Map(Map {
                map: Arc::new(pairs.collect::<HashMap<_, _>>()),
            })
        }
    }
}
