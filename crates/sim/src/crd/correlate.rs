//! Finds the old value that corresponds to a part of a new object. List items correspond only if the list has
//! keys.

use serde_json::Value;

use super::schema::{List, Node};

/// An old value with its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldValue<'a> {
    pub value: &'a Value,
    pub schema: &'a Node,
}

impl OldValue<'_> {
    /// Returns the old value of a field, or `None` if the value or the schema does not contain it.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        Some(Self {
            value: self.value.get(name)?,
            schema: self.schema.field(name)?,
        })
    }

    /// Returns the old value of a list item, or `None` if the list has no keys or no item with these keys.
    pub(crate) fn item(self, item: &Value) -> Option<Self> {
        let schema = self.schema.items.as_deref()?;
        let value = item_by_keys(self.schema, self.value, item)?;
        Some(Self { value, schema })
    }

    /// Returns whether the new value equals the old one. The order of lists with keys is ignored. Fields
    /// that the schema does not contain count as changed.
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

/// Returns the item of an old list with the same keys as `item`.
pub(crate) fn item_by_keys<'a>(schema: &Node, old: &'a Value, item: &Value) -> Option<&'a Value> {
    let List::Map(keys) = &schema.list else {
        return None;
    };
    let has_same_keys = |one: &&Value| keys.iter().all(|key| one.get(key) == item.get(key));
    old.as_array()?.iter().find(has_same_keys)
}
