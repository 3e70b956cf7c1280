//! Finds the old value that corresponds to a part of a new object. Items of lists are matched by their keys
//! only.

use serde_json::Value;

use super::schema::{List, Node};

/// An old value, with its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Old<'a> {
    pub value: &'a Value,
    pub schema: &'a Node,
}

impl Old<'_> {
    /// The old value of a field; `None` if the schema does not contain the field.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        Some(Self {
            value: self.value.get(name)?,
            schema: self.schema.field(name)?,
        })
    }

    /// The old value of an item.
    pub(crate) fn item(self, item: &Value) -> Option<Self> {
        let schema = self.schema.items.as_deref()?;
        let value = item_by_keys(self.schema, self.value, item)?;
        Some(Self { value, schema })
    }

    /// Returns whether nothing has changed, as far as the schema is concerned.
    pub(crate) fn equals(self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(new)) => {
                let by_keys = matches!(self.schema.list, List::Map(_)) && self.schema.items.is_some();
                old.len() == new.len()
                    && if by_keys {
                        new.iter()
                            .all(|item| self.item(item).is_some_and(|old| old.equals(item)))
                    } else {
                        old == new
                    }
            }
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new
                        .iter()
                        .all(|(key, value)| self.field(key).is_some_and(|old| old.equals(value)))
            }
            (old, new) => old == new,
        }
    }
}

/// The item of an old list that has the same keys.
pub(crate) fn item_by_keys<'a>(schema: &Node, old: &'a Value, item: &Value) -> Option<&'a Value> {
    let List::Map(keys) = &schema.list else {
        return None;
    };
    let same = |one: &&Value| keys.iter().all(|key| one.get(key) == item.get(key));
    old.as_array()?.iter().find(same)
}
