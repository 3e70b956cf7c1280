//! Times and durations of Go's time package. The host provides the clock. Local time is UTC, so that a
//! render does not depend on the machine. Time zones come from the embedded database.

mod civil;
mod format;
mod layout;
mod object;
mod parse;
mod time;
mod zone;

use mainstay_gostd::number::{IntError, parse_int};
use mainstay_gostd::time::{HOUR, MINUTE, SECOND, format_duration, parse_duration, round_duration};
use mainstay_template::{Call, Failure, Function, IntKind, Type, Value};

use crate::table::fixed;
pub(crate) use civil::Civil;
use object::TIME;
use parse::{ParseTimeError, parse_time};
use time::Time;
use zone::format_in;

const IN_ZONE: &[Type] = &[Type::String, Type::Any, Type::String];
const MODIFY: &[Type] = &[Type::String, TIME];
const TWO: &[Type] = &[Type::String, Type::String];

pub(crate) const TABLE: &[Function] = &[
    fixed("now", &[], |call| Ok(Value::object(now(call)))),
    fixed("date", &[Type::String, Type::Any], |call| {
        format_argument(call, 1, None, Some(0))
    }),
    fixed("dateInZone", IN_ZONE, |call| {
        format_argument(call, 1, Some(2), Some(0))
    }),
    fixed("date_in_zone", IN_ZONE, |call| {
        format_argument(call, 1, Some(2), Some(0))
    }),
    fixed("htmlDate", &[Type::Any], |call| {
        format_argument(call, 0, None, None)
    }),
    fixed("htmlDateInZone", &[Type::Any, Type::String], |call| {
        format_argument(call, 0, Some(1), None)
    }),
    fixed("dateModify", MODIFY, modify),
    fixed("date_modify", MODIFY, modify),
    fixed("mustDateModify", MODIFY, must_modify),
    fixed("must_date_modify", MODIFY, must_modify),
    fixed("toDate", TWO, |call| {
        Ok(Value::object(
            parse_arguments(call).unwrap_or_else(|_| Time::zero()),
        ))
    }),
    fixed("mustToDate", TWO, |call| {
        parse_arguments(call)
            .map(Value::object)
            .map_err(|error| Failure::message(error.to_string()))
    }),
    fixed("ago", &[Type::Any], ago),
    fixed("duration", &[Type::Any], duration_from_seconds),
    fixed("durationRound", &[Type::Any], duration_round),
    fixed("unixEpoch", &[TIME], |call| {
        Ok(time_arg(call, 0)?.seconds.to_string().into())
    }),
];

fn now(call: &mut Call<'_>) -> Time {
    Time::unix_nanos(call.host.now())
}

fn time_arg(call: &Call<'_>, index: usize) -> Result<Time, Failure> {
    let time = call.args.get(index).and_then(Value::native::<Time>).cloned();
    time.ok_or_else(|| Failure::message("wrong type for value; expected time.Time"))
}

/// Converts argument `index` to a time: a time, a number of seconds, or the current time for any other
/// value.
fn time_or_now(call: &mut Call<'_>, index: usize) -> Time {
    match call.args.get(index) {
        Some(Value::Int(seconds, _)) => Time::unix(*seconds),
        Some(other) => other.native::<Time>().cloned().unwrap_or_else(|| now(call)),
        None => now(call),
    }
}

/// Formats the argument at index `time` with the layout at index `layout` in the zone at index `zone`. The
/// defaults are the layout of a date and the local zone.
fn format_argument(
    call: &mut Call<'_>,
    time: usize,
    zone: Option<usize>,
    layout: Option<usize>,
) -> Result<Value, Failure> {
    let zone = zone.map_or_else(|| "Local".into(), |index| call.str(index));
    let layout = layout.map_or_else(|| "2006-01-02".into(), |index| call.str(index));
    // Per byte of a layout, the longest outputs are the name of a month and an unnamed zone.
    call.meter.reserve_string(layout.len().saturating_mul(9))?;
    call.meter.consume_fuel(layout.len() as u64)?;
    let time = time_or_now(call, time);
    Ok(Value::string(format_in(&time, &zone, &layout)))
}

fn modify(call: &mut Call<'_>) -> Result<Value, Failure> {
    let time = time_arg(call, 1)?;
    Ok(Value::object(match parse_duration(call.str(0)) {
        Ok(span) => time.add(span),
        Err(_) => time,
    }))
}

fn must_modify(call: &mut Call<'_>) -> Result<Value, Failure> {
    let span = parse_duration(call.str(0)).map_err(|error| Failure::message(error.to_string()))?;
    Ok(Value::object(time_arg(call, 1)?.add(span)))
}

fn parse_arguments(call: &mut Call<'_>) -> Result<Time, ParseTimeError> {
    parse_time(&call.str(0), &call.str(1))
}

fn ago(call: &mut Call<'_>) -> Result<Value, Failure> {
    let time = match call.args.first() {
        // Sprig does not support an integer of this width here.
        Some(Value::Int(_, IntKind::Int32)) => now(call),
        _ => time_or_now(call, 0),
    };
    Ok(format_duration(round_duration(now(call).since(&time), SECOND)).into())
}

fn duration_from_seconds(call: &mut Call<'_>) -> Result<Value, Failure> {
    let seconds = match call.args.first() {
        Some(Value::String(text)) => int_or_nearest(text),
        Some(Value::Int(seconds, IntKind::Int64)) => *seconds,
        _ => 0,
    };
    Ok(format_duration(seconds.wrapping_mul(SECOND)).into())
}

/// Returns the number, the nearest number in range if it is out of range, or zero if `text` is not a
/// number.
fn int_or_nearest(text: &[u8]) -> i64 {
    match parse_int(text, 10) {
        Ok(number) | Err(IntError::Range(number)) => number,
        Err(IntError::Syntax) => 0,
    }
}

fn duration_round(call: &mut Call<'_>) -> Result<Value, Failure> {
    let nanos = match call.args.first() {
        Some(Value::String(text)) => parse_duration(text).unwrap_or(0),
        Some(Value::Int(nanos, IntKind::Int64)) => *nanos,
        Some(other) => match other.native::<Time>() {
            Some(time) => Time::unix_nanos(call.host.now()).since(time),
            None => 0,
        },
        None => 0,
    };
    Ok(largest_unit(nanos.unsigned_abs()).into())
}

fn largest_unit(nanos: u64) -> String {
    let day = 24 * HOUR as u64;
    let units = [
        (365 * day, "y"),
        (30 * day, "mo"),
        (day, "d"),
        (HOUR as u64, "h"),
        (MINUTE as u64, "m"),
        (SECOND as u64, "s"),
    ];
    let found = units.iter().find(|(unit, _)| nanos > *unit);
    found.map_or_else(|| "0s".into(), |(unit, name)| format!("{}{name}", nanos / unit))
}
