//! `reflect.DeepEqual`: takes two values, says whether they have the same type and contents all the way down.

use std::rc::Rc;

use mainstay_template::{Exhausted, List, Map, Meter, Value};

use crate::text::nested;

/// Whether `a` and `b` are deeply equal. Numbers of different types never are.
pub(crate) fn is_equal(meter: &mut Meter, a: &Value, b: &Value) -> Result<bool, Exhausted> {
    meter.burn(1)?;
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a, kind), Value::Int(b, other)) => a == b && kind == other,
        (Value::Uint(a, ..), Value::Uint(b, ..)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(a, c), Value::Complex(b, d)) => a == b && c == d,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::List(a), Value::List(b)) => nested(meter, |meter| lists(meter, a, b))?,
        (Value::Map(a), Value::Map(b)) => nested(meter, |meter| maps(meter, a, b))?,
        (Value::Object(a), Value::Object(b)) => {
            Rc::ptr_eq(a, b)
                || a.type_name() == b.type_name()
                    && a.print() == b.print()
                    && nested(meter, |meter| is_equal(meter, &a.plain(), &b.plain()))?
        }
        _ => false,
    })
}

fn lists(meter: &mut Meter, a: &List, b: &List) -> Result<bool, Exhausted> {
    if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.items().len() != b.items().len() {
        return Ok(false);
    }
    if a.is_same(b) {
        return Ok(true);
    }
    for (a, b) in a.items().iter().zip(b.items()) {
        if !is_equal(meter, a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(meter: &mut Meter, a: &Map, b: &Map) -> Result<bool, Exhausted> {
    if a.ty() != b.ty() || a.entries().len() != b.entries().len() {
        return Ok(false);
    }
    if a.is_same(b) {
        return Ok(true);
    }
    for ((a_key, a), (b_key, b)) in a.entries().iter().zip(b.entries().iter()) {
        if a_key != b_key || !is_equal(meter, a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}
