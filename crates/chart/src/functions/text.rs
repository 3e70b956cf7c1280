//! Functions for YAML, JSON and TOML. Encoders ignore errors, and decoders return them as data.

use std::collections::BTreeMap;

use mainstay_template::{Call, Failure, Str, Value};
use mainstay_yaml::{Budget, Error, JsonWriter, Numbers, YamlWriter};

use super::toml::{self, TomlError};
use crate::budget::budget;

/// Implements `toYaml`. Returns an empty string if the value cannot be encoded.
pub(super) fn to_yaml_function(call: &mut Call<'_>) -> Result<Value, Failure> {
    to_yaml(&call.arg(0), call)
}

/// Encodes `value` as `toYaml` does.
pub(crate) fn to_yaml(value: &Value, call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(encode_yaml(value, YamlWriter::v2(), call))
}

/// Implements `toYamlPretty`.
pub(super) fn to_yaml_pretty(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(encode_yaml(&call.arg(0), YamlWriter::v3(2), call))
}

/// Implements `mustToYaml`.
pub(super) fn must_to_yaml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut text = marshal_yaml(&call.arg(0), call)?;
    trim_line_break(&mut text);
    Ok(Value::string(text))
}

/// Encodes `value` as `yaml.Marshal` does, including the final line break.
pub(crate) fn marshal_yaml(value: &Value, call: &mut Call<'_>) -> Result<String, Failure> {
    write_yaml(value, YamlWriter::v2(), call).map_err(|failure| match failure {
        Failure::Message(text) if text.starts_with("json:") => {
            Failure::message(format!("error marshaling into JSON: {text}"))
        }
        other => other,
    })
}

fn encode_yaml(value: &Value, writer: YamlWriter, call: &mut Call<'_>) -> Result<String, Failure> {
    let mut text = write_yaml(value, writer, call)?;
    trim_line_break(&mut text);
    Ok(text)
}

fn write_yaml(value: &Value, mut writer: YamlWriter, call: &mut Call<'_>) -> Result<String, Failure> {
    value.emit(&mut writer, call.meter)?;
    let text = writer
        .finish()
        .map_err(|error| Failure::message(error.to_string()))?;
    call.meter.reserve_string(text.len())?;
    Ok(text)
}

fn trim_line_break(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
    }
}

/// Implements `toJson`.
pub(super) fn to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(encode_json(call))
}

/// Implements `mustToJson`.
pub(super) fn must_to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    encode_json(call).map(Value::string)
}

fn encode_json(call: &mut Call<'_>) -> Result<String, Failure> {
    let mut writer = JsonWriter::compact();
    call.arg(0).emit(&mut writer, call.meter)?;
    let text = writer
        .finish()
        .map_err(|error| Failure::message(error.to_string()))?;
    call.meter.reserve_string(text.len())?;
    Ok(text)
}

/// Returns an empty string for an encoding error. Exceeded limits remain errors.
fn ignore_error(result: Result<String, Failure>) -> Result<Value, Failure> {
    match result {
        Ok(text) => Ok(Value::string(text)),
        Err(Failure::Message(_)) => Ok(Value::from("")),
        Err(other) => Err(other),
    }
}

/// Implements `toToml`. An error is returned as text, except for nil, for which Go's encoder panics.
pub(super) fn to_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    match must_to_toml(call) {
        Err(Failure::Message(text)) if !matches!(call.arg(0), Value::Nil) => Ok(Value::string(text)),
        other => other,
    }
}

/// Implements `mustToToml`.
pub(super) fn must_to_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = toml::write(&call.arg(0), call.meter)?;
    call.meter.reserve_string(text.len())?;
    Ok(Value::string(text))
}

/// Implements `fromToml`.
pub(super) fn from_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    call.meter
        .allocate(call.str(0).len().saturating_mul(TOML_BYTES))?;
    parse_argument(call, |text, _| {
        toml::read(&text.to_str_lossy()).unwrap_or_else(|error: TomlError| error_map(error.to_string()))
    })
}

/// Implements `fromYaml`.
pub(super) fn from_yaml(call: &mut Call<'_>) -> Result<Value, Failure> {
    parse_argument(call, |text, budget| {
        or_error_map(mainstay_yaml::parse_map(&**text, budget))
    })
}

/// Implements `fromJson`.
pub(super) fn from_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    parse_argument(call, |text, budget| {
        or_error_map(mainstay_yaml::parse_json_map(&**text, Numbers::Float, budget))
    })
}

/// Implements `fromYamlArray`.
pub(super) fn from_yaml_array(call: &mut Call<'_>) -> Result<Value, Failure> {
    parse_argument(call, |text, budget| {
        or_error_list(mainstay_yaml::parse_list(&**text, budget))
    })
}

/// Implements `fromJsonArray`.
pub(super) fn from_json_array(call: &mut Call<'_>) -> Result<Value, Failure> {
    parse_argument(call, |text, budget| {
        or_error_list(mainstay_yaml::parse_json_list(&**text, Numbers::Float, budget))
    })
}

/// Upper bound of the memory per byte of TOML, in bytes. The worst case is a list of digits.
const TOML_BYTES: usize = 64;

/// Bytes of memory per node while a text is parsed: in the document, in the parsed tree and in the value.
const NODE_BYTES: usize = 256;

/// Bytes of a parsed value that cost one step.
const BYTES_PER_STEP: u64 = 4;

/// Parses the argument within the meter's limits. Consumes fuel by the size of the text and the result;
/// memory is limited by the number of nodes.
fn parse_argument(call: &mut Call<'_>, parse: impl FnOnce(&Str, &Budget) -> Value) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(1 + text.len() as u64 / 4)?;
    let before = call.meter.available_memory();
    let limits = budget();
    let budget = Budget {
        nodes: limits.nodes.min(before / NODE_BYTES),
        expanded_bytes: limits.expanded_bytes.min(before / 4),
        ..limits
    };
    let value = parse(&text, &budget);
    let created = before.saturating_sub(call.meter.available_memory());
    call.meter.consume_fuel(created as u64 / BYTES_PER_STEP)?;
    Ok(value)
}

fn or_error_map(parsed: Result<mainstay_yaml::Map, Error>) -> Value {
    parsed.map_or_else(|error| error_map(error.to_string()), Value::from)
}

fn error_map(text: String) -> Value {
    Value::map(BTreeMap::from([("Error".into(), Value::string(text))]))
}

fn or_error_list(parsed: Result<Vec<mainstay_yaml::Value>, Error>) -> Value {
    match parsed {
        Ok(items) => Value::list(items.into_iter().map(Value::from).collect()),
        Err(error) => Value::list(vec![Value::string(error.to_string())]),
    }
}
