//! Coalescing of the user's values with the defaults of a chart and its subcharts. Maps alias exactly as in
//! Helm, because templates can observe it: tables deeper than `global.x` are a single map in all charts,
//! and defaults that a subchart adds to them are visible in its parent.

use mainstay_template::{Map, Str, Value};

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::go;
use crate::tree::{copy_shallow, empty, snapshot, table, to_plain, to_template_map};
use crate::warning::{ValuesWarning, Warning};

const GLOBAL: &str = "global";

/// Handling of a null in a higher layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// The key is removed.
    Remove,
    /// The null is kept, so that the key can be removed later.
    Keep,
}

/// State of one pass over a chart and its subcharts.
pub(crate) struct Coalesce<'a> {
    pub(crate) nulls: Nulls,
    pub(crate) dialect: Dialect,
    pub(crate) warnings: &'a mut Vec<Warning>,
}

impl Coalesce<'_> {
    /// Adds the defaults of `chart` and its subcharts to `values`, which must not be shared with other
    /// users.
    pub(crate) fn run(&mut self, chart: &Chart, values: &Map) -> Result<(), ChartError> {
        self.coalesce_chart(chart, values, "")
    }

    fn coalesce_chart(&mut self, chart: &Chart, values: &Map, prefix: &str) -> Result<(), ChartError> {
        self.add_defaults(chart, values, prefix);
        self.coalesce_subcharts(chart, values, prefix)
    }

    fn coalesce_subcharts(&mut self, chart: &Chart, values: &Map, prefix: &str) -> Result<(), ChartError> {
        let prefix = join(prefix, chart.name());
        for sub in &chart.dependencies {
            let own_values = match values.get(sub.name().as_bytes()) {
                None => {
                    let empty = empty();
                    values.insert(sub.name(), Value::Map(empty.clone()));
                    empty
                }
                Some(Value::Map(table)) => table,
                Some(other) => {
                    let value = go::print_as_bool(&to_plain(&other));
                    return Err(ChartError::TypeMismatch {
                        name: sub.name().into(),
                        value,
                    });
                }
            };
            self.copy_globals(&own_values, values, &prefix);
            self.coalesce_chart(sub, &own_values, &prefix)?;
        }
        Ok(())
    }

    /// Copies the parent's globals to a subchart.
    fn copy_globals(&mut self, values: &Map, parent: &Map, prefix: &str) {
        let Some(below) = globals_table(values) else {
            return self.warn(ValuesWarning::GlobalDestination);
        };
        let Some(above) = globals_table(parent) else {
            return self.warn(ValuesWarning::GlobalSource);
        };
        for (key, value) in snapshot(&above) {
            let old = below.get(&key);
            match (value, old) {
                (Value::Map(table), None) => below.insert(key, Value::Map(copy_shallow(&table))),
                (Value::Map(table), Some(Value::Map(old))) => {
                    let merged = copy_shallow(&table);
                    let prefix = join(prefix, &key.to_str_lossy());
                    self.merge_tables(&merged, &old, &prefix, Nulls::Keep);
                    below.insert(key, Value::Map(merged));
                }
                (Value::Map(_), Some(_)) => {
                    self.warn(ValuesWarning::GlobalConflict {
                        key: key.to_str_lossy().into_owned(),
                    });
                }
                (_, Some(Value::Map(_))) => {
                    self.warn(ValuesWarning::GlobalIsTable {
                        key: key.to_str_lossy().into_owned(),
                    });
                }
                (value, _) => below.insert(key, value),
            }
        }
        values.insert(GLOBAL, Value::Map(below));
    }

    /// Adds the chart's own defaults to `values`. Existing values take precedence.
    fn add_defaults(&mut self, chart: &Chart, values: &Map, prefix: &str) {
        let Some(defaults) = chart.values.as_map() else {
            return;
        };
        let prefix = join(prefix, chart.name());
        for (key, default) in snapshot(&to_template_map(defaults)) {
            match (values.get(&key), default) {
                (None, default) => self.add_default(values, key, default),
                (Some(Value::Nil), _) if self.nulls == Nulls::Remove => {
                    values.entries_mut().remove(&key);
                }
                (Some(Value::Map(higher)), Value::Map(lower)) => {
                    let name = key.to_str_lossy();
                    let nulls = if has_subchart(chart, &name) {
                        Nulls::Keep
                    } else {
                        self.nulls
                    };
                    if nulls == Nulls::Remove && self.dialect.removes_null_defaults() {
                        remove_nulls(&lower);
                    }
                    self.merge_tables(&higher, &lower, &join(&prefix, &name), nulls);
                }
                (Some(Value::Map(_)), default) if !matches!(default, Value::Nil) => {
                    let key = format!("{prefix}.{}", key.to_str_lossy());
                    self.warn(ValuesWarning::Skipped { key });
                }
                _ => {}
            }
        }
    }

    /// Adds a default for a key that no higher layer sets.
    fn add_default(&self, values: &Map, key: Str, default: Value) {
        if self.nulls == Nulls::Remove && self.dialect.removes_null_defaults() {
            match &default {
                Value::Nil => return,
                Value::Map(table) => remove_nulls(table),
                _ => {}
            }
        }
        values.insert(key, default);
    }

    /// Adds the entries of `lower` to `higher`, recursively for tables. Entries of `higher` take
    /// precedence. Both maps may be changed.
    pub(crate) fn merge_tables(&mut self, higher: &Map, lower: &Map, prefix: &str, nulls: Nulls) {
        let original_entries = snapshot(lower);
        let null_keys = keys_of_nulls(higher);
        for key in &null_keys {
            lower.insert(key.clone(), Value::Nil);
        }
        let known = |key: &Str| {
            original_entries
                .binary_search_by(|(name, _)| name.cmp(key))
                .is_ok()
        };
        let added = null_keys
            .iter()
            .filter(|key| !known(key))
            .map(|key| (key.clone(), Value::Nil));
        for (key, original) in original_entries.iter().cloned().chain(added) {
            let had_value = !matches!(original, Value::Nil);
            let value = if null_keys.binary_search(&key).is_ok() {
                Value::Nil
            } else {
                original
            };
            self.merge_entry(
                higher,
                key,
                value,
                Layer {
                    prefix,
                    nulls,
                    had_value,
                },
            );
        }
    }

    fn merge_entry(&mut self, higher: &Map, key: Str, value: Value, layer: Layer<'_>) {
        match (higher.get(&key), value) {
            (Some(Value::Nil), _) if layer.nulls == Nulls::Remove && layer.had_value => {
                higher.entries_mut().remove(&key);
            }
            (None, value) => higher.insert(key, value),
            (Some(Value::Map(above)), Value::Map(below)) => {
                self.merge_tables(
                    &above,
                    &below,
                    &join(layer.prefix, &key.to_str_lossy()),
                    layer.nulls,
                );
            }
            (Some(_), Value::Map(below)) => {
                let value = go::print(&to_plain(&Value::Map(below)));
                self.warn(ValuesWarning::NotATable {
                    key: join(layer.prefix, &key.to_str_lossy()),
                    value,
                });
            }
            (Some(Value::Map(_)), value) if !matches!(value, Value::Nil) => {
                let value = go::print(&to_plain(&value));
                self.warn(ValuesWarning::IsATable {
                    key: join(layer.prefix, &key.to_str_lossy()),
                    value,
                });
            }
            _ => {}
        }
    }

    fn warn(&mut self, warning: ValuesWarning) {
        self.warnings.push(Warning::Values(warning));
    }
}

/// Properties of the layer that contains an entry.
#[derive(Clone, Copy)]
struct Layer<'a> {
    prefix: &'a str,
    nulls: Nulls,
    had_value: bool,
}

/// Returns the globals of `values`, a new table if there are none, or `None` if they are not a table.
fn globals_table(values: &Map) -> Option<Map> {
    match values.get(GLOBAL.as_bytes()) {
        None => Some(empty()),
        Some(_) => table(values, GLOBAL),
    }
}

fn has_subchart(chart: &Chart, name: &str) -> bool {
    chart.dependencies.iter().any(|sub| sub.name() == name)
}

/// Returns the keys with a null value, sorted.
fn keys_of_nulls(map: &Map) -> Vec<Str> {
    let entries = map.entries();
    entries
        .iter()
        .filter(|(_, value)| matches!(value, Value::Nil))
        .map(|(key, _)| key.clone())
        .collect()
}

/// Removes all keys with a null value, including those in nested tables.
fn remove_nulls(map: &Map) {
    map.entries_mut().retain(|_, value| !matches!(value, Value::Nil));
    for (_, value) in snapshot(map) {
        if let Value::Map(table) = value {
            remove_nulls(&table);
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.into()
    } else {
        format!("{prefix}.{name}")
    }
}
