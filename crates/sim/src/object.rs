//! One version of one stored object: takes a JSON tree, gives it back whole or as bytes, with its metadata at hand.
//!
//! An object is kept as its serialised JSON (about a tenth of the tree's memory, and what most readers want anyway)
//! plus the parsed metadata that selectors, watches and garbage collection ask for.

use bytes::Bytes;
use serde_json::Value;

use crate::tree;

/// An immutable version of an object.
#[derive(Clone, Debug)]
pub struct Object {
    meta: Meta,
    /// `{"kind":"Pod","apiVersion":"v1",`: lists of builtin kinds leave it out of their items.
    head: Box<str>,
    /// The remaining fields and the closing brace.
    rest: Bytes,
    fields: Fields,
}

/// Paths and values that field selectors may ask for, beyond name and namespace.
pub type Fields = Box<[(Box<str>, Box<str>)]>;

/// The metadata that the store itself needs.
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
    /// `metadata.generation`, zero when there is none.
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
    /// Freezes a tree. `fields` are the values field selectors may ask for.
    #[must_use]
    pub fn freeze(value: &Value, fields: Fields) -> Self {
        let head = head(value);
        Self {
            meta: Meta::of(value),
            head: head.into(),
            rest: Bytes::from(rest(value)),
            fields,
        }
    }

    /// Its metadata.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The whole object as JSON text.
    #[must_use]
    pub fn json(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.head.len() + self.rest.len());
        self.write_json(&mut out);
        out.into()
    }

    /// Appends the whole object as JSON text.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(&self.rest);
    }

    /// Appends the object without kind and apiVersion, as lists of builtin kinds have their items.
    pub fn write_item(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(&self.rest);
    }

    /// The whole object as a tree.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json()).unwrap_or(Value::Null)
    }

    /// The value of a selectable field.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(&self.meta.name),
            "metadata.namespace" => Some(&self.meta.namespace),
            _ => self
                .fields
                .iter()
                .find(|(key, _)| &**key == path)
                .map(|(_, value)| &**value),
        }
    }

    /// The values field selectors may ask for.
    #[must_use]
    pub fn fields(&self) -> Fields {
        self.fields.clone()
    }

    /// Its key in the store.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.meta.namespace, &self.meta.name)
    }
}

fn head(value: &Value) -> String {
    let text = |key| tree::text(value, &[key]);
    let (kind, api_version) = (Value::from(text("kind")), Value::from(text("apiVersion")));
    format!("{{\"kind\":{kind},\"apiVersion\":{api_version},")
}

fn rest(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let fields = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
    for (at, (key, field)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // Writing JSON into a vector cannot fail.
        let _ = serde_json::to_writer(&mut out, key);
        out.push(b':');
        let _ = serde_json::to_writer(&mut out, field);
    }
    out.push(b'}');
    out
}

/// `namespace/name`, or the name alone: ordered as etcd orders them.
#[must_use]
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl Meta {
    /// The metadata of `value`.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let Some(meta) = value.get("metadata") else {
            return Self::default();
        };
        Self {
            name: tree::text(meta, &["name"]).into(),
            namespace: tree::text(meta, &["namespace"]).into(),
            uid: tree::text(meta, &["uid"]).into(),
            version: tree::text(meta, &["resourceVersion"]).parse().unwrap_or(0),
            generation: tree::int(meta, &["generation"]).unwrap_or(0),
            labels: pairs(meta),
            owners: tree::list(meta, &["ownerReferences"])
                .iter()
                .map(Owner::of)
                .collect(),
            finalizers: tree::list(meta, &["finalizers"])
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect(),
            deleting: meta.get("deletionTimestamp").is_some_and(|at| !at.is_null()),
        }
    }

    /// The value of label `key`.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(have, _)| (**have).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// The owner that controls it.
    #[must_use]
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}

fn pairs(meta: &Value) -> Box<[(Box<str>, Box<str>)]> {
    let mut pairs: Box<[(Box<str>, Box<str>)]> = tree::map(meta, &["labels"])
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect();
    pairs.sort();
    pairs
}

impl Owner {
    /// Reads one owner reference.
    #[must_use]
    pub fn of(value: &Value) -> Self {
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
