//! JSON functions with the output of Go's encoder.

use mainstay_template::Type::{Any, String};
use mainstay_template::{Call, Failure, Function, Value};
use mainstay_yaml::{Budget, JsonWriter, Numbers, parse_json};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("toJson", &[Any], to_json),
    fixed("mustToJson", &[Any], must_to_json),
    fixed("toPrettyJson", &[Any], to_pretty_json),
    fixed("mustToPrettyJson", &[Any], must_to_pretty_json),
    fixed("toRawJson", &[Any], must_to_raw_json),
    fixed("mustToRawJson", &[Any], must_to_raw_json),
    fixed("fromJson", &[String], from_json),
    fixed("mustFromJson", &[String], must_from_json),
];

fn must_to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    write_json(call, JsonWriter::compact())
}

fn must_to_pretty_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    write_json(call, JsonWriter::pretty())
}

fn must_to_raw_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    write_json(call, JsonWriter::raw())
}

fn to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    or_fallback(must_to_json(call), Value::from(""))
}

fn to_pretty_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    or_fallback(must_to_pretty_json(call), Value::from(""))
}

fn write_json(call: &mut Call<'_>, mut writer: JsonWriter) -> Result<Value, Failure> {
    call.arg(0).emit(&mut writer, call.meter)?;
    let text = writer
        .finish()
        .map_err(|error| Failure::message(error.to_string()))?;
    call.meter.reserve_string(text.len())?;
    Ok(Value::from(text))
}

/// Returns `fallback` for a Go error. Exceeded limits remain errors.
fn or_fallback(result: Result<Value, Failure>, fallback: Value) -> Result<Value, Failure> {
    match result {
        Err(Failure::Message(_)) => Ok(fallback),
        other => other,
    }
}

fn from_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    or_fallback(must_from_json(call), Value::Nil)
}

fn must_from_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(text.len())?;
    call.meter.consume_fuel(text.len() as u64 / 8)?;
    match parse_json(&*text, Numbers::default(), &Budget::default()) {
        Ok(value) => Ok(value.into()),
        Err(error) => Err(Failure::message(error.to_string())),
    }
}
