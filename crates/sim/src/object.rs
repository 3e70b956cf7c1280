//! A stored version of an object: its JSON text with the metadata parsed.
//!
//! An object is stored as serialized JSON, plus the parsed metadata that selectors, watches and garbage
//! collection use. JSON text needs about a tenth of the memory of a tree, and most responses return it
//! unchanged.
//!
//! During a write, the tree of an object is *packed*: each field set of `managedFields` is one string,
//! because field sets are usually larger than the rest of the object and few writes change them. In requests,
//! responses and stored bytes, field sets are JSON objects.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::tree;

/// An immutable version of an object.
#[derive(Clone, Debug)]
pub struct Object {
    meta: Meta,
    /// The whole object as JSON.
    text: Bytes,
    /// Length of the prefix `{"kind":"Pod","apiVersion":"v1",`, which items of builtin lists omit.
    head: usize,
    /// Byte ranges of the field sets of `managedFields` in the text.
    sets: FieldSetRanges,
    fields: Fields,
}

/// Byte ranges of field sets in a text, in order.
type FieldSetRanges = Box<[Range<u32>]>;

/// Paths and values of selectable fields, except name and namespace.
pub type Fields = Box<[(Cow<'static, str>, Box<str>)]>;

/// Metadata that the store uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion`.
    pub version: u64,
    /// `metadata.generation`, or zero if it is unset.
    pub generation: i64,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.ownerReferences`.
    pub owners: Box<[Owner]>,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `apiVersion`.
    pub api_version: Box<str>,
    /// `kind`.
    pub kind: Box<str>,
    /// `name`.
    pub name: Box<str>,
    /// `uid`.
    pub uid: Box<str>,
    /// `controller`.
    pub controller: bool,
    /// `blockOwnerDeletion`.
    pub blocks_deletion: bool,
}

impl Object {
    /// Creates an object from a tree, packed or not. `fields` are the values of its selectable fields.
    #[must_use]
    pub fn freeze(value: &Value, fields: Fields) -> Self {
        let (text, head, sets) = BUFFER.with_borrow_mut(|out| {
            out.clear();
            let (head, sets) = write_object(value, out);
            (Bytes::copy_from_slice(out), head, sets)
        });
        Self {
            meta: Meta::from_value(value),
            text,
            head,
            sets,
            fields,
        }
    }

    /// Returns the parsed metadata.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the whole object as JSON text.
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.text.clone()
    }

    /// Returns the length of the JSON text in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Appends the whole object as JSON text.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text);
    }

    /// Appends the object without `kind` and `apiVersion`, the form of items of builtin lists.
    pub fn write_item(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(self.text.get(self.head..).unwrap_or_default());
    }

    /// Returns the whole object as a tree.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or(Value::Null)
    }

    /// Returns the whole object as a packed tree, from which a write starts.
    #[must_use]
    pub fn packed(&self) -> Value {
        let read = BUFFER.with_borrow_mut(|buffer| {
            write_without_field_sets(&self.text, &self.sets, buffer);
            serde_json::from_slice(buffer)
        });
        read.ok()
            .and_then(|value| insert_field_sets(value, &self.text, &self.sets))
            .unwrap_or(Value::Null)
    }

    /// Returns the value of a selectable field.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(&self.meta.name),
            "metadata.namespace" => Some(&self.meta.namespace),
            _ => self
                .fields
                .iter()
                .find(|(key, _)| key == path)
                .map(|(_, value)| &**value),
        }
    }

    /// Returns the values of the selectable fields.
    #[must_use]
    pub fn fields(&self) -> Fields {
        self.fields.clone()
    }

    /// Returns the key of the object in its table.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.meta.namespace, &self.meta.name)
    }
}

/// Parses a request body into a packed tree, in which the field sets of `managedFields` remain text.
pub(crate) fn parse_packed(body: &[u8]) -> serde_json::Result<Value> {
    let sets = find_field_sets(body);
    if sets.is_empty() {
        return serde_json::from_slice(body);
    }
    let read = BUFFER.with_borrow_mut(|buffer| {
        write_without_field_sets(body, &sets, buffer);
        serde_json::from_slice(buffer)
    });
    match read.ok().and_then(|value| insert_field_sets(value, body, &sets)) {
        Some(value) => Ok(value),
        // The JSON is invalid, or another field is named `fieldsV1`: parse the original text.
        None => serde_json::from_slice(body),
    }
}

/// Finds the byte ranges of all objects in the text whose key is `fieldsV1`.
fn find_field_sets(text: &[u8]) -> Vec<Range<u32>> {
    const KEY: &[u8] = b"\"fieldsV1\":{";
    let mut sets = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| find_bytes(rest, KEY)) {
        let start = at + found + KEY.len() - 1;
        let Some(end) = text.get(start..).and_then(end_of_object) else {
            return Vec::new();
        };
        at = start + end;
        sets.extend(to_u32_range(start, at));
    }
    sets
}

fn find_bytes(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part == word)
}

/// Returns the byte offset of the end of the JSON object at the start of the text.
fn end_of_object(text: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted && depth <= 1 => return Some(at + 1),
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Writes the text with an empty string instead of each field set, so that the parser skips the field sets.
fn write_without_field_sets(text: &[u8], sets: &[Range<u32>], out: &mut Vec<u8>) {
    out.clear();
    let mut from = 0;
    for set in sets {
        out.extend_from_slice(slice(text, &(from..set.start)));
        out.extend_from_slice(b"\"\"");
        from = set.end;
    }
    out.extend_from_slice(text.get(from as usize..).unwrap_or_default());
}

/// Inserts the field sets into the tree. Returns `None` if the tree contains a different number of them.
fn insert_field_sets(mut value: Value, text: &[u8], sets: &[Range<u32>]) -> Option<Value> {
    let entries = tree::list_mut(&mut value, &["metadata", "managedFields"]);
    let locations = entries.into_iter().flatten();
    let locations = locations.filter_map(|entry| entry.get_mut("fieldsV1").filter(|set| *set == ""));
    let mut sets = sets.iter();
    for location in locations {
        *location = String::from_utf8_lossy(slice(text, sets.next()?)).into();
    }
    sets.next().is_none().then_some(value)
}

fn slice<'t>(text: &'t [u8], range: &Range<u32>) -> &'t [u8] {
    let range = range.start as usize..range.end as usize;
    text.get(range).unwrap_or_default()
}

thread_local! {
    /// A reusable buffer, which avoids an allocation per write.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes the object with `kind` and `apiVersion` first. Returns the length of this prefix and the ranges of
/// the field sets.
fn write_object(value: &Value, out: &mut Vec<u8>) -> (usize, FieldSetRanges) {
    for (key, lead) in [("kind", "{\"kind\":"), ("apiVersion", ",\"apiVersion\":")] {
        out.extend_from_slice(lead.as_bytes());
        write_text(tree::text(value, &[key]), out);
    }
    out.push(b',');
    let head = out.len();
    let mut sets = Vec::new();
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
    write_fields(fields, out, |key, field, out| match field {
        Value::Object(metadata) if key == "metadata" => write_metadata(metadata, out, &mut sets),
        _ => write_json(field, out),
    });
    (head, sets.into())
}

fn write_metadata(metadata: &Map<String, Value>, out: &mut Vec<u8>, sets: &mut Vec<Range<u32>>) {
    out.push(b'{');
    write_fields(metadata.iter(), out, |key, field, out| match field {
        Value::Array(entries) if key == "managedFields" => write_managed(entries, out, sets),
        _ => write_json(field, out),
    });
}

/// Writes `managedFields` with packed sets expanded.
fn write_managed(entries: &[Value], out: &mut Vec<u8>, sets: &mut Vec<Range<u32>>) {
    out.push(b'[');
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let Value::Object(fields) = entry else {
            write_json(entry, out);
            continue;
        };
        out.push(b'{');
        write_fields(fields.iter(), out, |key, field, out| {
            let start = out.len();
            match field {
                Value::String(packed) if key == "fieldsV1" => out.extend_from_slice(packed.as_bytes()),
                _ => write_json(field, out),
            }
            if key == "fieldsV1" {
                sets.extend(to_u32_range(start, out.len()));
            }
        });
    }
    out.push(b']');
}

fn to_u32_range(start: usize, end: usize) -> Option<Range<u32>> {
    Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
}

/// Writes the fields of an object and the closing brace.
fn write_fields<'v>(
    fields: impl Iterator<Item = (&'v String, &'v Value)>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&str, &Value, &mut Vec<u8>),
) {
    for (at, (key, field)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        write(key, field, out);
    }
    out.push(b'}');
}

// Both functions ignore the result because writing JSON to a vector cannot fail.

fn write_json(value: &Value, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, text);
}

/// Returns `namespace/name`, or the name of a cluster-scoped object. Keys sort as in etcd.
#[must_use]
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl Meta {
    /// Parses the metadata of `value`.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let Some(meta) = value.get("metadata") else {
            return Self::default();
        };
        Self {
            name: tree::text(meta, &["name"]).into(),
            namespace: tree::text(meta, &["namespace"]).into(),
            uid: tree::text(meta, &["uid"]).into(),
            version: tree::text(meta, &["resourceVersion"]).parse().unwrap_or(0),
            generation: tree::int(meta, &["generation"]).unwrap_or(0),
            labels: parse_labels(meta),
            owners: tree::list(meta, &["ownerReferences"])
                .iter()
                .map(Owner::from_value)
                .collect(),
            finalizers: tree::list(meta, &["finalizers"])
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect(),
            deleting: meta.get("deletionTimestamp").is_some_and(|at| !at.is_null()),
        }
    }

    /// Returns the value of label `key`.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(have, _)| (**have).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// Returns the controlling owner.
    #[must_use]
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

fn parse_labels(meta: &Value) -> Box<[(Box<str>, Box<str>)]> {
    let mut pairs: Box<[(Box<str>, Box<str>)]> = tree::map(meta, &["labels"])
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect();
    pairs.sort();
    pairs
}

impl Owner {
    /// Parses an owner reference.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self {
            api_version: tree::text(value, &["apiVersion"]).into(),
            kind: tree::text(value, &["kind"]).into(),
            name: tree::text(value, &["name"]).into(),
            uid: tree::text(value, &["uid"]).into(),
            controller: tree::flag(value, &["controller"]),
            blocks_deletion: tree::flag(value, &["blockOwnerDeletion"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packed_objects_are_stored_in_normal_form() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "fieldsType": "FieldsV1", "fieldsV1": fields});
        let (one, other) = (json!({"f:a": {"k:{\"name\":\"x\"}": {}}}), json!({"f:b": {}}));
        let with = |one: Value, other: Value| {
            let entries = [entry("m", one), json!({"manager": "none"}), entry("o", other)];
            json!({"kind": "K", "apiVersion": "v1", "metadata": {"name": "n", "managedFields": entries}, "spec": {}})
        };
        let wire = with(one.clone(), other.clone());
        let packed = with(one.to_string().into(), other.to_string().into());
        for given in [&wire, &packed] {
            let object = Object::freeze(given, Fields::default());
            assert_eq!(object.value(), wire);
            assert_eq!(object.packed(), packed);
        }
        assert_eq!(parse_packed(wire.to_string().as_bytes()).unwrap(), packed);
    }

    #[test]
    fn other_fields_called_fields_v1_are_parsed_normally() {
        let check = |text: &str| {
            let read = parse_packed(text.as_bytes()).map_err(|error| error.to_string());
            let plain = serde_json::from_str(text).map_err(|error| error.to_string());
            assert_eq!(read, plain, "{text}");
        };
        check(r#"{"spec":{"fieldsV1":{"a":1}}}"#);
        check(
            r#"{"metadata":{"managedFields":[{"fieldsV1":""}]},"spec":{"fieldsV1":{"a":{}},"fieldsV1":{"b":{}}}}"#,
        );
        check(r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}]}}"#);
        check(r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]},"x":}"#);
        check(r#"{"a":"\"fieldsV1\":{","b":1}"#);
    }
}
