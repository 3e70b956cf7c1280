//! An owned tree without positions, created by the parsers and written to a [`Sink`].

use std::collections::BTreeMap;

use crate::{KeyOrder, Sink};

/// Map of a [`Value`]. The keys are in byte order.
pub type Map = BTreeMap<String, Value>;

/// 2⁶³. Every integral float below this bound fits an `i64`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A node of a document.
///
/// The parsers never create a tree deeper than [`Budget::depth`](crate::Budget), so recursive traversal,
/// cloning, comparison and drop are safe.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer too large for [`Value::Int`].
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    String(String),
    /// A list.
    List(Vec<Value>),
    /// A map.
    Map(Map),
}

impl Value {
    /// Writes the whole tree to `sink`, with map entries in the key order of the sink.
    pub fn emit(&self, sink: &mut dyn Sink) {
        match self {
            Self::Null => sink.null(),
            Self::Bool(value) => sink.bool(*value),
            Self::Int(value) => sink.int(*value),
            Self::Uint(value) => sink.uint(*value),
            Self::Float(value) => sink.float(*value),
            Self::String(value) => sink.string(value.as_bytes()),
            Self::List(items) => emit_list(items, sink),
            Self::Map(map) => emit_map(map, sink),
        }
    }

    /// Returns the entry `key` of a map, or `None` for any other value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// Returns the node at the path `keys` through nested maps.
    #[must_use]
    pub fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the string, or `None` for any other value.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean, or `None` for any other value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number as an `i64`, or `None` if it does not fit or is not an integer. A float without
    /// fraction is an integer.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Uint(value) => i64::try_from(*value).ok(),
            Self::Float(value) => {
                let whole = *value as i64;
                (value.fract() == 0.0 && value.abs() < TWO_TO_63).then_some(whole)
            }
            _ => None,
        }
    }

    /// Returns the number as a float, or `None` for any other value.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the list, or `None` for any other value.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the map, or `None` for any other value.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the map for modification, or `None` for any other value.
    #[must_use]
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the name that Go's JSON errors use for this kind of value: `string`, `number`, `bool`,
    /// `array`, `object` or `null`.
    #[must_use]
    pub fn json_kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) | Self::Float(_) => "number",
            Self::String(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }
}

fn emit_list(items: &[Value], sink: &mut dyn Sink) {
    sink.begin_list(items.len());
    for item in items {
        item.emit(sink);
    }
    sink.end_list();
}

fn emit_map(map: &Map, sink: &mut dyn Sink) {
    sink.begin_map(map.len());
    let order = sink.key_order();
    if order == KeyOrder::Bytes || map.len() < 2 {
        for (key, value) in map {
            sink.key(key.as_bytes());
            value.emit(sink);
        }
    } else {
        let mut entries: Vec<_> = map.iter().collect();
        order.sort(&mut entries, |(key, _)| key.as_bytes());
        for (key, value) in entries {
            sink.key(key.as_bytes());
            value.emit(sink);
        }
    }
    sink.end_map();
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::List(items)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}
