//! Prepares a chart for rendering: resolves its dependencies, coalesces the values and checks them. Does not
//! read templates.

use mainstay_template::{Map, MapType};
use mainstay_yaml::Map as PlainMap;

use crate::chart::Chart;
use crate::coalesce::{Coalesce, Nulls};
use crate::dependencies::process_dependencies;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::load::Loaded;
use crate::objects::KubeVersion;
use crate::schema::validate_values;
use crate::tree::share_map;
use crate::version::in_range;
use crate::warning::Warning;

/// A chart that is ready to render.
#[derive(Clone)]
pub struct Prepared {
    /// The chart: aliases applied, disabled dependencies removed, values imported.
    pub chart: Chart,
    /// `.Values` of the root chart. A subchart's values are the map under its name, including `global`.
    /// Deeper tables of `global` are shared between charts, as in Helm, so that a template's `set` is visible
    /// in all of them.
    pub values: Map,
}

/// Options of [`prepare`].
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// The Helm version whose rules and messages apply.
    pub dialect: Dialect,
    /// The cluster's version, checked against the chart's `kubeVersion`.
    pub kube_version: KubeVersion,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
}

/// Performs the steps of `helm template` between loading and rendering, in Helm's order: checks that the
/// chart is installable and complete, enables dependencies, coalesces values, validates schemas, checks the
/// cluster's version.
///
/// Appends to `warnings` what Helm writes to stderr, in order, also if the result is an error.
pub fn prepare(
    loaded: &Loaded,
    values: &PlainMap,
    options: &PrepareOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Prepared, ChartError> {
    let mut chart = loaded.chart.clone();
    warnings.extend_from_slice(&loaded.warnings);
    check_installable(&chart)?;
    if chart.metadata.deprecated {
        warnings.push(Warning::Deprecated);
    }
    let missing = missing_dependencies(&chart);
    if !missing.is_empty() {
        return Err(ChartError::MissingDependencies {
            names: missing,
            dialect: options.dialect,
        });
    }
    let values = share_map(values);
    process_dependencies(&mut chart, &values, options.dialect, warnings)
        .map_err(|error| options.dialect.dependencies_error(error))?;
    let mut pass = Coalesce {
        nulls: Nulls::Remove,
        dialect: options.dialect,
        warnings,
    };
    pass.run(&chart, &values)?;
    if !options.skip_schema {
        validate_values(&chart, &values, warnings)?;
    }
    check_kube_version(&chart, &options.kube_version)?;
    Ok(Prepared {
        chart,
        values: values.retyped(MapType::Named(options.dialect.values_type())),
    })
}

/// Rejects library charts and unknown types.
fn check_installable(chart: &Chart) -> Result<(), ChartError> {
    match chart.metadata.kind.as_str() {
        "" | "application" => Ok(()),
        other => Err(ChartError::NotInstallable(other.into())),
    }
}

/// Returns the names of dependencies that are not in `charts/`, regardless of their version.
fn missing_dependencies(chart: &Chart) -> Vec<String> {
    let present = |name: &str| chart.dependencies.iter().any(|sub| sub.name() == name);
    let wanted = chart.metadata.dependencies.iter().flatten();
    wanted
        .filter(|wanted| !present(&wanted.name))
        .map(|wanted| wanted.name.clone())
        .collect()
}

fn check_kube_version(chart: &Chart, got: &KubeVersion) -> Result<(), ChartError> {
    let wanted = &chart.metadata.kube_version;
    if wanted.is_empty() || in_range(wanted, &got.normalized) {
        return Ok(());
    }
    Err(ChartError::KubeVersion {
        wanted: wanted.clone(),
        got: got.version.clone(),
    })
}
