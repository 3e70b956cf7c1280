//! Go types and kinds of values.

use std::borrow::Cow;

use mainstay_template::Type::{Any, String};
use mainstay_template::{Call, Failure, Function, IntKind, ListType, MapType, Shape, Value};

use crate::equal::is_equal;
use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("typeOf", &[Any], type_of_arg),
    fixed("typeIs", &[String, Any], type_is),
    fixed("typeIsLike", &[String, Any], type_is_like),
    fixed("kindOf", &[Any], kind_of_arg),
    fixed("kindIs", &[String, Any], kind_is),
    fixed("deepEqual", &[Any, Any], deep_equal),
];

/// The Go type, as `%T` prints it.
pub(crate) fn type_of(value: &Value) -> Cow<'static, str> {
    Cow::Borrowed(match value {
        Value::Nil => "<nil>",
        Value::List(list) => match list.ty() {
            ListType::Any => "[]interface {}",
            ListType::String => "[]string",
            ListType::Int => "[]int",
            ListType::Bytes => "[]uint8",
            ListType::ListOfAny => "[][]interface {}",
            ListType::Named(name) => name,
        },
        Value::Map(map) => match map.ty() {
            MapType::Any => "map[string]interface {}",
            MapType::String => "map[string]string",
            MapType::Named(name) => name,
        },
        Value::Object(object) => return object.type_name(),
        scalar => kind_of(scalar),
    })
}

/// The Go kind, as `reflect` names it.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_, IntKind::Int) => "int",
        Value::Int(_, IntKind::Int64) => "int64",
        Value::Int(_, IntKind::Int32) => "int32",
        Value::Uint(..) => "uint64",
        Value::Float(_) => "float64",
        Value::Complex(..) => "complex128",
        Value::String(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Object(object) => match object.shape() {
            Shape::Struct => "struct",
            Shape::Pointer => "ptr",
            Shape::Map => "map",
        },
    }
}

fn type_of_arg(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(type_of(&call.arg(0)).into_owned()))
}

fn type_is(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(*call.str(0) == *type_of(&call.arg(1)).as_bytes()))
}

fn type_is_like(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (wanted, found) = (call.str(0), type_of(&call.arg(1)));
    let pointed = found.strip_prefix('*').unwrap_or(&found);
    Ok(Value::from(
        *wanted == *found.as_bytes() || *wanted == *pointed.as_bytes(),
    ))
}

fn kind_of_arg(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(kind_of(&call.arg(0))))
}

fn kind_is(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::from(*call.str(0) == *kind_of(&call.arg(1)).as_bytes()))
}

fn deep_equal(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (a, b) = (call.arg(0), call.arg(1));
    Ok(Value::from(is_equal(call.meter, &a, &b)?))
}
