//! Runs one template in a test, with JSON data as `encoding/json` decodes it.

use mainstay_template::{Limits, Meter, NoHost, Str, TemplateSet, Value, execute};

/// Returns the output of the template `t`, or its error.
pub(crate) fn run(text: &[u8], data: Value) -> Result<Vec<u8>, String> {
    let mut set = TemplateSet::named("t");
    set.parse("t", text).map_err(|error| error.text)?;
    let mut meter = Meter::new(Limits::default());
    execute(&set, "t", data, &mut meter, &mut NoHost).map_err(|error| error.text)
}

/// Parses JSON into a value. Every number is a float64.
pub(crate) fn json(text: &str) -> Value {
    value(serde_json::from_str(text).expect("data is JSON"))
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(value).collect()),
        serde_json::Value::Object(map) => Value::map(
            map.into_iter()
                .map(|(key, item)| (Str::from(key), value(item)))
                .collect(),
        ),
    }
}
