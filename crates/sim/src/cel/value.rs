//! Values of expressions. Lists and maps of an object are borrowed and have the types of their schema; only
//! scalars are copied.

use std::borrow::Cow;
use std::rc::Rc;

use kube_cel::cel;
use serde_json::Value;

use super::library;
use crate::crd::schema::{Additional, List, Node};

#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Rc<[u8]>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    /// A list or map of an object, with its schema if it has one.
    Tree(&'a Value, Option<&'a Node>),
    Optional(Option<Rc<Val<'a>>>),
    /// A value of a library, such as a time or quantity.
    Library(cel::Value),
    Type(&'static str),
    Url(Rc<str>),
}

impl<'a> Val<'a> {
    /// Returns the value for a part of an object with this schema.
    pub(crate) fn from_json(value: &'a Value, schema: Option<&'a Node>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => {
                let is_double = schema.is_some_and(|schema| schema.kind == "number");
                match number.as_i64() {
                    Some(int) if !is_double => Self::Int(int),
                    _ => Self::Double(number.as_f64().unwrap_or_default()),
                }
            }
            Value::String(text) => Self::from_text(text, schema),
            tree => Self::Tree(tree, schema),
        }
    }

    fn from_text(text: &'a str, schema: Option<&'a Node>) -> Self {
        let plain = || Self::Text(Cow::Borrowed(text));
        let schema = schema.filter(|schema| schema.kind == "string" && !schema.int_or_string);
        let converted = match schema.map_or("", |schema| schema.checks.format.as_str()) {
            "date-time" => library::call_by_name("timestamp", vec![plain()]),
            "date" => library::call_by_name("timestamp", vec![Self::text(format!("{text}T00:00:00Z"))]),
            "duration" => library::call_by_name("duration", vec![plain()]),
            "byte" => library::call_by_name("base64.decode", vec![plain()]),
            _ => return plain(),
        };
        converted.unwrap_or_else(|_| plain())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Cow::Owned(text.into()))
    }

    /// Returns the name of the type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) | Self::Tree(Value::Array(_), _) => "list",
            Self::Map(_) | Self::Tree(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Library(_) | Self::Url(_) => "object",
            Self::Type(_) => "type",
        }
    }

    /// Returns the items of a list; `None` for other values.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some((**items).clone()),
            Self::Tree(Value::Array(items), schema) => {
                let item_schema = schema.and_then(|schema| schema.items.as_deref());
                Some(
                    items
                        .iter()
                        .map(|item| Self::from_json(item, item_schema))
                        .collect(),
                )
            }
            _ => None,
        }
    }

    /// Returns the entries of a map; `None` for other values.
    pub(crate) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some((**entries).clone()),
            Self::Tree(Value::Object(map), schema) => {
                let entry = |(key, value): (&'a String, &'a Value)| {
                    let value_schema = schema.and_then(|schema| schema.field(key));
                    (
                        Self::Text(Cow::Borrowed(key)),
                        Self::from_json(value, value_schema),
                    )
                };
                Some(map.iter().map(entry).collect())
            }
            _ => None,
        }
    }

    /// Returns the number of items, entries, characters or bytes; `None` for other values.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::Map(entries) => Some(entries.len()),
            Self::Tree(Value::Array(items), _) => Some(items.len()),
            Self::Tree(Value::Object(map), _) => Some(map.len()),
            Self::Text(text) => Some(text.chars().count()),
            Self::Bytes(bytes) => Some(bytes.len()),
            _ => None,
        }
    }

    /// Returns the value of a field or entry, or `None` if it does not exist. Fails if the value cannot
    /// have fields.
    pub(crate) fn field(&self, name: &str) -> Result<Option<Self>, ()> {
        match self {
            Self::Tree(Value::Object(map), schema) => {
                // Expressions escape the names of properties, but not the keys of maps.
                let has_properties =
                    schema.is_some_and(|schema| !matches!(schema.additional, Some(Additional::Schema(_))));
                let name = if has_properties {
                    super::types::unescape(name).unwrap_or_else(|| name.to_owned())
                } else {
                    name.to_owned()
                };
                let field_schema = schema.and_then(|schema| schema.field(&name));
                Ok(map.get(&name).map(|value| Self::from_json(value, field_schema)))
            }
            Self::Map(_) => Ok(self.entry(&Val::Text(Cow::Borrowed(name)))),
            _ => Err(()),
        }
    }

    /// Returns the entry of a map by its key, without escaping.
    pub(crate) fn entry(&self, key: &Val<'_>) -> Option<Self> {
        match self {
            Self::Tree(Value::Object(map), schema) => {
                let Val::Text(key) = key else { return None };
                let value_schema = schema.and_then(|schema| schema.field(key));
                map.get(key.as_ref())
                    .map(|value| Self::from_json(value, value_schema))
            }
            Self::Map(entries) => entries
                .iter()
                .find(|(existing, _)| existing.equals(key))
                .map(|(_, value)| value.clone()),
            _ => None,
        }
    }

    /// Returns whether two values are equal. Numbers of different types are compared by value, sets in any
    /// order.
    pub(crate) fn equals(&self, other: &Val<'_>) -> bool {
        match (self, other) {
            (Self::Null, Val::Null) => true,
            (Self::Bool(a), Val::Bool(b)) => a == b,
            (Self::Text(a), Val::Text(b)) => a == b,
            (Self::Bytes(a), Val::Bytes(b)) => a == b,
            (Self::Type(a), Val::Type(b)) => a == b,
            (Self::Url(a), Val::Url(b)) => a == b,
            (Self::Library(a), Val::Library(b)) => a == b,
            (Self::Optional(a), Val::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (Self::Tree(a, x), Val::Tree(b, y)) if !has_schema(*x) && !has_schema(*y) && a == b => true,
            _ => match (self.as_number(), other.as_number()) {
                (Some(a), Some(b)) => super::number::compare(a, b) == Some(std::cmp::Ordering::Equal),
                _ => self.equal_elements(other),
            },
        }
    }

    fn equal_elements(&self, other: &Val<'_>) -> bool {
        if let (Some(a), Some(b)) = (self.items(), other.items()) {
            let unordered = matches!(self, Self::Tree(_, Some(schema)) if schema.list != List::Atomic);
            return a.len() == b.len()
                && if unordered {
                    a.iter().all(|one| b.iter().any(|other| one.equals(other)))
                } else {
                    a.iter().zip(&b).all(|(a, b)| a.equals(b))
                };
        }
        if let (Some(a), Some(_)) = (self.entries(), other.entries()) {
            return self.len() == other.len()
                && a.iter()
                    .all(|(key, value)| other.entry(key).is_some_and(|other| value.equals(&other)));
        }
        false
    }

    /// Returns the number; `None` for other values.
    pub(crate) fn as_number(&self) -> Option<super::number::Number> {
        use super::number::Number;
        match self {
            Self::Int(int) => Some(Number::Int(*int)),
            Self::Uint(uint) => Some(Number::Uint(*uint)),
            Self::Double(double) => Some(Number::Double(*double)),
            _ => None,
        }
    }
}

fn has_schema(schema: Option<&Node>) -> bool {
    schema.is_some()
}
