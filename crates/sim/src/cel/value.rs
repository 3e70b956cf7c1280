//! Values of expressions. Parts of objects are borrowed and typed by their schema; only scalars are copied.

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
    /// A URL.
    Url(Rc<str>),
}

impl<'a> Val<'a> {
    /// Returns the value of a part of an object.
    pub(crate) fn from_json(value: &'a Value, schema: Option<&'a Node>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => {
                let wide = schema.is_some_and(|schema| schema.kind == "number");
                match number.as_i64() {
                    Some(int) if !wide => Self::Int(int),
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
        let read = match schema.map_or("", |schema| schema.checks.format.as_str()) {
            "date-time" => library::call("timestamp", vec![plain()]),
            "date" => library::call("timestamp", vec![Self::text(format!("{text}T00:00:00Z"))]),
            "duration" => library::call("duration", vec![plain()]),
            "byte" => library::call("base64.decode", vec![plain()]),
            _ => return plain(),
        };
        read.unwrap_or_else(|_| plain())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Cow::Owned(text.into()))
    }

    /// Returns the name of its type.
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

    /// Returns the items of a list.
    pub(crate) fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some((**items).clone()),
            Self::Tree(Value::Array(items), schema) => {
                let below = schema.and_then(|schema| schema.items.as_deref());
                Some(items.iter().map(|item| Self::from_json(item, below)).collect())
            }
            _ => None,
        }
    }

    /// Returns the entries of a map.
    pub(crate) fn entries(&self) -> Option<Vec<(Self, Self)>> {
        match self {
            Self::Map(entries) => Some((**entries).clone()),
            Self::Tree(Value::Object(map), schema) => {
                let entry = |(key, value): (&'a String, &'a Value)| {
                    let below = schema.and_then(|schema| schema.field(key));
                    (Self::Text(Cow::Borrowed(key)), Self::from_json(value, below))
                };
                Some(map.iter().map(entry).collect())
            }
            _ => None,
        }
    }

    /// Returns the number of items or entries.
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

    /// Returns the value of a field or entry; `Err` if the value cannot have fields.
    pub(crate) fn field(&self, name: &str) -> Result<Option<Self>, ()> {
        match self {
            Self::Tree(Value::Object(map), schema) => {
                // Property names are escaped in expressions; keys of maps are not.
                let named =
                    schema.is_some_and(|schema| !matches!(schema.additional, Some(Additional::Like(_))));
                let name = if named {
                    super::types::unescape(name).unwrap_or_else(|| name.to_owned())
                } else {
                    name.to_owned()
                };
                let below = schema.and_then(|schema| schema.field(&name));
                Ok(map.get(&name).map(|value| Self::from_json(value, below)))
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
                let below = schema.and_then(|schema| schema.field(key));
                map.get(key.as_ref()).map(|value| Self::from_json(value, below))
            }
            Self::Map(entries) => entries
                .iter()
                .find(|(own, _)| own.equals(key))
                .map(|(_, value)| value.clone()),
            _ => None,
        }
    }

    /// Returns whether two values are equal: numbers across types, sets in any order.
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
            (Self::Tree(a, x), Val::Tree(b, y)) if !is_special(*x) && !is_special(*y) && a == b => true,
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => super::number::compare(a, b) == Some(std::cmp::Ordering::Equal),
                _ => self.equal_parts(other),
            },
        }
    }

    fn equal_parts(&self, other: &Val<'_>) -> bool {
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

    /// Returns the number.
    pub(crate) fn number(&self) -> Option<super::number::Number> {
        use super::number::Number;
        match self {
            Self::Int(int) => Some(Number::Int(*int)),
            Self::Uint(uint) => Some(Number::Uint(*uint)),
            Self::Double(double) => Some(Number::Double(*double)),
            _ => None,
        }
    }
}

fn is_special(schema: Option<&Node>) -> bool {
    schema.is_some()
}
