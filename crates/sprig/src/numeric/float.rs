//! Float functions. Sums and products use exact decimals; maxima, minima and rounding use Go's `math`.

use mainstay_gostd::number::ldexp;
use mainstay_template::Type::{Any, Float64, Int};
use mainstay_template::{Call, Failure, Function, Value};

use super::decimal::Decimal;
use crate::cast::to_float;
use crate::table::{fixed, variadic};

pub(super) const TABLE: &[Function] = &[
    fixed("add1f", &[Any], add1f),
    variadic("addf", &[Any], addf),
    variadic("subf", &[Any, Any], subf),
    variadic("mulf", &[Any, Any], mulf),
    variadic("divf", &[Any, Any], divf),
    variadic("maxf", &[Any, Any], maxf),
    variadic("minf", &[Any, Any], minf),
    fixed("floor", &[Any], floor),
    fixed("ceil", &[Any], ceil),
    variadic("round", &[Any, Int, Float64], round),
];

/// Folds the arguments as decimals. Each step consumes fuel in proportion to the number of digits.
fn fold_decimals(
    call: &mut Call<'_>,
    first: Option<f64>,
    fold: fn(&Decimal, &Decimal) -> Result<Decimal, Failure>,
) -> Result<Value, Failure> {
    let mut values = first.into_iter().chain(call.args.iter().map(to_float));
    let mut total = Decimal::from_float(values.next().unwrap_or(0.0))?;
    for value in values {
        call.meter.consume_fuel(1 + total.digits())?;
        total = fold(&total, &Decimal::from_float(value)?)?;
        call.meter.consume_fuel(1 + total.digits())?;
    }
    Ok(Value::Float(total.to_float()))
}

fn add1f(call: &mut Call<'_>) -> Result<Value, Failure> {
    let sum = Decimal::from_float(to_float(&call.arg(0)))?.add(&Decimal::from_float(1.0)?);
    Ok(Value::Float(sum.to_float()))
}

fn addf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_decimals(call, Some(0.0), |a, b| Ok(a.add(b)))
}

fn subf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_decimals(call, None, |a, b| Ok(a.sub(b)))
}

fn mulf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_decimals(call, None, |a, b| Ok(a.mul(b)))
}

fn divf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_decimals(call, None, Decimal::div)
}

fn maxf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_extreme(call, f64::INFINITY, |a, b| {
        if a > b || a == b && b.is_sign_negative() {
            a
        } else {
            b
        }
    })
}

fn minf(call: &mut Call<'_>) -> Result<Value, Failure> {
    fold_extreme(call, f64::NEG_INFINITY, |a, b| {
        if a < b || a == b && a.is_sign_negative() {
            a
        } else {
            b
        }
    })
}

/// Folds all arguments with `choose`. `dominant` takes precedence over all other values, including NaN.
fn fold_extreme(call: &mut Call<'_>, dominant: f64, choose: fn(f64, f64) -> f64) -> Result<Value, Failure> {
    call.meter.consume_fuel(call.args.len() as u64)?;
    let pick = |a: f64, b: f64| match (a, b) {
        (a, b) if a == dominant || b == dominant => dominant,
        (a, b) if a.is_nan() || b.is_nan() => f64::NAN,
        (a, b) => choose(a, b),
    };
    Ok(Value::Float(
        call.args.iter().map(to_float).reduce(pick).unwrap_or(0.0),
    ))
}

fn floor(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::Float(to_float(&call.arg(0)).floor()))
}

fn ceil(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::Float(to_float(&call.arg(0)).ceil()))
}

fn round(call: &mut Call<'_>) -> Result<Value, Failure> {
    let round_up_from = if call.args.len() > 2 { call.float(2) } else { 0.5 };
    let scale = power_of_ten(call.int(1));
    let scaled = scale * to_float(&call.arg(0));
    let fraction = (scaled - scaled.trunc()).copysign(scaled);
    let whole = if fraction >= round_up_from {
        scaled.ceil()
    } else {
        scaled.floor()
    };
    Ok(Value::Float(whole / scale))
}

/// Returns 10 to the power of `exponent` with the rounding of Go's `math.Pow`, which squares 0.625 and
/// handles powers of two separately.
fn power_of_ten(exponent: i64) -> f64 {
    if exponent == 0 || exponent == 1 {
        return if exponent == 0 { 1.0 } else { 10.0 };
    }
    let (mut base, mut base_exponent) = (0.625_f64, 4_i64);
    let (mut total, mut total_exponent) = (1.0_f64, 0_i64);
    let mut left = exponent.unsigned_abs();
    while left != 0 {
        if base_exponent > 1 << 12 {
            total_exponent += base_exponent;
            break;
        }
        if left & 1 == 1 {
            total *= base;
            total_exponent += base_exponent;
        }
        base *= base;
        base_exponent <<= 1;
        if base < 0.5 {
            base += base;
            base_exponent -= 1;
        }
        left >>= 1;
    }
    if exponent < 0 {
        ldexp(1.0 / total, -total_exponent)
    } else {
        ldexp(total, total_exponent)
    }
}
