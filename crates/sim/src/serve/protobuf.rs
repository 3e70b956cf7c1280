//! Decodes protobuf request bodies, which typed clients such as `kubectl create deployment` send, into JSON.
//! Responses are always JSON, which every client accepts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::clock::Instant;
use crate::schema::{Schema, Type, TypeId};

/// The media type.
pub(super) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// Prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Errors of decoding a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    /// Truncated, or not protobuf.
    #[error("unexpected EOF")]
    Short,
    /// The Kubernetes prefix is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// An unknown kind.
    #[error("no kind {1:?} is registered for version {0:?}")]
    Kind(String, String),
    /// A field with an unexpected wire type.
    #[error("proto: wrong wireType = {0}")]
    Wire(u8),
    /// Nested too deeply, or not representable.
    #[error("proto: {0}")]
    Unfit(&'static str),
}

/// Decodes the object in a body.
pub(super) fn decode(schema: &Schema, body: &[u8]) -> Result<Value, WireError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(WireError::Prefix)?;
    let (mut meta, mut raw): (&[u8], &[u8]) = (&[], &[]);
    for part in parts(envelope) {
        match part? {
            (1, Wire::Bytes(bytes)) => meta = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for part in parts(meta) {
        match part? {
            (1, Wire::Bytes(bytes)) => api_version = text(bytes),
            (2, Wire::Bytes(bytes)) => kind = text(bytes),
            _ => {}
        }
    }
    let id = if kind == "DeleteOptions" {
        schema.named("meta/v1.DeleteOptions")
    } else {
        schema.kind(&api_version, &kind)
    };
    let id = id.ok_or_else(|| WireError::Kind(api_version.clone(), kind.clone()))?;
    let mut map = Map::new();
    Reader { schema }.fields(id, &[], raw, &mut map, 0)?;
    map.insert("apiVersion".into(), api_version.into());
    map.insert("kind".into(), kind.into());
    Ok(Value::Object(map))
}

/// A value on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message: number and value.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Result<(u32, Wire<'_>), WireError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = next(&mut rest);
        if part.is_err() {
            rest = &[];
        }
        Some(part)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<(u32, Wire<'a>), WireError> {
    let tag = varint(rest)?;
    let number = u32::try_from(tag >> 3).map_err(|_| WireError::Short)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        1 => Wire::Number(little_endian(take(rest, 8)?)),
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| WireError::Short)?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => Wire::Number(little_endian(take(rest, 4)?)),
        other => return Err(WireError::Wire(other as u8)),
    };
    Ok((number, wire))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], WireError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(WireError::Short)?;
    *rest = left;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest, 1)? else {
            return Err(WireError::Short);
        };
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(WireError::Short)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Reader<'s> {
    schema: &'s Schema,
}

impl Reader<'_> {
    /// Decodes a message of the struct `id` (or of a struct inlined into it below `above`) into `map`.
    fn fields(
        &self,
        id: TypeId,
        above: &[u32],
        bytes: &[u8],
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), WireError> {
        if depth > MAX_DEPTH {
            return Err(WireError::Unfit("nested too deep"));
        }
        let fields = &self.schema.get(id).fields;
        for part in parts(bytes) {
            let (number, wire) = part?;
            let below = [above, &[number]].concat();
            let found = fields.iter().find(|field| field.wire.starts_with(&below));
            match (found, wire) {
                (Some(field), _) if field.wire.len() == below.len() => {
                    let slot = map.entry(&*field.name).or_insert(Value::Null);
                    self.put(&field.kind, wire, slot, depth)?;
                }
                (Some(_), Wire::Bytes(bytes)) => self.fields(id, &below, bytes, map, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds one occurrence of a field to `slot`.
    fn put(&self, kind: &Type, wire: Wire<'_>, slot: &mut Value, depth: usize) -> Result<(), WireError> {
        match (kind.pointee(), wire) {
            (Type::List(item), _) => {
                let item = self.value(item, wire, depth)?;
                match slot {
                    Value::Array(items) => items.push(item),
                    _ => *slot = Value::Array(vec![item]),
                }
            }
            (Type::Map(item), Wire::Bytes(entry)) => {
                let (key, value) = self.entry(item, entry, depth)?;
                match slot {
                    Value::Object(map) => drop(map.insert(key, value)),
                    _ => *slot = Value::Object(Map::from_iter([(key, value)])),
                }
            }
            (kind, _) => *slot = self.value(kind, wire, depth)?,
        }
        Ok(())
    }

    fn entry(&self, item: &Type, entry: &[u8], depth: usize) -> Result<(String, Value), WireError> {
        let (mut key, mut value) = (String::new(), Value::Null);
        for part in parts(entry) {
            match (part?, item.pointee()) {
                ((1, Wire::Bytes(bytes)), _) => key = text(bytes),
                // A list in a map is a nested message.
                ((2, Wire::Bytes(bytes)), list @ Type::List(_)) => {
                    for part in parts(bytes) {
                        if let (1, wire) = part? {
                            self.put(list, wire, &mut value, depth + 1)?;
                        }
                    }
                }
                ((2, wire), item) => value = self.value(item, wire, depth + 1)?,
                _ => {}
            }
        }
        if value.is_null() {
            // Omitted fields have the zero value.
            value = match item.pointee() {
                Type::Text(_) | Type::Bytes => Value::from(""),
                Type::Quantity => Value::from("0"),
                Type::Struct(_) => Value::Object(Map::new()),
                _ => Value::Null,
            };
        }
        Ok((key, value))
    }

    fn value(&self, kind: &Type, wire: Wire<'_>, depth: usize) -> Result<Value, WireError> {
        Ok(match (kind.pointee(), wire) {
            (Type::Text(_), Wire::Bytes(bytes)) => text(bytes).into(),
            (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Type::Int(_), Wire::Number(number)) => (number as i64).into(),
            (Type::Float, Wire::Number(number)) => f64::from_bits(number).into(),
            (Type::Bool, Wire::Number(number)) => (number != 0).into(),
            (Type::Quantity, Wire::Bytes(bytes)) => {
                first(bytes)?.map_or("0".into(), |bytes| text(bytes).into())
            }
            (Type::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
            (Type::Time, Wire::Bytes(bytes)) => time(bytes)?.map_or(Value::Null, |at| at.rfc3339().into()),
            (Type::MicroTime, Wire::Bytes(bytes)) => {
                time(bytes)?.map_or(Value::Null, |at| at.rfc3339_micro().into())
            }
            (Type::Any, Wire::Bytes(bytes)) => match first(bytes)? {
                None => Value::Null,
                Some(bytes) => {
                    serde_json::from_slice(bytes).map_err(|_| WireError::Unfit("a part is no JSON"))?
                }
            },
            (Type::Struct(id), Wire::Bytes(bytes)) => {
                let mut map = Map::new();
                self.fields(*id, &[], bytes, &mut map, depth + 1)?;
                Value::Object(map)
            }
            (_, Wire::Number(_)) => return Err(WireError::Wire(0)),
            (_, Wire::Bytes(_)) => return Err(WireError::Wire(2)),
        })
    }
}

/// Returns the bytes of field 1.
fn first(bytes: &[u8]) -> Result<Option<&[u8]>, WireError> {
    let mut found = None;
    for part in parts(bytes) {
        if let (1, Wire::Bytes(bytes)) = part? {
            found = Some(bytes);
        }
    }
    Ok(found)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, WireError> {
    let (mut is_text, mut number, mut detail) = (false, 0_i64, String::new());
    for part in parts(bytes) {
        match part? {
            (1, Wire::Number(kind)) => is_text = kind != 0,
            (2, Wire::Number(value)) => number = value as i64,
            (3, Wire::Bytes(bytes)) => detail = text(bytes),
            _ => {}
        }
    }
    Ok(if is_text { detail.into() } else { number.into() })
}

fn time(bytes: &[u8]) -> Result<Option<Instant>, WireError> {
    let (mut seconds, mut nanos) = (None, 0_i64);
    for part in parts(bytes) {
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

    /// Encodes a message for tests: `1:"text"`, `2:{…}`, `3:7`.
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
        // A volume's source is inlined: a nested message on the wire, but not in JSON.
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
