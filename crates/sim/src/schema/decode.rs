//! Decodes JSON as Go does. The result is the tree that decoding into the Go struct and encoding it again
//! produces: without unknown and empty fields, with zero values, and with quantities and times in canonical
//! form.

use serde_json::{Map, Value};

use super::{Field, Schema, Type, TypeId, canonical_quantity};
use crate::clock::Instant;

/// A decoded tree, in the form in which the Go struct is encoded.
#[derive(Debug)]
pub struct Decoded {
    /// Decoded tree.
    pub value: Value,
    /// Paths of unknown fields, in document order.
    pub unknown: Vec<String>,
}

/// Error for a value that does not match its Go type, with the message of `encoding/json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

impl Schema {
    /// Decodes `value` as the struct `id` and encodes it again.
    pub fn decode(&self, id: TypeId, value: Value) -> Result<Decoded, DecodeError> {
        let mut decoder = Decoder {
            schema: self,
            unknown: Vec::new(),
        };
        let mut value = value;
        decoder.decode_struct(id, &mut value, &Position::default())?;
        Ok(Decoded {
            value,
            unknown: decoder.unknown,
        })
    }

    /// Returns the JSON that Go prints for an empty struct.
    #[must_use]
    pub fn zero(&self, id: TypeId) -> &Value {
        self.get(id).zero.get_or_init(|| {
            let decoded = self.decode(id, Value::Object(Map::new()));
            decoded.map_or(Value::Null, |decoded| decoded.value)
        })
    }
}

/// Current position in a tree: a chain of steps up to the root, which is formatted only for errors.
#[derive(Clone, Copy, Default)]
struct Position<'a> {
    parent: Option<&'a Position<'a>>,
    step: Step<'a>,
    /// Full name of the enclosing struct.
    inside: &'a str,
}

#[derive(Clone, Copy, Default)]
enum Step<'a> {
    #[default]
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Position<'a> {
    fn below(&'a self, step: Step<'a>) -> Self {
        Self {
            parent: Some(self),
            step,
            inside: self.inside,
        }
    }

    /// Formats the path as in strict decoding errors.
    fn strict_path(&self) -> String {
        let above = self.parent.map_or(String::new(), Position::strict_path);
        match self.step {
            Step::Root => above,
            Step::Field(name) | Step::Key(name) if above.is_empty() => name.to_owned(),
            Step::Field(name) | Step::Key(name) => format!("{above}.{name}"),
            Step::Index(at) => format!("{above}[{at}]"),
        }
    }

    /// Formats the path as in type errors, which contain only fields.
    fn field_path(&self) -> String {
        let above = self.parent.map_or(String::new(), Position::field_path);
        match self.step {
            Step::Field(name) if above.is_empty() => name.to_owned(),
            Step::Field(name) => format!("{above}.{name}"),
            _ => above,
        }
    }
}

struct Decoder<'s> {
    schema: &'s Schema,
    unknown: Vec<String>,
}

impl Decoder<'_> {
    /// Converts a value to the form that Go encodes. Null becomes the zero value.
    fn decode_value(
        &mut self,
        kind: &Type,
        value: &mut Value,
        position: &Position<'_>,
    ) -> Result<(), DecodeError> {
        match kind.pointee() {
            Type::Struct(id) => self.decode_struct(*id, value, position),
            other if value.is_null() => {
                *value = zero_value(other);
                Ok(())
            }
            Type::List(inner) => self.decode_list(inner, value, kind, position),
            Type::Map(inner) => self.decode_map(inner, value, kind, position),
            other => self.decode_scalar(other, value, position),
        }
    }

    fn decode_struct(
        &mut self,
        id: TypeId,
        value: &mut Value,
        position: &Position<'_>,
    ) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(map) = value else {
            return Err(self.mismatch(&Type::Struct(id), value, position));
        };
        let kind = self.schema.get(id);
        let (before, mut own, mut done) = (self.unknown.len(), Vec::new(), Ok(()));
        map.retain(|name, given| {
            let Some(field) = kind.field(name) else {
                own.push(position.below(Step::Key(name)).strict_path());
                return false;
            };
            if done.is_err() || given.is_null() {
                return false;
            }
            let below = Position {
                parent: Some(position),
                step: Step::Field(&field.name),
                inside: &kind.name,
            };
            done = self.decode_value(&field.kind, given, &below);
            // Storage does not contain empty collections: they are read as nil.
            if !field.omit_empty && is_empty_collection(&field.kind, given) {
                *given = Value::Null;
            }
            !is_omitted(field, given)
        });
        done?;
        self.unknown.splice(before..before, own);
        for field in kind.printed() {
            if !map.contains_key(&*field.name) {
                map.insert(field.name.to_string(), self.unset_value(&field.kind));
            }
        }
        Ok(())
    }

    /// Returns the JSON that Go prints for an unset field.
    fn unset_value(&self, kind: &Type) -> Value {
        match kind {
            Type::Struct(id) => self.schema.zero(*id).clone(),
            other => zero_value(other),
        }
    }

    fn decode_list(
        &mut self,
        inner: &Type,
        value: &mut Value,
        kind: &Type,
        position: &Position<'_>,
    ) -> Result<(), DecodeError> {
        let Value::Array(items) = value else {
            return Err(self.mismatch(kind, value, position));
        };
        for (at, item) in items.iter_mut().enumerate() {
            self.decode_value(inner, item, &position.below(Step::Index(at)))?;
        }
        Ok(())
    }

    fn decode_map(
        &mut self,
        inner: &Type,
        value: &mut Value,
        kind: &Type,
        position: &Position<'_>,
    ) -> Result<(), DecodeError> {
        let Value::Object(map) = value else {
            return Err(self.mismatch(kind, value, position));
        };
        for (key, item) in map.iter_mut() {
            self.decode_value(inner, item, &position.below(Step::Key(key)))?;
        }
        Ok(())
    }

    fn decode_scalar(
        &self,
        kind: &Type,
        value: &mut Value,
        position: &Position<'_>,
    ) -> Result<(), DecodeError> {
        let is_valid = match (kind, &*value) {
            (Type::Any, _)
            | (Type::Text(_) | Type::Duration | Type::IntOrString, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float, Value::Number(_)) => true,
            (Type::Int(name), Value::Number(number)) => number.as_i64().is_some_and(|n| fits_int(name, n)),
            (Type::IntOrString, Value::Number(number)) => {
                number.as_i64().is_some_and(|n| fits_int("int32", n))
            }
            (Type::Quantity, Value::String(text)) => {
                *value = parse_quantity(text)?;
                true
            }
            (Type::Quantity, Value::Number(number)) => {
                *value = parse_quantity(&number.to_string())?;
                true
            }
            (Type::Time, Value::String(text)) => {
                *value = parse_time(text, Instant::rfc3339, "2006-01-02T15:04:05Z07:00")?;
                true
            }
            (Type::Bytes, Value::String(text)) => {
                check_base64(text)?;
                true
            }
            (Type::MicroTime, Value::String(text)) => {
                check_micro_time(text)?;
                *value = parse_time(text, Instant::rfc3339_micro, "2006-01-02T15:04:05.000000Z07:00")?;
                true
            }
            _ => false,
        };
        if is_valid {
            Ok(())
        } else {
            Err(self.mismatch(kind, value, position))
        }
    }

    fn mismatch(&self, kind: &Type, value: &Value, position: &Position<'_>) -> DecodeError {
        let described = match (kind, value) {
            (Type::Int(_) | Type::IntOrString, Value::Number(number)) => format!("number {number}"),
            _ => json_type_name(value).to_owned(),
        };
        let wanted = self.go_type(kind);
        if position.inside.is_empty() {
            return DecodeError(format!(
                "json: cannot unmarshal {described} into Go value of type {wanted}"
            ));
        }
        DecodeError(format!(
            "json: cannot unmarshal {described} into Go struct field {}.{} of type {wanted}",
            position.inside.rsplit('.').next().unwrap_or_default(),
            position.field_path()
        ))
    }

    fn go_type(&self, kind: &Type) -> String {
        match kind {
            Type::Text(None) | Type::Time | Type::MicroTime | Type::Duration | Type::Quantity => {
                "string".into()
            }
            Type::Text(Some(name)) | Type::Int(name) => name.to_string(),
            Type::IntOrString => "int32".into(),
            Type::Float => "float64".into(),
            Type::Bool => "bool".into(),
            Type::Bytes => "[]uint8".into(),
            Type::Any => "interface {}".into(),
            Type::Pointer(inner) => self.go_type(inner),
            Type::List(inner) => format!("[]{}", self.go_type(inner)),
            Type::Map(inner) => format!("map[string]{}", self.go_type(inner)),
            Type::Struct(id) => {
                let name = &*self.schema.get(*id).name;
                name.rsplit('/').next().unwrap_or(name).to_owned()
            }
        }
    }
}

/// Returns whether Go's encoder prints the field if it is unset.
pub(super) fn is_printed_unset(field: &Field) -> bool {
    match &field.kind {
        Type::Struct(_) => !field.omit_zero,
        kind => !field.omit_zero && (!field.omit_empty || is_go_struct(kind)),
    }
}

/// Returns whether Go's encoder omits a field that is set to `value`.
fn is_omitted(field: &Field, value: &Value) -> bool {
    (field.omit_empty && is_empty(&field.kind, value))
        || (field.omit_zero && value.as_object().is_some_and(Map::is_empty))
}

/// Returns whether `omitempty` omits a value: zero scalars and empty collections are omitted, structs and
/// pointers to zero values are not.
fn is_empty(kind: &Type, value: &Value) -> bool {
    match (kind, value) {
        (
            Type::Pointer(_)
            | Type::Struct(_)
            | Type::IntOrString
            | Type::Quantity
            | Type::Time
            | Type::MicroTime,
            _,
        ) => false,
        (Type::Duration | Type::Any, _) => value.is_null(),
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(flag)) => !flag,
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(map)) => map.is_empty(),
        (_, Value::Null) => true,
    }
}

fn is_empty_collection(kind: &Type, value: &Value) -> bool {
    match kind {
        Type::List(_) => value.as_array().is_some_and(Vec::is_empty),
        Type::Map(_) => value.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Returns whether a type is a struct in Go, so that `omitempty` has no effect.
fn is_go_struct(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Struct(_) | Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrString | Type::Duration
    )
}

/// Returns the JSON that Go prints for the zero value of a type that is not a struct.
fn zero_value(kind: &Type) -> Value {
    match kind {
        Type::Text(_) => "".into(),
        Type::Int(_) | Type::Float | Type::IntOrString => 0.into(),
        Type::Bool => false.into(),
        Type::Quantity => "0".into(),
        Type::Duration => "0s".into(),
        _ => Value::Null,
    }
}

fn fits_int(name: &str, number: i64) -> bool {
    match name {
        "int32" => i32::try_from(number).is_ok(),
        "uint8" => u8::try_from(number).is_ok(),
        "uint16" => u16::try_from(number).is_ok(),
        "uint32" => u32::try_from(number).is_ok(),
        _ => true,
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn parse_quantity(text: &str) -> Result<Value, DecodeError> {
    let pattern =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    canonical_quantity(text.trim())
        .map(Value::from)
        .ok_or_else(|| DecodeError(pattern.to_owned()))
}

/// Checks that a text is base64, with the errors of Go's decoder.
fn check_base64(text: &str) -> Result<(), DecodeError> {
    let wrong = |at: usize| Err(DecodeError(format!("illegal base64 data at input byte {at}")));
    let (mut digits, mut padding) = (0_usize, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'=' if digits % 4 + padding >= 2 && padding < 2 => padding += 1,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => digits += 1,
            _ => return wrong(at),
        }
    }
    if (digits + padding) % 4 == 0 {
        Ok(())
    } else {
        wrong(text.len() - (digits + padding) % 4)
    }
}

/// Checks that a `metav1.MicroTime` has a fraction of a second, which Go requires.
fn check_micro_time(text: &str) -> Result<(), DecodeError> {
    let rest = text.get(19..).unwrap_or("");
    if rest.is_empty() || rest.starts_with('.') {
        return Ok(());
    }
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    Err(DecodeError(format!(
        "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \".000000\""
    )))
}

fn parse_time(text: &str, format: fn(Instant) -> String, layout: &str) -> Result<Value, DecodeError> {
    let parsed = Instant::parse(text);
    let wrong = || {
        DecodeError(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""
        ))
    };
    parsed.map(|at| format(at).into()).ok_or_else(wrong)
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(api_version: &str, kind: &str, given: Value, expected: Value) {
        let schema = Schema::builtin();
        let id = schema.kind(api_version, kind).unwrap();
        let decoded = schema.decode(id, given);
        let shown = match decoded {
            Ok(decoded) if decoded.unknown.is_empty() => decoded.value,
            Ok(decoded) => json!({"value": decoded.value, "unknown": decoded.unknown}),
            Err(error) => json!(error.to_string()),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn empty_fields_are_omitted_and_zero_structs_added() {
        check(
            "apps/v1",
            "Deployment",
            json!({"metadata": {"name": "a", "labels": {}}, "spec": {"replicas": 0, "paused": false, "minReadySeconds": 0}}),
            json!({
                "metadata": {"name": "a"},
                "spec": {"replicas": 0, "selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}},
                "status": {},
            }),
        );
    }

    #[test]
    fn unknown_fields_are_named_by_their_path() {
        check(
            "v1",
            "ConfigMap",
            json!({"data": {"a": "b"}, "dataa": {}, "metadata": {"nam": "x"}}),
            json!({"value": {"data": {"a": "b"}, "metadata": {}}, "unknown": ["dataa", "metadata.nam"]}),
        );
    }

    #[test]
    fn type_errors_match_go() {
        check(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": "3"}}),
            json!(
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
            ),
        );
        check(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 1.5}}),
            json!(
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"
            ),
        );
        check(
            "v1",
            "Pod",
            json!({"spec": {"containers": [{"ports": {}}]}}),
            json!(
                "json: cannot unmarshal object into Go struct field Container.spec.containers.ports of type []v1.ContainerPort"
            ),
        );
        check(
            "v1",
            "ConfigMap",
            json!([]),
            json!("json: cannot unmarshal array into Go value of type v1.ConfigMap"),
        );
    }
}
