//! Prunes unknown fields, removes nulls that are not allowed, and applies defaults.

use serde_json::{Map, Value};

use super::schema::{Additional, Node};
use crate::tree;
use crate::write::MAX_ETCD_REQUEST;

/// Fields that every object may have, regardless of its schema.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes an object. Returns the sorted paths of the removed fields.
pub(crate) fn prune(object: &mut Value, schema: &Node) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.prune_value(object, Some(schema), true);
    pruner.unknown.sort();
    pruner.unknown
}

/// Prunes a part of an object, which may be an embedded object.
pub(crate) fn prune_part(value: &mut Value, schema: &Node) {
    Pruner::default().prune_value(value, Some(schema), schema.embedded);
}

#[derive(Default)]
struct Pruner {
    path: Vec<String>,
    /// Paths of the removed fields.
    unknown: Vec<String>,
}

impl Pruner {
    fn prune_value(&mut self, value: &mut Value, schema: Option<&Node>, object: bool) {
        let preserve = schema.is_some_and(|schema| schema.preserve);
        match value {
            Value::Object(map) => self.prune_map(map, schema, object, preserve),
            Value::Array(items) => {
                let item_schema = schema.and_then(|schema| schema.items.as_deref());
                if preserve && item_schema.is_none() {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    if preserve {
                        self.prune_preserving(item, item_schema);
                    } else {
                        self.prune_value(
                            item,
                            item_schema,
                            item_schema.is_some_and(|schema| schema.embedded),
                        );
                    }
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    /// Prunes an item of a list that preserves unknown fields. The item preserves its unknown fields as well.
    fn prune_preserving(&mut self, value: &mut Value, schema: Option<&Node>) {
        let Some(schema) = schema else { return };
        match value {
            Value::Object(map) => self.prune_map(map, Some(schema), schema.embedded, true),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    self.prune_preserving(item, schema.items.as_deref());
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn prune_map(
        &mut self,
        map: &mut Map<String, Value>,
        schema: Option<&Node>,
        object: bool,
        preserve: bool,
    ) {
        let root = self.path.is_empty();
        map.retain(|key, value| {
            if object && OBJECT_FIELDS.contains(&key.as_str()) {
                return true;
            }
            let property = schema.and_then(|schema| schema.properties.get(key));
            let additional = schema.and_then(|schema| schema.additional.as_ref());
            let child = match (property, additional) {
                (Some(property), _) => Some(property),
                (None, Some(Additional::Schema(values))) => Some(&**values),
                (None, Some(Additional::Any(_))) => None,
                (None, None) if preserve => return true,
                (None, None) => {
                    if !root || !OBJECT_FIELDS.contains(&key.as_str()) {
                        self.record_unknown(key);
                    }
                    return false;
                }
            };
            self.push_key(key);
            self.prune_value(value, child, child.is_some_and(|child| child.embedded));
            self.path.pop();
            true
        });
    }

    fn push_key(&mut self, key: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path.push(format!("{dot}{key}"));
    }

    fn record_unknown(&mut self, key: &str) {
        self.push_key(key);
        self.unknown.push(self.path.concat());
        self.path.pop();
    }
}

/// Removes nulls from maps if their schema neither is `nullable` nor has a default.
pub(crate) fn drop_nulls(value: &mut Value, schema: &Node) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let Some(child) = schema.field(key) else {
                return true;
            };
            if value.is_null() && !child.nullable && child.default.is_none() {
                return false;
            }
            drop_nulls(value, child);
            true
        }),
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for item in items {
                    drop_nulls(item, item_schema);
                }
            }
        }
        _ => {}
    }
}

/// Applies defaults. Returns false if their total size exceeds the maximum size of an object; a small
/// object with many items can have large defaults.
#[must_use]
pub(crate) fn apply_defaults(value: &mut Value, schema: &Node) -> bool {
    let mut defaults = DefaultApplier {
        remaining: Some(MAX_ETCD_REQUEST),
    };
    defaults.apply(value, schema);
    defaults.remaining.is_some()
}

struct DefaultApplier {
    /// Remaining size of defaults as JSON in bytes; `None` if it is exceeded.
    remaining: Option<usize>,
}

impl DefaultApplier {
    fn apply(&mut self, value: &mut Value, schema: &Node) {
        match value {
            Value::Object(map) => {
                for (name, property) in &schema.properties {
                    if let Some(default) = &property.default
                        && map
                            .get(name)
                            .is_none_or(|value| value.is_null() && !property.nullable)
                        && let Some(default) = self.copy_default(default)
                    {
                        map.insert(name.clone(), default);
                    }
                }
                for (name, value) in map.iter_mut() {
                    if let Some(child) = schema.field(name) {
                        self.apply_to_child(value, child, !schema.properties.contains_key(name));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(item_schema) = &schema.items {
                    for item in items {
                        self.apply_to_child(item, item_schema, true);
                    }
                }
            }
            _ => {}
        }
    }

    /// Applies defaults to a value. With `replace_null`, also replaces a null that is not allowed.
    fn apply_to_child(&mut self, value: &mut Value, schema: &Node, replace_null: bool) {
        if replace_null && value.is_null() && !schema.nullable {
            let default = schema
                .default
                .as_ref()
                .and_then(|default| self.copy_default(default));
            *value = default.unwrap_or_default();
        }
        self.apply(value, schema);
    }

    /// Returns a copy of a default unless the remaining size is exceeded.
    fn copy_default(&mut self, default: &Value) -> Option<Value> {
        let remaining = self.remaining?;
        self.remaining = tree::json_size(default, remaining).map(|size| remaining - size);
        self.remaining.map(|_| default.clone())
    }
}
