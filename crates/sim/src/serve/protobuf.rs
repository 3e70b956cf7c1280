//! Decodes protobuf request bodies into JSON. Typed clients such as `kubectl create deployment` send
//! protobuf. Responses are always JSON, which every client accepts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::clock::Instant;
use crate::schema::{Schema, Type, TypeId};

/// Media type of protobuf bodies.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Errors of decoding a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    /// The body is truncated or not protobuf.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// The Kubernetes prefix is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    MissingPrefix,
    /// The kind is unknown: `apiVersion` and kind.
    #[error("no kind {1:?} is registered for version {0:?}")]
    UnknownKind(String, String),
    /// A field has this unexpected wire type.
    #[error("proto: wrong wireType = {0}")]
    UnexpectedWireType(u8),
    /// The body is nested too deeply, or a value cannot be represented as JSON.
    #[error("proto: {0}")]
    Unsupported(&'static str),
}

/// Decodes the object in a body.
pub(super) fn decode(schema: &Schema, body: &[u8]) -> Result<Value, WireError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(WireError::MissingPrefix)?;
    let (mut meta, mut raw): (&[u8], &[u8]) = (&[], &[]);
    for part in message_fields(envelope) {
        match part? {
            (1, Wire::Bytes(bytes)) => meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for part in message_fields(meta) {
        match part? {
            (1, Wire::Bytes(bytes)) => api_version = decode_text(bytes),
            (2, Wire::Bytes(bytes)) => kind = decode_text(bytes),
            _ => {}
        }
    }
    let id = if kind == "DeleteOptions" {
        schema.find_struct("meta/v1.DeleteOptions")
    } else {
        schema.kind(&api_version, &kind)
    };
    let id = id.ok_or_else(|| WireError::UnknownKind(api_version.clone(), kind.clone()))?;
    let mut map = Map::new();
    Decoder { schema }.decode_fields(id, &[], raw, &mut map, 0)?;
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.into());
    Ok(Value::Object(map))
}

/// A value in the wire format.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Iterates over the fields of a message: number and value. The iteration ends at the first error.
fn message_fields(bytes: &[u8]) -> impl Iterator<Item = Result<(u32, Wire<'_>), WireError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = next_field(&mut rest);
        if part.is_err() {
            rest = &[];
        }
        Some(part)
    })
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Result<(u32, Wire<'a>), WireError> {
    let tag = decode_varint(rest)?;
    let number = u32::try_from(tag >> 3).map_err(|_| WireError::UnexpectedEof)?;
    let wire = match tag & 7 {
        0 => Wire::Number(decode_varint(rest)?),
        1 => Wire::Number(little_endian(take_bytes(rest, 8)?)),
        2 => {
            let length = usize::try_from(decode_varint(rest)?).map_err(|_| WireError::UnexpectedEof)?;
            Wire::Bytes(take_bytes(rest, length)?)
        }
        5 => Wire::Number(little_endian(take_bytes(rest, 4)?)),
        other => return Err(WireError::UnexpectedWireType(other as u8)),
    };
    Ok((number, wire))
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], WireError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(WireError::UnexpectedEof)?;
    *rest = left;
    Ok(taken)
}

fn decode_varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take_bytes(rest, 1)? else {
            return Err(WireError::UnexpectedEof);
        };
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(WireError::UnexpectedEof)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn decode_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Decoder<'s> {
    schema: &'s Schema,
}

impl Decoder<'_> {
    /// Decodes a message of the struct `id` into `map`. `above` contains the field numbers of the inlined
    /// structs around the message.
    fn decode_fields(
        &self,
        id: TypeId,
        above: &[u32],
        bytes: &[u8],
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), WireError> {
        if depth > MAX_DEPTH {
            return Err(WireError::Unsupported("message is nested too deeply"));
        }
        let fields = &self.schema.get(id).fields;
        for part in message_fields(bytes) {
            let (number, wire) = part?;
            let below = [above, &[number]].concat();
            let found = fields.iter().find(|field| field.wire.starts_with(&below));
            match (found, wire) {
                (Some(field), _) if field.wire.len() == below.len() => {
                    let slot = map.entry(&*field.name).or_insert(Value::Null);
                    self.add_occurrence(&field.kind, wire, slot, depth)?;
                }
                (Some(_), Wire::Bytes(bytes)) => self.decode_fields(id, &below, bytes, map, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds one occurrence of a field to its value in `slot`.
    fn add_occurrence(
        &self,
        kind: &Type,
        wire: Wire<'_>,
        slot: &mut Value,
        depth: usize,
    ) -> Result<(), WireError> {
        match (kind.pointee(), wire) {
            (Type::List(item), _) => {
                let item = self.decode_value(item, wire, depth)?;
                match slot {
                    Value::Array(items) => items.push(item),
                    _ => *slot = Value::Array(vec![item]),
                }
            }
            (Type::Map(item), Wire::Bytes(entry)) => {
                let (key, value) = self.decode_map_entry(item, entry, depth)?;
                match slot {
                    Value::Object(map) => drop(map.insert(key, value)),
                    _ => *slot = Value::Object(Map::from_iter([(key, value)])),
                }
            }
            (kind, _) => *slot = self.decode_value(kind, wire, depth)?,
        }
        Ok(())
    }

    fn decode_map_entry(
        &self,
        item: &Type,
        entry: &[u8],
        depth: usize,
    ) -> Result<(String, Value), WireError> {
        let (mut key, mut value) = (String::new(), Value::Null);
        for part in message_fields(entry) {
            match (part?, item.pointee()) {
                ((1, Wire::Bytes(bytes)), _) => key = decode_text(bytes),
                // A list as a value of a map is a nested message.
                ((2, Wire::Bytes(bytes)), list @ Type::List(_)) => {
                    for part in message_fields(bytes) {
                        if let (1, wire) = part? {
                            self.add_occurrence(list, wire, &mut value, depth + 1)?;
                        }
                    }
                }
                ((2, wire), item) => value = self.decode_value(item, wire, depth + 1)?,
                _ => {}
            }
        }
        if value.is_null() {
            // An omitted field has the zero value.
            value = match item.pointee() {
                Type::Text(_) | Type::Bytes => Value::from(""),
                Type::Quantity => Value::from("0"),
                Type::Struct(_) => Value::Object(Map::new()),
                _ => Value::Null,
            };
        }
        Ok((key, value))
    }

    fn decode_value(&self, kind: &Type, wire: Wire<'_>, depth: usize) -> Result<Value, WireError> {
        Ok(match (kind.pointee(), wire) {
            (Type::Text(_), Wire::Bytes(bytes)) => decode_text(bytes).into(),
            (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Type::Int(_), Wire::Number(number)) => (number as i64).into(),
            (Type::Float, Wire::Number(number)) => f64::from_bits(number).into(),
            (Type::Bool, Wire::Number(number)) => (number != 0).into(),
            (Type::Quantity, Wire::Bytes(bytes)) => {
                first_field(bytes)?.map_or("0".into(), |bytes| decode_text(bytes).into())
            }
            (Type::IntOrString, Wire::Bytes(bytes)) => decode_int_or_string(bytes)?,
            (Type::Time, Wire::Bytes(bytes)) => {
                decode_time(bytes)?.map_or(Value::Null, |at| at.rfc3339().into())
            }
            (Type::MicroTime, Wire::Bytes(bytes)) => {
                decode_time(bytes)?.map_or(Value::Null, |at| at.rfc3339_micro().into())
            }
            (Type::Any, Wire::Bytes(bytes)) => match first_field(bytes)? {
                None => Value::Null,
                Some(bytes) => serde_json::from_slice(bytes)
                    .map_err(|_| WireError::Unsupported("embedded value is not JSON"))?,
            },
            (Type::Struct(id), Wire::Bytes(bytes)) => {
                let mut map = Map::new();
                self.decode_fields(*id, &[], bytes, &mut map, depth + 1)?;
                Value::Object(map)
            }
            (_, Wire::Number(_)) => return Err(WireError::UnexpectedWireType(0)),
            (_, Wire::Bytes(_)) => return Err(WireError::UnexpectedWireType(2)),
        })
    }
}

/// Returns the bytes of field 1, or `None` if the message does not contain it.
fn first_field(bytes: &[u8]) -> Result<Option<&[u8]>, WireError> {
    let mut found = None;
    for part in message_fields(bytes) {
        if let (1, Wire::Bytes(bytes)) = part? {
            found = Some(bytes);
        }
    }
    Ok(found)
}

fn decode_int_or_string(bytes: &[u8]) -> Result<Value, WireError> {
    let (mut is_text, mut number, mut detail) = (false, 0_i64, String::new());
    for part in message_fields(bytes) {
        match part? {
            (1, Wire::Number(kind)) => is_text = kind != 0,
            (2, Wire::Number(value)) => number = value as i64,
            (3, Wire::Bytes(bytes)) => detail = decode_text(bytes),
            _ => {}
        }
    }
    Ok(if is_text { detail.into() } else { number.into() })
}

fn decode_time(bytes: &[u8]) -> Result<Option<Instant>, WireError> {
    let (mut seconds, mut nanos) = (None, 0_i64);
    for part in message_fields(bytes) {
        match part? {
            (1, Wire::Number(value)) => seconds = Some(value as i64),
            (2, Wire::Number(value)) => nanos = value as i64,
            _ => {}
        }
    }
    Ok(seconds.map(|seconds| {
        let micros = seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000);
        Instant::from_micros(micros)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Encodes a message. All lengths and numbers must be below 128.
    fn message(fields: &[(u8, Field)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, field) in fields {
            match field {
                Field::Number(value) => {
                    out.push(number << 3);
                    out.push(*value);
                }
                Field::Text(text) => {
                    out.extend([number << 3 | 2, text.len() as u8]);
                    out.extend(text.as_bytes());
                }
                Field::Message(fields) => {
                    let inner = message(fields);
                    out.extend([number << 3 | 2, inner.len() as u8]);
                    out.extend(inner);
                }
            }
        }
        out
    }

    enum Field {
        Number(u8),
        Text(&'static str),
        Message(Vec<(u8, Field)>),
    }
    use Field::{Message, Number, Text};

    fn body(kind: &'static str, raw: Vec<(u8, Field)>) -> Vec<u8> {
        let (api_version, kind) = kind.split_once(' ').unwrap();
        let envelope = [
            (1, Message(vec![(1, Text(api_version)), (2, Text(kind))])),
            (2, Message(raw)),
        ];
        [MAGIC, &message(&envelope)].concat()
    }

    fn check(body: &[u8], expected: Result<Value, &str>) {
        let found = decode(Schema::builtin(), body).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn objects_become_json() {
        let meta = |name| (1, Message(vec![(1, Text(name))]));
        check(
            &body(
                "v1 ConfigMap",
                vec![
                    meta("c"),
                    (2, Message(vec![(1, Text("k")), (2, Text("v"))])),
                    (4, Number(1)),
                ],
            ),
            Ok(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}, "immutable": true}),
            ),
        );
        check(
            &body(
                "v1 Secret",
                vec![(2, Message(vec![(1, Text("k")), (2, Text("hi"))]))],
            ),
            Ok(json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "aGk="}})),
        );
        let port = Message(vec![
            (3, Number(80)),
            (4, Message(vec![(1, Number(1)), (3, Text("http"))])),
        ]);
        check(
            &body("v1 Service", vec![(2, Message(vec![(1, port)]))]),
            Ok(
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "targetPort": "http"}]}}),
            ),
        );
        // The source of a volume is inlined: it is a nested message in protobuf, but not in JSON.
        let volume = Message(vec![
            (1, Text("v")),
            (2, Message(vec![(6, Message(vec![(1, Text("c"))]))])),
        ]);
        check(
            &body("v1 Pod", vec![(2, Message(vec![(1, volume)]))]),
            Ok(
                json!({"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": [{"name": "v", "secret": {"secretName": "c"}}]}}),
            ),
        );
        check(
            &body(
                "apps/v1 DeleteOptions",
                vec![(1, Number(0)), (4, Text("Foreground"))],
            ),
            Ok(
                json!({"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Foreground"}),
            ),
        );
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        check(b"{}", Err(prefix));
        check(&[MAGIC, &[0x0A, 0x7F]].concat(), Err("unexpected EOF"));
        check(&[MAGIC, &[0xFF; 12]].concat(), Err("unexpected EOF"));
        check(&[MAGIC, &[0x0B]].concat(), Err("proto: wrong wireType = 3"));
        check(
            &body("example.com/v1 Thing", vec![]),
            Err("no kind \"Thing\" is registered for version \"example.com/v1\""),
        );
        check(
            &body("v1 ConfigMap", vec![(1, Number(3))]),
            Err("proto: wrong wireType = 0"),
        );
    }
}
