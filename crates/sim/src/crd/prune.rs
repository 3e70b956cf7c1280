//! Prunes unknown fields, drops nulls that are not allowed, and applies defaults.

use serde_json::{Map, Value};

use super::schema::{Additional, Node};
use crate::tree;
use crate::write::MAX_ETCD_REQUEST;

/// Fields that every object has.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object; returns the paths of dropped fields, sorted.
pub(crate) fn prune(object: &mut Value, schema: &Node) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.walk(object, Some(schema), true);
    pruner.unknown.sort();
    pruner.unknown
}

/// Prunes a part of an object, which may be an embedded resource.
pub(crate) fn prune_part(value: &mut Value, schema: &Node) {
    Pruner::default().walk(value, Some(schema), schema.embedded);
}

#[derive(Default)]
struct Pruner {
    path: Vec<String>,
    unknown: Vec<String>,
}

impl Pruner {
    fn walk(&mut self, value: &mut Value, schema: Option<&Node>, object: bool) {
        let preserve = schema.is_some_and(|schema| schema.preserve);
        match value {
            Value::Object(map) => self.map(map, schema, object, preserve),
            Value::Array(items) => {
                let below = schema.and_then(|schema| schema.items.as_deref());
                if preserve && below.is_none() {
                    return;
                }
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    if preserve {
                        self.keep(item, below);
                    } else {
                        self.walk(item, below, below.is_some_and(|below| below.embedded));
                    }
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    /// Visits an item of a list whose unknown fields are preserved; so are the item's.
    fn keep(&mut self, value: &mut Value, schema: Option<&Node>) {
        let Some(schema) = schema else { return };
        match value {
            Value::Object(map) => self.map(map, Some(schema), schema.embedded, true),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{at}]"));
                    self.keep(item, schema.items.as_deref());
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: Option<&Node>, object: bool, preserve: bool) {
        let root = self.path.is_empty();
        map.retain(|key, value| {
            if object && META.contains(&key.as_str()) {
                return true;
            }
            let below = schema.and_then(|schema| schema.properties.get(key));
            let others = schema.and_then(|schema| schema.additional.as_ref());
            let below = match (below, others) {
                (Some(below), _) => Some(below),
                (None, Some(Additional::Like(below))) => Some(&**below),
                (None, Some(Additional::Any(_))) => None,
                (None, None) if preserve => return true,
                (None, None) => {
                    if !root || !META.contains(&key.as_str()) {
                        self.record(key);
                    }
                    return false;
                }
            };
            self.enter(key);
            self.walk(value, below, below.is_some_and(|below| below.embedded));
            self.path.pop();
            true
        });
    }

    fn enter(&mut self, key: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path.push(format!("{dot}{key}"));
    }

    fn record(&mut self, key: &str) {
        self.enter(key);
        self.unknown.push(self.path.concat());
        self.path.pop();
    }
}

/// Drops nulls from maps where the schema has neither `nullable` nor a default.
pub(crate) fn drop_nulls(value: &mut Value, schema: &Node) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let Some(below) = schema.field(key) else {
                return true;
            };
            if value.is_null() && !below.nullable && below.default.is_none() {
                return false;
            }
            drop_nulls(value, below);
            true
        }),
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for item in items {
                    drop_nulls(item, below);
                }
            }
        }
        _ => {}
    }
}

/// Applies defaults. Stops and returns false when their total size exceeds what an object may have: a small
/// object with many items can have large defaults.
#[must_use]
pub(crate) fn default(value: &mut Value, schema: &Node) -> bool {
    let mut defaults = Defaults {
        left: Some(MAX_ETCD_REQUEST),
    };
    defaults.apply(value, schema);
    defaults.left.is_some()
}

struct Defaults {
    /// The remaining size of defaults as JSON; `None` once it is exceeded.
    left: Option<usize>,
}

impl Defaults {
    fn apply(&mut self, value: &mut Value, schema: &Node) {
        match value {
            Value::Object(map) => {
                for (name, below) in &schema.properties {
                    if let Some(default) = &below.default
                        && map
                            .get(name)
                            .is_none_or(|there| there.is_null() && !below.nullable)
                        && let Some(default) = self.copy(default)
                    {
                        map.insert(name.clone(), default);
                    }
                }
                for (name, value) in map.iter_mut() {
                    if let Some(below) = schema.field(name) {
                        self.fill(value, below, !schema.properties.contains_key(name));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(below) = &schema.items {
                    for item in items {
                        self.fill(item, below, true);
                    }
                }
            }
            _ => {}
        }
    }

    fn fill(&mut self, value: &mut Value, schema: &Node, null_too: bool) {
        if null_too && value.is_null() && !schema.nullable {
            let default = schema.default.as_ref().and_then(|default| self.copy(default));
            *value = default.unwrap_or_default();
        }
        self.apply(value, schema);
    }

    fn copy(&mut self, default: &Value) -> Option<Value> {
        let left = self.left?;
        self.left = tree::json_size(default, left).map(|size| left - size);
        self.left.map(|_| default.clone())
    }
}
