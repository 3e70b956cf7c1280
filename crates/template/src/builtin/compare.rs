//! Comparison: numbers and strings by value within their kind, other values by identity or not at all.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::fmt;
use crate::function::Failure;
use crate::limit::Meter;
use crate::object::GoKind;
use crate::slot::Slot;
use crate::value::Value;

/// The kinds of values that can be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    String,
    Uint,
    None,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Complex(..) => Basic::Complex,
        Value::Int(..) => Basic::Int,
        Value::Float(_) => Basic::Float,
        Value::String(_) => Basic::String,
        Value::Uint(..) => Basic::Uint,
        _ => Basic::None,
    }
}

/// Reports whether `first` equals any of `rest`.
pub(super) fn equal_any(first: &Slot, rest: &[Slot], meter: &mut Meter) -> Result<bool, Failure> {
    if rest.is_empty() {
        return Err(Failure::message("missing argument for comparison"));
    }
    for other in rest {
        if equal(&first.value, &other.value, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[allow(clippy::float_cmp)]
fn equal(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Failure> {
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
            integers(a, b).map(|(a, b)| a == b)
        }
        _ if basic(a) != Basic::None || basic(b) != Basic::None => Err(incompatible(a, b)),
        _ => identical(a, b, meter),
    }
}

/// Compares two values of one basic kind; `None` where Go's other rules apply.
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

fn incompatible(a: &Value, b: &Value) -> Failure {
    let (a, b) = (a.type_name(), b.type_name());
    Failure::Message(format!("incompatible types for comparison: {a} and {b}"))
}

/// Compares values that are neither basic nor nil.
fn identical(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Failure> {
    if a.kind_name() != b.kind_name() {
        let (shown_a, shown_b) = (fmt::in_message(a, b's', meter)?, fmt::in_message(b, b'v', meter)?);
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
            let shown = fmt::in_message(b, b's', meter)?;
            Err(Failure::Message(format!(
                "non-comparable type {shown}: {}",
                b.type_name()
            )))
        }
    }
}

/// Returns the integers that two values represent, one of them a named number.
fn integers(a: &Value, b: &Value) -> Result<(i64, i64), Failure> {
    let number = |value: &Value| match value {
        Value::Object(object) if object.go_kind() == GoKind::Number => object.plain(),
        other => other.clone(),
    };
    match (number(a), number(b)) {
        (Value::Int(a, _), Value::Int(b, _)) => Ok((a, b)),
        _ => Err(incompatible(a, b)),
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
            integers(a, b).map(|(a, b)| a < b)
        }
        _ if basic(a) == Basic::None || basic(b) == Basic::None || basic(a) == basic(b) => Err(bad()),
        _ => Err(incompatible(a, b)),
    }
}

/// Reports whether `a <= b`, as Go computes it: less, or else equal.
pub(super) fn less_or_equal(a: &Slot, b: &Slot, meter: &mut Meter) -> Result<bool, Failure> {
    Ok(less(a, b)? || equal(&a.value, &b.value, meter)?)
}
