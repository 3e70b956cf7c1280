//! Runs templates with this crate's functions.

use std::fmt;

use mainstay_sprig::{environment, functions};
use mainstay_template::{Host, Limits, Meter, TemplateSet, Value, execute};
use mainstay_testkit::OracleResponse;

/// Result of a template.
#[derive(PartialEq, Eq)]
pub(crate) enum Outcome {
    Output(Vec<u8>),
    Error(String),
}

impl Outcome {
    pub(crate) fn from_go(response: OracleResponse) -> Self {
        if response.err.is_empty() {
            Self::Output(response.out)
        } else {
            Self::Error(response.err)
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(bytes) => write!(f, "{}", bytes.escape_ascii()),
            Self::Error(text) => write!(f, "error: {text}"),
        }
    }
}

/// A host with a fixed clock and pseudo-random entropy.
struct TestHost(u64);

impl Host for TestHost {
    fn entropy(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33) as u8;
        }
    }

    fn now(&mut self) -> i128 {
        1_700_000_000_000_000_000
    }
}

/// Runs `template` with the value of `json` as data.
pub(crate) fn render(template: &str, json: &str) -> Outcome {
    let mut set = TemplateSet::named("t");
    set.add_functions(functions());
    set.add_functions(environment());
    if let Err(error) = set.parse("t", template) {
        return Outcome::Error(error.to_string());
    }
    let dot = value(&serde_json::from_str(json).expect("dot is JSON"));
    let mut meter = Meter::new(Limits::default());
    match execute(&set, "t", dot, &mut meter, &mut TestHost(1)) {
        Ok(output) => Outcome::Output(output),
        Err(error) => Outcome::Error(error.to_string()),
    }
}

/// Converts JSON as Go decodes it: every number is a float.
fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().expect("a float")),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(value).collect()),
        serde_json::Value::Object(map) => Value::map(
            map.iter()
                .map(|(key, item)| (key.as_str().into(), value(item)))
                .collect(),
        ),
    }
}
