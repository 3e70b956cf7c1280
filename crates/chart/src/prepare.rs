//! From a chart and the user's values to what a render needs: takes both, gives the chart with its dependencies decided
//! and the values every template sees. Knows nothing of templates.

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

/// A chart ready to render.
#[derive(Clone)]
pub struct Prepared {
    /// The chart: aliases applied, disabled dependencies gone, imported values in place.
    pub chart: Chart,
    /// `.Values` of the root chart, a `common.Values` in Go. A subchart's are the map under its name, with `global` in it:
    /// deeper tables of `global` are shared between charts, as in Helm, so that a template's `set` shows in all of them.
    pub values: Map,
}

/// How to prepare.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Whose rules and words.
    pub dialect: Dialect,
    /// The cluster's version.
    pub kube_version: KubeVersion,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
}

/// Everything `helm template` does between loading and rendering, in its order: is the chart installable and complete,
/// which dependencies take part, what are the values, do they fit the schemas, does the cluster fit the chart.
///
/// `warnings` gets what Helm would have said on standard error, in order, also if the end is an error.
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
    check_dependencies(&chart, options.dialect)?;
    let values = share_map(values);
    process_dependencies(&mut chart, &values, options.dialect, warnings).map_err(|error| {
        match options.dialect {
            Dialect::Helm3 => error,
            Dialect::Helm4 => ChartError::Dependencies(Box::new(error)),
        }
    })?;
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
        values: values.retyped(values_type(options.dialect)),
    })
}

/// What `typeOf .Values` says.
fn values_type(dialect: Dialect) -> MapType {
    MapType::Named(match dialect {
        Dialect::Helm3 => "chartutil.Values",
        Dialect::Helm4 => "common.Values",
    })
}

/// A library has nothing of its own to install.
fn check_installable(chart: &Chart) -> Result<(), ChartError> {
    match chart.metadata.kind.as_str() {
        "" | "application" => Ok(()),
        other => Err(ChartError::NotInstallable(other.into())),
    }
}

/// Every dependency must be in `charts/`, whatever its version.
fn check_dependencies(chart: &Chart, dialect: Dialect) -> Result<(), ChartError> {
    let present = |name: &str| chart.dependencies.iter().any(|sub| sub.name() == name);
    let wanted = chart.metadata.dependencies.iter().flatten();
    let names: Vec<_> = wanted
        .filter(|wanted| !present(&wanted.name))
        .map(|wanted| wanted.name.clone())
        .collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(ChartError::MissingDependencies { names, dialect })
    }
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
