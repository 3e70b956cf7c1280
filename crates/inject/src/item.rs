//! Injected content as an ordered tree, so that keys keep a readable order.

use mainstay_yaml::Value;

/// A node of injected content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// A string.
    Text(String),
    /// An integer.
    Int(i64),
    /// A boolean.
    Bool(bool),
    List(Vec<Item>),
    /// A map with its keys in output order.
    Map(Vec<(&'static str, Item)>),
}

impl Item {
    /// Creates a string.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the string under the key `name`.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Map(entries) => entries.iter().find_map(|(key, value)| match value {
                Self::Text(text) if *key == "name" => Some(text.as_str()),
                _ => None,
            }),
            _ => None,
        }
    }

    /// Converts the item to a YAML value.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Int(number) => Value::Int(*number),
            Self::Bool(value) => Value::Bool(*value),
            Self::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Self::Map(entries) => {
                let pairs = entries.iter();
                Value::Map(
                    pairs
                        .map(|(key, item)| ((*key).to_owned(), item.value()))
                        .collect(),
                )
            }
        }
    }
}
