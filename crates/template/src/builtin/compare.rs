//! Comparison of values: numbers and strings of the same kind are compared by value. Other values are
//! compared by identity or are not comparable.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::fmt;
use crate::function::Failure;
use crate::limit::Meter;
use crate::object::GoKind;
use crate::slot::Slot;
use crate::value::Value;

/// Kinds of values that can be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BasicKind {
    Bool,
    Complex,
    Int,
    Float,
    String,
    Uint,
    None,
}

fn basic_kind(value: &Value) -> BasicKind {
    match value {
        Value::Bool(_) => BasicKind::Bool,
        Value::Complex(..) => BasicKind::Complex,
        Value::Int(..) => BasicKind::Int,
        Value::Float(_) => BasicKind::Float,
        Value::String(_) => BasicKind::String,
        Value::Uint(..) => BasicKind::Uint,
        _ => BasicKind::None,
    }
}

/// Reports whether `first` equals any of `rest`.
pub(super) fn equal_any(first: &Slot, rest: &[Slot], meter: &mut Meter) -> Result<bool, Failure> {
    if rest.is_empty() {
        return Err(Failure::message("missing argument for comparison"));
    }
    for other in rest {
        if values_equal(&first.value, &other.value, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[allow(clippy::float_cmp)]
fn values_equal(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Failure> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a, _), Value::Int(b, _)) => Ok(a == b),
        (Value::Uint(a, _), Value::Uint(b, _)) => Ok(a == b),
        (Value::Int(a, _), Value::Uint(b, _)) | (Value::Uint(b, _), Value::Int(a, _)) => {
            Ok(u64::try_from(*a).is_ok_and(|a| a == *b))
        }
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::Complex(a, b), Value::Complex(c, d)) => Ok(a == c && b == d),
        (Value::String(a), Value::String(b)) => Ok(a == b),
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Object(object), _) | (_, Value::Object(object)) if object.go_kind() == GoKind::Number => {
            integer_operands(a, b).map(|(a, b)| a == b)
        }
        _ if basic_kind(a) != BasicKind::None || basic_kind(b) != BasicKind::None => {
            Err(incompatible_types(a, b))
        }
        _ => compare_non_basic(a, b, meter),
    }
}

/// Compares two values of the same basic kind. Returns `None` if Go's other rules apply.
#[allow(clippy::float_cmp)]
pub(crate) fn quick_equal(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a == b),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        (Value::Float(a), Value::Float(b)) => Some(a == b),
        (Value::Int(a, _), Value::Int(b, _)) => Some(a == b),
        _ => None,
    }
}

fn incompatible_types(a: &Value, b: &Value) -> Failure {
    let (a, b) = (a.type_name(), b.type_name());
    Failure::Message(format!("incompatible types for comparison: {a} and {b}"))
}

/// Compares two values that are neither basic nor nil.
fn compare_non_basic(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Failure> {
    if a.kind_name() != b.kind_name() {
        let (shown_a, shown_b) = (
            fmt::format_for_message(a, b's', meter)?,
            fmt::format_for_message(b, b'v', meter)?,
        );
        let (type_a, type_b) = (a.type_name(), b.type_name());
        return Err(Failure::Message(format!(
            "non-comparable types {shown_a}: {type_a}, {type_b}: {shown_b}"
        )));
    }
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if b.go_kind() == GoKind::Pointer => Ok(Rc::ptr_eq(a, b)),
        (Value::Object(a), Value::Object(b)) if b.go_kind() == GoKind::Struct => {
            Ok(a.type_name() == b.type_name() && (Rc::ptr_eq(a, b) || a.print() == b.print()))
        }
        _ => {
            let shown = fmt::format_for_message(b, b's', meter)?;
            Err(Failure::Message(format!(
                "non-comparable type {shown}: {}",
                b.type_name()
            )))
        }
    }
}

/// Returns the two integers if one of the values is a named number.
fn integer_operands(a: &Value, b: &Value) -> Result<(i64, i64), Failure> {
    let number = |value: &Value| match value {
        Value::Object(object) if object.go_kind() == GoKind::Number => object.plain(),
        other => other.clone(),
    };
    match (number(a), number(b)) {
        (Value::Int(a, _), Value::Int(b, _)) => Ok((a, b)),
        _ => Err(incompatible_types(a, b)),
    }
}

/// Reports whether `a < b`.
pub(super) fn less(a: &Slot, b: &Slot) -> Result<bool, Failure> {
    let bad = || Failure::message("invalid type for comparison");
    let (a, b) = (&a.value, &b.value);
    match (a, b) {
        (Value::Int(a, _), Value::Int(b, _)) => Ok(a < b),
        (Value::Uint(a, _), Value::Uint(b, _)) => Ok(a < b),
        (Value::Int(a, _), Value::Uint(b, _)) => Ok(u64::try_from(*a).map_or(true, |a| a < *b)),
        (Value::Uint(a, _), Value::Int(b, _)) => Ok(u64::try_from(*b).is_ok_and(|b| *a < b)),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b) == Some(Ordering::Less)),
        (Value::String(a), Value::String(b)) => Ok(a < b),
        (Value::Object(object), _) | (_, Value::Object(object)) if object.go_kind() == GoKind::Number => {
            integer_operands(a, b).map(|(a, b)| a < b)
        }
        _ if basic_kind(a) == BasicKind::None
            || basic_kind(b) == BasicKind::None
            || basic_kind(a) == basic_kind(b) =>
        {
            Err(bad())
        }
        _ => Err(incompatible_types(a, b)),
    }
}

/// Reports whether `a <= b`, as Go computes it: less or equal.
pub(super) fn less_or_equal(a: &Slot, b: &Slot, meter: &mut Meter) -> Result<bool, Failure> {
    Ok(less(a, b)? || values_equal(&a.value, &b.value, meter)?)
}
