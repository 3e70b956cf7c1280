//! YAML, JSON and TOML functions: encoders that ignore errors, and decoders that return them as data.

use std::collections::BTreeMap;

use mainstay_template::{Call, Failure, Value};
use mainstay_yaml::{Budget, Error, JsonWriter, Numbers, YamlWriter};

use super::toml::{self, TomlError};

/// `toYaml`: an empty string if the value cannot be encoded.
pub(super) fn to_yaml_function(call: &mut Call<'_>) -> Result<Value, Failure> {
    to_yaml(&call.arg(0), call)
}

/// `toYaml` of any value.
pub(crate) fn to_yaml(value: &Value, call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(yaml(value, YamlWriter::v2(), call))
}

/// `toYamlPretty`.
pub(super) fn to_yaml_pretty(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(yaml(&call.arg(0), YamlWriter::v3(2), call))
}

/// `mustToYaml`.
pub(super) fn must_to_yaml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = yaml(&call.arg(0), YamlWriter::v2(), call).map_err(|failure| match failure {
        Failure::Message(text) if text.starts_with("json:") => {
            Failure::message(format!("error marshaling into JSON: {text}"))
        }
        other => other,
    })?;
    Ok(Value::string(text))
}

fn yaml(value: &Value, mut writer: YamlWriter, call: &mut Call<'_>) -> Result<String, Failure> {
    value.emit(&mut writer, call.meter)?;
    let mut text = writer
        .finish()
        .map_err(|error| Failure::message(error.to_string()))?;
    if text.ends_with('\n') {
        text.pop();
    }
    call.meter.string(text.len())?;
    Ok(text)
}

/// `toJson`.
pub(super) fn to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_error(json(call))
}

/// `mustToJson`.
pub(super) fn must_to_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    json(call).map(Value::string)
}

fn json(call: &mut Call<'_>) -> Result<String, Failure> {
    let mut writer = JsonWriter::compact();
    call.arg(0).emit(&mut writer, call.meter)?;
    let text = writer
        .finish()
        .map_err(|error| Failure::message(error.to_string()))?;
    call.meter.string(text.len())?;
    Ok(text)
}

/// Returns an empty string for an encoding error; exceeded limits stay errors.
fn ignore_error(result: Result<String, Failure>) -> Result<Value, Failure> {
    match result {
        Ok(text) => Ok(Value::string(text)),
        Err(Failure::Message(_)) => Ok(Value::from("")),
        Err(other) => Err(other),
    }
}

/// `toToml`: an error is returned as text, except for nil, where Go's encoder panics.
pub(super) fn to_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    match must_to_toml(call) {
        Err(Failure::Message(text)) if !matches!(call.arg(0), Value::Nil) => Ok(Value::string(text)),
        other => other,
    }
}

/// `mustToToml`.
pub(super) fn must_to_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = toml::write(&call.arg(0), call.meter)?;
    call.meter.string(text.len())?;
    Ok(Value::string(text))
}

/// `fromToml`.
pub(super) fn from_toml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(text.len() as u64 / 16)?;
    Ok(toml::read(&text.to_str_lossy()).unwrap_or_else(|error: TomlError| error_map(error.to_string())))
}

/// `fromYaml`.
pub(super) fn from_yaml(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(text.len() as u64 / 16)?;
    Ok(or_error_map(mainstay_yaml::parse_map(&*text, &Budget::default())))
}

/// `fromJson`.
pub(super) fn from_json(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(text.len() as u64 / 16)?;
    Ok(or_error_map(mainstay_yaml::parse_json_map(
        &*text,
        Numbers::Float,
        &Budget::default(),
    )))
}

/// `fromYamlArray`.
pub(super) fn from_yaml_array(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(text.len() as u64 / 16)?;
    Ok(or_error_list(mainstay_yaml::parse_list(
        &*text,
        &Budget::default(),
    )))
}

/// `fromJsonArray`.
pub(super) fn from_json_array(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.consume_fuel(text.len() as u64 / 16)?;
    Ok(or_error_list(mainstay_yaml::parse_json_list(
        &*text,
        Numbers::Float,
        &Budget::default(),
    )))
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
