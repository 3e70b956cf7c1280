//! The function `dig`, which returns a value in nested maps or a default.

use mainstay_template::Type::Any;
use mainstay_template::{Call, Failure, Function, Map, MapType, Str, Value};

use crate::table::variadic;

pub(super) const TABLE: &[Function] = &[variadic("dig", &[Any], dig)];

/// Evaluates `dig KEY… DEFAULT MAP`.
fn dig(call: &mut Call<'_>) -> Result<Value, Failure> {
    let [keys @ .., default, root] = call.args else {
        return Err(too_few());
    };
    if keys.is_empty() {
        return Err(too_few());
    }
    let mut map = as_map(root)?;
    let keys: Vec<Str> = keys.iter().map(as_string).collect::<Result<_, _>>()?;
    let Some((last, path)) = keys.split_last() else {
        return Err(too_few());
    };
    for key in path {
        match map.get(key) {
            Some(step) => map = as_map(&step)?,
            None => return Ok(default.clone()),
        }
    }
    Ok(map.get(last).unwrap_or_else(|| default.clone()))
}

fn too_few() -> Failure {
    Failure::message("dig needs at least three arguments")
}

fn as_map(value: &Value) -> Result<Map, Failure> {
    match value {
        Value::Map(map) if map.ty() == MapType::Any => Ok(map.clone()),
        other => Err(wrong_type(other, "map[string]interface {}")),
    }
}

fn as_string(value: &Value) -> Result<Str, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => Err(wrong_type(other, "string")),
    }
}

/// Returns Go's message for a failed type assertion.
fn wrong_type(value: &Value, wanted: &str) -> Failure {
    let found = if matches!(value, Value::Nil) {
        "nil".into()
    } else {
        value.type_name()
    };
    Failure::message(format!(
        "interface conversion: interface {{}} is {found}, not {wanted}"
    ))
}
