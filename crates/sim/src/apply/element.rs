//! Path elements of a field set: a field name, the keys of a list item, a set item or an index. Their wire
//! form is `f:spec`, `k:{"name":"web"}`, `v:"a"` or `i:0`, their form in messages is `.spec`, `[name="web"]`,
//! `[="a"]` or `[0]`.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::error::ManagedFieldsError;

/// An element of a field path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of a struct or a key of a map.
    Field(Name),
    /// An item of an associative list, by its key fields, sorted by name.
    Key(Vec<(Name, Leaf)>),
    /// An item of a set.
    Item(Leaf),
    /// An item of a list by index.
    Index(i64),
}

/// A field name; borrowed from the schema for known fields to avoid allocations.
pub(super) type Name = Cow<'static, str>;

/// A value in a path, ordered like `structured-merge-diff` orders values.
#[derive(Clone, Debug)]
pub(super) struct Leaf(pub Value);

impl Element {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(Cow::Owned(name.to_owned()))
    }

    /// Parses the wire form; returns `None` for forms of a future version, which are dropped.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, ManagedFieldsError> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(ManagedFieldsError::MissingColon(text.to_owned()));
        };
        let json = |rest: &str| serde_json::from_str::<Value>(rest);
        Ok(match kind {
            "f" => Some(Self::field(rest)),
            "v" => Some(Self::Item(Leaf(json(rest)?))),
            "i" => Some(Self::Index(
                rest.parse()
                    .map_err(|_| ManagedFieldsError::InvalidIndex(rest.to_owned()))?,
            )),
            "k" => match json(rest)? {
                Value::Object(keys) => Some(Self::from_keys(
                    keys.into_iter()
                        .map(|(name, value)| (Cow::Owned(name), Leaf(value)))
                        .collect(),
                )),
                _ => return Err(ManagedFieldsError::InvalidKeys(rest.to_owned())),
            },
            _ => None,
        })
    }

    /// Returns the element of a list item with these keys.
    pub(super) fn from_keys(mut keys: Vec<(Name, Leaf)>) -> Self {
        keys.sort_by(|one, other| one.0.cmp(&other.0));
        Self::Key(keys)
    }

    /// Returns the wire form.
    pub(super) fn to_wire(&self) -> String {
        let mut out = String::new();
        self.write_wire(&mut out);
        out
    }

    /// Appends the wire form.
    pub(super) fn write_wire(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(keys) => {
                let keys: Map<String, Value> = keys
                    .iter()
                    .map(|(name, leaf)| (name.to_string(), leaf.0.clone()))
                    .collect();
                out.push_str("k:");
                out.push_str(&Value::Object(keys).to_string());
            }
            Self::Item(leaf) => {
                out.push_str("v:");
                out.push_str(&leaf.0.to_string());
            }
            Self::Index(at) => {
                out.push_str("i:");
                out.push_str(&at.to_string());
            }
        }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<_> = keys
                    .iter()
                    .map(|(name, leaf)| format!("{name}={}", leaf.0))
                    .collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Item(leaf) => write!(f, "[={}]", leaf.0),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

/// Returns the rank of the type of a value in the sort order: numbers, strings, booleans, lists, maps, null.
fn type_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_values(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a
                .as_f64()
                .unwrap_or(f64::MAX)
                .total_cmp(&b.as_f64().unwrap_or(f64::MAX)),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => type_rank(one)
            .cmp(&type_rank(other))
            .then_with(|| one.to_string().cmp(&other.to_string())),
    }
}

/// Returns whether two values are equal; `1` equals `1.0`.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(one, other)| equal(one, other))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, one)| b.get(key).is_some_and(|other| equal(one, other)))
        }
        (Value::Number(_), Value::Number(_)) => compare_values(one, other).is_eq(),
        _ => one == other,
    }
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Leaf {}

impl PartialOrd for Leaf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Leaf {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}
