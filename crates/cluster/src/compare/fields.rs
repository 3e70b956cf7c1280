//! Access to `FieldsV1` records: field names and list elements.

use std::fmt;

use serde_json::{Map, Value};

/// The part of a record below one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a>(Option<&'a Map<String, Value>>);

/// A list element.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    /// The element whose key fields have these values.
    Key(Map<String, Value>),
    /// The element with this value.
    Value(Value),
    /// The element at this index.
    Index(usize),
}

impl<'a> Fields<'a> {
    /// Creates a view of a whole record.
    pub(super) fn new(record: &'a Value) -> Self {
        Self(record.as_object())
    }

    /// Whether nothing is recorded below the path, which means that the value is atomic.
    pub(super) fn is_leaf(self) -> bool {
        self.0.is_none_or(|map| map.keys().all(|key| key == "."))
    }

    /// Returns the record below a field, or `None` if the field is not owned.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.child(&format!("f:{name}"))
    }

    /// Returns the record below a key, or `None` if there is no such key.
    pub(super) fn child(self, key: &str) -> Option<Self> {
        self.0?.get(key).map(Self::new)
    }

    /// Returns every owned field with the record below it.
    pub(super) fn names(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.0
            .into_iter()
            .flatten()
            .filter_map(|(key, child)| Some((key.strip_prefix("f:")?, Self::new(child))))
    }

    /// Returns every owned list element with its key and the record below it.
    pub(super) fn elements(self) -> impl Iterator<Item = (&'a str, Element, Self)> {
        self.0
            .into_iter()
            .flatten()
            .filter_map(|(key, child)| Some((key.as_str(), Element::parse(key)?, Self::new(child))))
    }
}

impl Element {
    /// Parses a key of a record; `None` if it is not the key of a list element.
    pub(super) fn parse(key: &str) -> Option<Self> {
        let (kind, text) = key.split_once(':')?;
        match kind {
            "k" => serde_json::from_str(text).ok().map(Self::Key),
            "v" => serde_json::from_str(text).ok().map(Self::Value),
            "i" => text.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// Whether `entry` is this element. A missing key field has its server default. The only key field
    /// with a default is the protocol of ports.
    pub(super) fn matches(&self, entry: &Value) -> bool {
        match self {
            Self::Key(keys) => keys.iter().all(|(key, value)| match entry.get(key) {
                Some(found) => found == value,
                None => key == "protocol" && value == "TCP",
            }),
            Self::Value(value) => entry == value,
            Self::Index(_) => false,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                f.write_str(&keys.join(","))
            }
            Self::Value(value) => write!(f, "{value}"),
            Self::Index(index) => write!(f, "{index}"),
        }
    }
}
