//! Integer functions. Arguments of any type are converted to 64-bit integers, which wrap around as in Go.
//! See [`float`] for decimals and [`range`] for sequences.

mod decimal;
mod float;
mod range;

use mainstay_gostd::number::{IntError, parse_int};
use mainstay_template::Type::{Any, String};
use mainstay_template::{Call, Failure, Function, Value};

use crate::cast::{to_float, to_int};
use crate::table::{fixed, variadic};
use crate::text;

pub(crate) const TABLES: &[&[Function]] = &[TABLE, float::TABLE, range::TABLE];

const TABLE: &[Function] = &[
    fixed("atoi", &[String], atoi),
    fixed("int64", &[Any], int64),
    fixed("int", &[Any], int),
    fixed("float64", &[Any], float64),
    fixed("toDecimal", &[Any], to_decimal),
    fixed("add1", &[Any], add1),
    variadic("add", &[Any], add),
    fixed("sub", &[Any, Any], sub),
    fixed("div", &[Any, Any], div),
    fixed("mod", &[Any, Any], modulo),
    variadic("mul", &[Any, Any], mul),
    variadic("biggest", &[Any, Any], max),
    variadic("max", &[Any, Any], max),
    variadic("min", &[Any, Any], min),
];

/// Returns argument `index` as an integer.
fn int_arg(call: &Call<'_>, index: usize) -> i64 {
    call.args.get(index).map_or(0, to_int)
}

/// Folds the arguments, converted to integers.
fn fold_integers(call: &mut Call<'_>, fold: fn(i64, i64) -> i64) -> Result<Value, Failure> {
    call.meter.consume_fuel(call.args.len() as u64)?;
    Ok(Value::int64(
        call.args.iter().map(to_int).reduce(fold).unwrap_or(0),
    ))
}

fn atoi(call: &mut Call<'_>) -> Result<Value, Failure> {
    let number = match parse_int(&call.str(0), 10) {
        Ok(number) | Err(IntError::Range(number)) => number,
        Err(IntError::Syntax) => 0,
    };
    Ok(Value::int(number))
}

fn int64(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int64(int_arg(call, 0)))
}

fn int(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int(int_arg(call, 0)))
}

fn float64(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::Float(to_float(&call.arg(0))))
}

/// Parses octal digits. Returns zero if they are invalid.
fn to_decimal(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = text::display(call.meter, &call.arg(0))?;
    Ok(Value::int64(parse_int(&text, 8).unwrap_or(0)))
}

fn add1(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int64(int_arg(call, 0).wrapping_add(1)))
}

fn add(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_integers(call, i64::wrapping_add)
}

fn sub(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_integers(call, i64::wrapping_sub)
}

fn mul(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_integers(call, i64::wrapping_mul)
}

fn max(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_integers(call, Ord::max)
}

fn min(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_integers(call, Ord::min)
}

fn div(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int64(int_arg(call, 0).wrapping_div(divisor(call)?)))
}

fn modulo(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::int64(int_arg(call, 0).wrapping_rem(divisor(call)?)))
}

fn divisor(call: &Call<'_>) -> Result<i64, Failure> {
    match int_arg(call, 1) {
        0 => Err(Failure::message("runtime error: integer divide by zero")),
        divisor => Ok(divisor),
    }
}
