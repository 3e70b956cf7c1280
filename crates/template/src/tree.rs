//! Conversion of parsed trees to values, and output of values to the writers of `mainstay-yaml`.

use mainstay_yaml::{KeyOrder, Sink};

use crate::function::Failure;
use crate::limit::{LimitExceeded, Meter};
use crate::object::{GoKind, Object};
use crate::string::Str;
use crate::value::{List, ListType, Map, MapType, Value};

/// Converts a parsed document to a template value. The parser has limited its depth.
impl From<mainstay_yaml::Value> for Value {
    fn from(value: mainstay_yaml::Value) -> Self {
        use mainstay_yaml::Value as Plain;
        match value {
            Plain::Null => Self::Nil,
            Plain::Bool(value) => Self::Bool(value),
            Plain::Int(value) => Self::int64(value),
            Plain::Uint(value) => Self::uint64(value),
            Plain::Float(value) => Self::Float(value),
            Plain::String(text) => Self::string(text),
            Plain::List(items) => Self::list(items.into_iter().map(Self::from).collect()),
            Plain::Map(map) => map.into(),
        }
    }
}

/// Converts a parsed map to a `map[string]interface {}`.
impl From<mainstay_yaml::Map> for Value {
    fn from(map: mainstay_yaml::Map) -> Self {
        Self::map(
            map.into_iter()
                .map(|(key, value)| (Str::from(key), Self::from(value)))
                .collect(),
        )
    }
}

/// Reason why a value could not be written.
#[derive(Debug)]
pub enum EmitError {
    /// Error of Go's encoder: a cycle, or a type without an encoding.
    Unsupported(String),
    /// An exceeded limit of the run.
    LimitExceeded(LimitExceeded),
}

impl From<LimitExceeded> for EmitError {
    fn from(limit: LimitExceeded) -> Self {
        Self::LimitExceeded(limit)
    }
}

impl From<EmitError> for Failure {
    fn from(error: EmitError) -> Self {
        match error {
            EmitError::Unsupported(text) => Self::Message(text),
            EmitError::LimitExceeded(limit) => Self::LimitExceeded(limit),
        }
    }
}

/// Depth at which the detection of cycles starts, as in Go's encoder.
const CYCLE_DETECTION_DEPTH: usize = 64;

impl Value {
    /// Writes the whole tree into `sink` in the order of `encoding/json`. Consumes fuel per node, and fails
    /// if the text would exceed the maximum string length: the written form of maps with shared parts is
    /// much longer than the maps.
    pub fn emit(&self, sink: &mut dyn Sink, meter: &mut Meter) -> Result<(), EmitError> {
        let mut emitter = Emitter {
            remaining: meter.limits().string,
            sink,
            meter,
            enclosing: Vec::new(),
            depth: 0,
        };
        emitter.emit_value(self)
    }
}

struct Emitter<'a> {
    sink: &'a mut dyn Sink,
    meter: &'a mut Meter,
    /// Enclosing maps below [`CYCLE_DETECTION_DEPTH`].
    enclosing: Vec<Map>,
    depth: usize,
    /// Number of bytes that may still be written.
    remaining: usize,
}

impl Emitter<'_> {
    fn emit_value(&mut self, value: &Value) -> Result<(), EmitError> {
        self.meter.consume_fuel(1)?;
        self.count_bytes(1 + self.depth)?;
        match value {
            Value::Nil => self.sink.null(),
            Value::Bool(value) => self.sink.bool(*value),
            Value::Int(value, _) => self.sink.int(*value),
            Value::Uint(value, _) => self.sink.uint(*value),
            Value::Float(value) => self.sink.float(*value),
            Value::Complex(..) => {
                return Err(EmitError::Unsupported(
                    "json: unsupported type: complex128".into(),
                ));
            }
            Value::String(text) => {
                self.meter.consume_fuel(text.len() as u64 / 64)?;
                self.count_bytes(text.len())?;
                self.sink.string(text);
            }
            Value::List(list) => return self.emit_list(list),
            Value::Map(map) => return self.emit_map(map),
            Value::Object(object) => return self.emit_object(&**object),
        }
        Ok(())
    }

    fn emit_object(&mut self, object: &dyn Object) -> Result<(), EmitError> {
        if object.go_kind() == GoKind::Map {
            return self.emit_map_object(object);
        }
        let is_json = self.sink.key_order() == KeyOrder::Bytes;
        let Some(fields) = is_json.then(|| object.json_fields()).flatten() else {
            return self.emit_nested(|emitter| emitter.emit_value(&object.plain()));
        };
        self.sink.begin_map(fields.len());
        self.emit_nested(|emitter| {
            fields
                .iter()
                .try_for_each(|(key, value)| emitter.emit_entry((key, value)))
        })?;
        self.sink.end_map();
        Ok(())
    }

    /// Writes the entries one at a time, because the values of `.Files` are larger than the files.
    fn emit_map_object(&mut self, object: &dyn Object) -> Result<(), EmitError> {
        let mut keys = object.map_keys();
        self.sink.key_order().sort(&mut keys, |key| key.as_bytes());
        self.sink.begin_map(keys.len());
        self.emit_nested(|emitter| {
            keys.iter().try_for_each(|key| {
                let value = object.field(&key.to_str_lossy()).unwrap_or_default();
                emitter.emit_entry((key, &value))
            })
        })?;
        self.sink.end_map();
        Ok(())
    }

    fn emit_list(&mut self, list: &List) -> Result<(), EmitError> {
        if list.is_nil() {
            self.sink.null();
            return Ok(());
        }
        if list.ty() == ListType::Bytes && self.sink.key_order() != KeyOrder::NaturalDigits {
            let text = encode_base64(&list.to_bytes());
            self.meter.consume_fuel(text.len() as u64 / 64)?;
            self.count_bytes(text.len())?;
            self.sink.string(text.as_bytes());
            return Ok(());
        }
        self.sink.begin_list(list.items().len());
        self.emit_nested(|emitter| list.items().iter().try_for_each(|item| emitter.emit_value(item)))?;
        self.sink.end_list();
        Ok(())
    }

    fn emit_map(&mut self, map: &Map) -> Result<(), EmitError> {
        if map.is_nil() {
            self.sink.null();
            return Ok(());
        }
        let detects_cycles = self.depth >= CYCLE_DETECTION_DEPTH;
        if detects_cycles {
            if self.enclosing.iter().any(|enclosing| enclosing.is_same(map)) {
                return Err(EmitError::Unsupported(format!(
                    "json: unsupported value: encountered a cycle via {}",
                    type_name(map.ty())
                )));
            }
            self.enclosing.push(map.clone());
        }
        let entries = map.entries();
        self.sink.begin_map(entries.len());
        let order = self.sink.key_order();
        self.emit_nested(|emitter| {
            if order == KeyOrder::Bytes || entries.len() < 2 {
                return entries.iter().try_for_each(|entry| emitter.emit_entry(entry));
            }
            let mut sorted: Vec<_> = entries.iter().collect();
            order.sort(&mut sorted, |(key, _)| key.as_bytes());
            sorted.into_iter().try_for_each(|entry| emitter.emit_entry(entry))
        })?;
        self.sink.end_map();
        if detects_cycles {
            self.enclosing.pop();
        }
        Ok(())
    }

    fn emit_entry(&mut self, (key, value): (&Str, &Value)) -> Result<(), EmitError> {
        self.count_bytes(key.len())?;
        self.sink.key(key);
        self.emit_value(value)
    }

    /// Subtracts `bytes` from the number of remaining bytes. The sum is a lower bound of the written
    /// length, and includes indentation.
    fn count_bytes(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.remaining = self.remaining.checked_sub(bytes).ok_or(LimitExceeded::String)?;
        Ok(())
    }

    fn emit_nested(&mut self, run: impl FnOnce(&mut Self) -> Result<(), EmitError>) -> Result<(), EmitError> {
        self.meter.enter()?;
        self.depth += 1;
        let result = crate::stack::ensure_stack(|| run(self));
        self.depth -= 1;
        self.meter.leave();
        result
    }
}

fn type_name(ty: MapType) -> &'static str {
    match ty {
        MapType::Any => "map[string]interface {}",
        MapType::String => "map[string]string",
        MapType::Named(ty) => ty.name,
    }
}

/// Encodes a `[]byte` as base64, as JSON and the YAML converted from it do.
#[must_use]
pub fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS
                .get((word >> (18 - 6 * place)) as usize & 63)
                .copied()
                .unwrap_or(b'=');
            out.push(if place > chunk.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mainstay_yaml::JsonWriter;

    use super::*;
    use crate::limit::Limits;

    fn json(value: &Value) -> Result<String, EmitError> {
        let mut writer = JsonWriter::compact();
        value.emit(&mut writer, &mut Meter::new(Limits::default()))?;
        writer
            .finish()
            .map_err(|error| EmitError::Unsupported(error.to_string()))
    }

    #[test]
    fn values_are_written_as_go_writes_them() {
        let check = |value: Value, expected: &str| assert_eq!(json(&value).unwrap(), expected);
        let bytes = |text: &str| Value::bytes(text.as_bytes());
        check(Value::Nil, "null");
        check(Value::List(List::nil(ListType::Any)), "null");
        check(
            Value::list(vec![Value::int(1), Value::from("a"), Value::Bool(true)]),
            "[1,\"a\",true]",
        );
        check(bytes(""), "\"\"");
        check(bytes("a"), "\"YQ==\"");
        check(bytes("ab"), "\"YWI=\"");
        check(bytes("hello\n"), "\"aGVsbG8K\"");
        let parsed = mainstay_yaml::Map::from([("b".into(), 1.5.into()), ("a".into(), vec![].into())]);
        check(parsed.into(), "{\"a\":[],\"b\":1.5}");
    }

    #[test]
    fn a_cycle_is_an_error() {
        let map = Map::new(MapType::Any, BTreeMap::new());
        map.insert("self", Value::Map(map.clone()));
        let error = json(&Value::Map(map.clone())).unwrap_err();
        map.entries_mut().clear();
        let expected = "json: unsupported value: encountered a cycle via map[string]interface {}";
        assert!(matches!(error, EmitError::Unsupported(text) if text == expected));
    }

    #[test]
    fn depth_is_limited() {
        let deep = (0..10_000).fold(Value::Nil, |inner, _| Value::list(vec![inner]));
        assert!(matches!(
            json(&deep),
            Err(EmitError::LimitExceeded(LimitExceeded::Depth))
        ));
    }
}
