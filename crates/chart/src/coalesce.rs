//! Coalesces the user's values with the defaults of a chart and its subcharts. The maps alias exactly as
//! Helm's do, since templates can observe it: tables deeper than `global.x` are one map in all charts, and
//! defaults that a subchart adds to them are visible in its parent.

use mainstay_template::{Map, Str, Value};

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::go;
use crate::tree::{empty, own, shallow, share_map, snapshot, table};
use crate::warning::{ValuesWarning, Warning};

const GLOBAL: &str = "global";

/// Meaning of a null in a higher layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Removes the key.
    Remove,
    /// Is kept, to remove the key later.
    Keep,
}

/// A pass over a chart and its subcharts.
pub(crate) struct Coalesce<'a> {
    pub(crate) nulls: Nulls,
    pub(crate) dialect: Dialect,
    pub(crate) warnings: &'a mut Vec<Warning>,
}

impl Coalesce<'_> {
    /// Adds the defaults of `chart` and its subcharts to `values`, which must not be shared.
    pub(crate) fn run(&mut self, chart: &Chart, values: &Map) -> Result<(), ChartError> {
        self.chart(chart, values, "")
    }

    fn chart(&mut self, chart: &Chart, values: &Map, prefix: &str) -> Result<(), ChartError> {
        self.defaults(chart, values, prefix);
        self.subcharts(chart, values, prefix)
    }

    fn subcharts(&mut self, chart: &Chart, values: &Map, prefix: &str) -> Result<(), ChartError> {
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
                    let value = go::print_as_bool(&own(&other));
                    return Err(ChartError::TypeMismatch {
                        name: sub.name().into(),
                        value,
                    });
                }
            };
            self.globals(&own_values, values, &prefix);
            self.chart(sub, &own_values, &prefix)?;
        }
        Ok(())
    }

    /// Copies the parent's globals to a subchart.
    fn globals(&mut self, values: &Map, parent: &Map, prefix: &str) {
        let Some(below) = globals_table(values) else {
            return self.warn(ValuesWarning::GlobalDestination);
        };
        let Some(above) = globals_table(parent) else {
            return self.warn(ValuesWarning::GlobalSource);
        };
        for (key, value) in snapshot(&above) {
            let old = below.get(&key);
            match (value, old) {
                (Value::Map(table), None) => below.insert(key, Value::Map(shallow(&table))),
                (Value::Map(table), Some(Value::Map(old))) => {
                    let merged = shallow(&table);
                    let prefix = join(prefix, &key.to_str_lossy());
                    self.tables(&merged, &old, &prefix, Nulls::Keep);
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

    /// Merges the chart's own defaults below `values`.
    fn defaults(&mut self, chart: &Chart, values: &Map, prefix: &str) {
        let Some(defaults) = chart.values.as_map() else {
            return;
        };
        let prefix = join(prefix, chart.name());
        for (key, default) in snapshot(&share_map(defaults)) {
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
                    self.tables(&higher, &lower, &join(&prefix, &name), nulls);
                }
                (Some(Value::Map(_)), default) if !matches!(default, Value::Nil) => {
                    let key = format!("{prefix}.{}", key.to_str_lossy());
                    self.warn(ValuesWarning::Skipped { key });
                }
                _ => {}
            }
        }
    }

    /// Adds a default that no higher layer overrides.
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

    /// Merges `lower` below `higher`, table by table. Both may be changed.
    pub(crate) fn tables(&mut self, higher: &Map, lower: &Map, prefix: &str, nulls: Nulls) {
        let was = snapshot(lower);
        let nulled = keys_of_nulls(higher);
        for key in &nulled {
            lower.insert(key.clone(), Value::Nil);
        }
        let known = |key: &Str| was.binary_search_by(|(name, _)| name.cmp(key)).is_ok();
        let added = nulled
            .iter()
            .filter(|key| !known(key))
            .map(|key| (key.clone(), Value::Nil));
        for (key, original) in was.iter().cloned().chain(added) {
            let had_value = !matches!(original, Value::Nil);
            let value = if nulled.binary_search(&key).is_ok() {
                Value::Nil
            } else {
                original
            };
            self.entry(
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

    fn entry(&mut self, higher: &Map, key: Str, value: Value, layer: Layer<'_>) {
        match (higher.get(&key), value) {
            (Some(Value::Nil), _) if layer.nulls == Nulls::Remove && layer.had_value => {
                higher.entries_mut().remove(&key);
            }
            (None, value) => higher.insert(key, value),
            (Some(Value::Map(above)), Value::Map(below)) => {
                self.tables(
                    &above,
                    &below,
                    &join(layer.prefix, &key.to_str_lossy()),
                    layer.nulls,
                );
            }
            (Some(_), Value::Map(below)) => {
                let value = go::print(&own(&Value::Map(below)));
                self.warn(ValuesWarning::NotATable {
                    key: join(layer.prefix, &key.to_str_lossy()),
                    value,
                });
            }
            (Some(Value::Map(_)), value) if !matches!(value, Value::Nil) => {
                let value = go::print(&own(&value));
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

/// The layer of an entry.
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

/// Removes all keys with a null value, also in nested tables.
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
