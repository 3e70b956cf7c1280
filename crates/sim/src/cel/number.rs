//! Arithmetic with overflow checks, and comparison of numbers of different types.

use std::cmp::Ordering;

use super::value::Val;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

/// Compares numbers of any types; returns `None` if one of them is NaN.
pub(super) fn compare(a: Number, b: Number) -> Option<Ordering> {
    use Number::{Int, Uint};
    match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(&b)),
        (Uint(a), Uint(b)) => Some(a.cmp(&b)),
        (Int(a), Uint(b)) => Some(u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))),
        (Uint(a), Int(b)) => Some(u64::try_from(b).map_or(Ordering::Greater, |b| a.cmp(&b))),
        (a, b) => a.to_f64().partial_cmp(&b.to_f64()),
    }
}

impl Number {
    fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Uint(uint) => uint as f64,
            Self::Double(double) => double,
        }
    }
}

/// Applies an operator to two numbers of the same type; returns `None` if the types differ.
pub(super) fn apply_operator<'a>(name: &str, a: Number, b: Number) -> Option<Result<Val<'a>, &'static str>> {
    const OVERFLOW: &str = "integer overflow";
    const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";
    Some(match (a, b) {
        (Number::Int(a), Number::Int(b)) => {
            let result = match name {
                "_+_" => a.checked_add(b),
                "_-_" => a.checked_sub(b),
                "_*_" => a.checked_mul(b),
                "_/_" if b == 0 => return Some(Err("division by zero")),
                "_%_" if b == 0 => return Some(Err("modulus by zero")),
                "_/_" => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            result.map(Val::Int).ok_or(OVERFLOW)
        }
        (Number::Uint(a), Number::Uint(b)) => {
            let result = match name {
                "_+_" => a.checked_add(b),
                "_-_" => a.checked_sub(b),
                "_*_" => a.checked_mul(b),
                "_/_" if b == 0 => return Some(Err("division by zero")),
                "_%_" if b == 0 => return Some(Err("modulus by zero")),
                "_/_" => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            result.map(Val::Uint).ok_or(UNSIGNED_OVERFLOW)
        }
        (Number::Double(a), Number::Double(b)) => match name {
            "_+_" => Ok(Val::Double(a + b)),
            "_-_" => Ok(Val::Double(a - b)),
            "_*_" => Ok(Val::Double(a * b)),
            "_/_" => Ok(Val::Double(a / b)),
            _ => return None,
        },
        _ => return None,
    })
}
