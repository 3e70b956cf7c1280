//! Fields as the server records them (`FieldsV1`): takes the record, gives names and elements.

use std::fmt;

use serde_json::{Map, Value};

/// What is recorded below one place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a>(Option<&'a Map<String, Value>>);

/// One entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    /// The entry whose fields have these values.
    Key(Map<String, Value>),
    /// The entry that is this value.
    Value(Value),
    /// The entry at this place.
    Index(usize),
}

impl<'a> Fields<'a> {
    /// The record itself.
    pub(super) fn of(record: &'a Value) -> Self {
        Self(record.as_object())
    }

    /// Nothing is recorded below: the value is owned as one.
    pub(super) fn is_leaf(self) -> bool {
        self.0.is_none_or(|map| map.keys().all(|key| key == "."))
    }

    /// What is recorded below a field, if the field is owned.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.below(&format!("f:{name}"))
    }

    /// What is recorded below a key of the record.
    pub(super) fn below(self, key: &str) -> Option<Self> {
        self.0?.get(key).map(Self::of)
    }

    /// Every owned field.
    pub(super) fn names(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.0
            .into_iter()
            .flatten()
            .filter_map(|(key, below)| Some((key.strip_prefix("f:")?, Self::of(below))))
    }

    /// Every owned entry of a list.
    pub(super) fn elements(self) -> impl Iterator<Item = (&'a str, Element, Self)> {
        self.0
            .into_iter()
            .flatten()
            .filter_map(|(key, below)| Some((key.as_str(), Element::parse(key)?, Self::of(below))))
    }
}

impl Element {
    /// Reads a key of the record.
    pub(super) fn parse(key: &str) -> Option<Self> {
        let (kind, text) = key.split_once(':')?;
        match kind {
            "k" => serde_json::from_str(text).ok().map(Self::Key),
            "v" => serde_json::from_str(text).ok().map(Self::Value),
            "i" => text.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// Whether `entry` is the one meant. A key that the entry leaves out has its default on the server, which only a string of
    /// one kind has (the protocol of ports), so that one is known here.
    pub(super) fn is(&self, entry: &Value) -> bool {
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
