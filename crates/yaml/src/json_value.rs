//! Conversion to `serde_json` values.

use serde_json::Value as Json;

use crate::Value;

/// Numbers keep their kind. Infinities and NaN, which JSON does not have, become null. Parsers limit the
/// depth of values, so recursion is safe.
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => value.into(),
            Value::Int(value) => value.into(),
            Value::Uint(value) => value.into(),
            Value::Float(value) => value.into(),
            Value::String(text) => text.into(),
            Value::List(items) => items.into_iter().map(Self::from).collect(),
            Value::Map(map) => map
                .into_iter()
                .map(|(key, value)| (key, Self::from(value)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Numbers, Options, parse_with};

    #[test]
    fn numbers_keep_their_kind() {
        let options = Options {
            numbers: Numbers::Exact,
            ..Options::default()
        };
        let text = b"a: [1, 18446744073709551615, 1.5, null, true]\nb: {c: \"1\"}\n";
        let json = Json::from(parse_with(text, &options).unwrap());
        let expected = r#"{"a":[1,18446744073709551615,1.5,null,true],"b":{"c":"1"}}"#;
        assert_eq!(json.to_string(), expected);
    }

    #[test]
    fn infinities_become_null() {
        assert_eq!(Json::from(Value::Float(f64::INFINITY)), Json::Null);
    }
}
