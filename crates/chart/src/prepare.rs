//! Preparation of a chart for rendering: resolves its dependencies, coalesces the values and validates
//! them. Does not read templates.

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
use crate::tree::to_template_map;
use crate::version::in_range;
use crate::warning::Warning;

/// A chart that is ready to render.
#[derive(Clone)]
pub struct Prepared {
    /// The chart after aliases are applied, disabled dependencies are removed and values are imported.
    pub chart: Chart,
    /// `.Values` of the root chart. A subchart's values are the map under its name, which includes
    /// `global`. Deeper tables of `global` are shared between charts, as in Helm, so that changes by a
    /// template's `set` are visible in all of them.
    pub values: Map,
}

/// Options of [`prepare`].
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Helm version that determines rules and messages.
    pub dialect: Dialect,
    /// Version of the cluster, which is checked against the chart's `kubeVersion`.
    pub kube_version: KubeVersion,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
}

/// Performs the steps of `helm template` between loading and rendering, in Helm's order: checks that the
/// chart is installable and complete, enables dependencies, coalesces values, validates schemas, checks the
/// cluster's version.
///
/// Appends the warnings that Helm writes to stderr to `warnings`, in order. This also applies if the result
/// is an error.
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
    let values = to_template_map(values);
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

/// Checks that the chart is neither a library nor of an unknown type.
fn check_installable(chart: &Chart) -> Result<(), ChartError> {
    match chart.metadata.kind.as_str() {
        "" | "application" => Ok(()),
        other => Err(ChartError::NotInstallable(other.into())),
    }
}

/// Returns the names of dependencies that are missing in `charts/`, regardless of their version.
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
