//! Resolution of a chart's dependencies: enables and renames subcharts, and imports their values.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_template::{Map, Value};
use mainstay_yaml::Value as Plain;

use crate::chart::Chart;
use crate::coalesce::{Coalesce, Nulls};
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::metadata::{Dependency, ImportValue};
use crate::tree::{copy_map, empty, table, to_plain_map};
use crate::version::in_range;
use crate::warning::Warning;

/// Enables or disables every dependency of `chart`, then imports values from subcharts to their parents.
pub(crate) fn process_dependencies(
    chart: &mut Chart,
    values: &Map,
    dialect: Dialect,
    warnings: &mut Vec<Warning>,
) -> Result<(), ChartError> {
    let mut process = Resolution { dialect, warnings };
    process.enable(chart, values, "")?;
    process.import_values(chart)
}

/// State of one resolution.
struct Resolution<'a> {
    dialect: Dialect,
    warnings: &'a mut Vec<Warning>,
}

impl Resolution<'_> {
    /// Enables or disables the dependencies of `chart`, and recursively those of enabled subcharts. `path`
    /// is the path of the chart's values.
    fn enable(&mut self, chart: &mut Chart, values: &Map, path: &str) -> Result<(), ChartError> {
        let Some(mut wanted) = chart.metadata.dependencies.take() else {
            return Ok(());
        };
        chart.dependencies = resolve_charts(&chart.dependencies, &mut wanted);
        let merged = self.coalesce_values(chart, values, Nulls::Remove)?;
        self.apply_tags(&mut wanted, &merged);
        self.apply_conditions(&mut wanted, &merged, path);
        let disabled: BTreeSet<String> = wanted
            .iter()
            .filter(|dependency| !dependency.enabled)
            .map(|dependency| dependency.name.clone())
            .collect();
        chart.dependencies.retain(|sub| !disabled.contains(sub.name()));
        wanted.retain(|dependency| !disabled.contains(&dependency.name));
        for sub in &mut chart.dependencies {
            let path = format!("{path}{}.", sub.name());
            self.enable(sub, &merged, &path)?;
        }
        chart.metadata.dependencies = Some(wanted).filter(|wanted| !wanted.is_empty());
        Ok(())
    }

    fn coalesce_values(&mut self, chart: &Chart, values: &Map, nulls: Nulls) -> Result<Map, ChartError> {
        let merged = copy_map(values);
        let mut pass = Coalesce {
            nulls,
            dialect: self.dialect,
            warnings: self.warnings,
        };
        pass.run(chart, &merged)?;
        Ok(merged)
    }

    /// Applies tags. A true tag enables a dependency; without a true tag, a false tag disables it.
    fn apply_tags(&mut self, wanted: &mut [Dependency], values: &Map) {
        let Some(tags) = table(values, "tags") else { return };
        for dependency in wanted {
            let (mut on, mut off) = (false, false);
            for tag in &dependency.tags {
                match tags.get(tag.as_bytes()) {
                    None => {}
                    Some(Value::Bool(true)) => on = true,
                    Some(Value::Bool(false)) => off = true,
                    Some(_) => self.warnings.push(Warning::TagNotBool {
                        tag: tag.clone(),
                        chart: dependency.name.clone(),
                    }),
                }
            }
            dependency.enabled = on || !off;
        }
    }

    /// Applies conditions. The first condition with a boolean value decides and takes precedence over tags.
    fn apply_conditions(&mut self, wanted: &mut [Dependency], values: &Map, path: &str) {
        for dependency in wanted {
            for condition in dependency
                .condition
                .trim()
                .split(',')
                .filter(|condition| !condition.is_empty())
            {
                match value_at(values, &format!("{path}{condition}")) {
                    None => {}
                    Some(Value::Bool(enabled)) => {
                        dependency.enabled = enabled;
                        break;
                    }
                    Some(_) => self.warnings.push(Warning::ConditionNotBool {
                        path: condition.into(),
                        chart: dependency.name.clone(),
                    }),
                }
            }
        }
    }

    /// Imports values into `chart` and its subcharts, innermost charts first.
    fn import_values(&mut self, chart: &mut Chart) -> Result<(), ChartError> {
        for sub in &mut chart.dependencies {
            self.import_values(sub)?;
        }
        self.import_subchart_values(chart)
    }

    /// Imports values of subcharts into `chart`, whose own values take precedence. As in Helm, the values
    /// of the chart also include those of all its subcharts, which a null of the user can remove later.
    fn import_subchart_values(&mut self, chart: &mut Chart) -> Result<(), ChartError> {
        let Some(mut wanted) = chart.metadata.dependencies.take() else {
            return Ok(());
        };
        let merged = self.coalesce_values(chart, &empty(), Nulls::Keep)?;
        let imported = empty();
        for dependency in &mut wanted {
            for import in std::mem::take(&mut dependency.import_values) {
                let Some(ImportPaths {
                    child,
                    parent,
                    is_export,
                }) = ImportPaths::from_import(import)
                else {
                    continue;
                };
                match table_at(&merged, &format!("{}.{child}", dependency.name)) {
                    Ok(found) => self.merge_tables(&imported, &nest_table(&parent, found)),
                    Err(NotATable(key)) => self.warn_missing(&dependency.name, key, is_export),
                }
                dependency
                    .import_values
                    .push(ImportValue::Table { child, parent });
            }
        }
        let merged = copy_map(&merged);
        self.merge_tables(&merged, &imported);
        chart.values = Arc::new(Plain::Map(to_plain_map(&merged)));
        chart.metadata.dependencies = Some(wanted);
        Ok(())
    }

    fn merge_tables(&mut self, higher: &Map, lower: &Map) {
        let nulls = Nulls::Keep;
        let mut pass = Coalesce {
            nulls,
            dialect: self.dialect,
            warnings: self.warnings,
        };
        pass.merge_tables(higher, lower, "", nulls);
    }

    fn warn_missing(&mut self, chart: &str, key: String, is_export: bool) {
        self.warnings.push(if is_export {
            Warning::MissingExport { key }
        } else {
            Warning::MissingTable {
                chart: chart.into(),
                key,
            }
        });
    }
}

/// Returns the charts that are not in the dependencies, followed by those that are, in the order of the
/// dependencies and with their aliases as names. Marks every dependency as enabled.
fn resolve_charts(charts: &[Chart], wanted: &mut [Dependency]) -> Vec<Chart> {
    let named = |chart: &Chart| wanted.iter().any(|dependency| matches(chart, dependency));
    let mut kept: Vec<Chart> = charts.iter().filter(|chart| !named(chart)).cloned().collect();
    for dependency in wanted {
        if let Some(chart) = charts.iter().find(|chart| matches(chart, dependency)) {
            let mut chart = chart.clone();
            if !dependency.alias.is_empty() {
                chart.metadata.name.clone_from(&dependency.alias);
            }
            kept.push(chart);
        }
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
        dependency.enabled = true;
    }
    kept
}

fn matches(chart: &Chart, dependency: &Dependency) -> bool {
    chart.name() == dependency.name && in_range(&dependency.version, &chart.metadata.version)
}

/// Source and target paths of an import.
struct ImportPaths {
    child: String,
    parent: String,
    /// Whether the import was written as the name of an export.
    is_export: bool,
}

impl ImportPaths {
    fn from_import(import: ImportValue) -> Option<Self> {
        match import {
            ImportValue::Export(name) => Some(Self {
                child: format!("exports.{name}"),
                parent: ".".into(),
                is_export: true,
            }),
            ImportValue::Table { child, parent } => Some(Self {
                child,
                parent,
                is_export: false,
            }),
            ImportValue::Other => None,
        }
    }
}

/// Key of a dotted path. Its value is missing or not a table.
struct NotATable(String);

/// Returns the table at a dotted path.
fn table_at(values: &Map, path: &str) -> Result<Map, NotATable> {
    path.split('.').try_fold(values.clone(), |map, key| {
        table(&map, key).ok_or_else(|| NotATable(key.to_owned()))
    })
}

/// Returns the value at a dotted path, or `None` if it is missing or a table.
fn value_at(values: &Map, path: &str) -> Option<Value> {
    let (tables, key) = path
        .rsplit_once('.')
        .map_or((None, path), |(tables, key)| (Some(tables), key));
    let map = tables
        .map_or(Ok(values.clone()), |tables| table_at(values, tables))
        .ok()?;
    map.get(key.as_bytes())
        .filter(|value| !matches!(value, Value::Map(_)))
}

/// Returns a map that contains only `table`, at a dotted path.
fn nest_table(path: &str, table: Map) -> Map {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, key| {
        let outer = empty();
        outer.insert(key, Value::Map(inner));
        outer
    })
}
