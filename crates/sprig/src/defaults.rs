//! Functions for empty values, defaults and choices.

use mainstay_template::Type::{Any, Bool};
use mainstay_template::{Call, Failure, Function, GoKind, Value};

use crate::table::{fixed, variadic};

pub(crate) const TABLE: &[Function] = &[
    variadic("default", &[Any, Any], default),
    fixed("empty", &[Any], empty),
    variadic("coalesce", &[Any], coalesce),
    variadic("all", &[Any], all),
    variadic("any", &[Any], any),
    fixed("ternary", &[Any, Any, Bool], ternary),
];

/// Whether `value` is the zero value of its type or has length zero. A struct is never empty.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Bool(value) => !value,
        Value::Int(value, _) => *value == 0,
        Value::Uint(value, ..) => *value == 0,
        Value::Float(value) => *value == 0.0,
        Value::Complex(re, im) => *re == 0.0 && *im == 0.0,
        Value::String(text) => text.is_empty(),
        Value::List(list) => list.items().is_empty(),
        Value::Map(map) => map.entries().is_empty(),
        Value::Object(object) => object.go_kind() == GoKind::Map && object.map_keys().is_empty(),
    }
}

fn default(call: &mut Call<'_>) -> Result<Value, Failure> {
    let given = call.args.get(1).filter(|given| !is_empty(given));
    Ok(given.cloned().unwrap_or_else(|| call.arg(0)))
}

fn empty(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(is_empty(&call.arg(0))))
}

fn coalesce(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(call
        .args
        .iter()
        .find(|value| !is_empty(value))
        .cloned()
        .unwrap_or_default())
}

fn all(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(!call.args.iter().any(is_empty)))
}

fn any(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(!call.args.iter().all(is_empty)))
}

fn ternary(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(call.arg(usize::from(!call.bool(2))))
}
