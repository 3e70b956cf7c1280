//! Renders components: built-in types with `mainstay-rollout`, Helm charts with `mainstay-chart`.
//!
//! The Application contains the packaged chart as base64 text. A chart whose objects depend on random values
//! or on the time is rejected, so that the same Application always has the same revision, and no cluster
//! gets a secret that others can guess.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::delivery::{Application, Component, RenderedComponent, component_type};
use mainstay_chart::{
    ChartError, Dialect, FixedHost, NotReproducible, PrepareOptions, Prepared, RenderOptions, load_archive,
    prepare, render, render_reproducible, sort_manifests,
};
use mainstay_rollout::revision::render_component;
use mainstay_template::Host;
use mainstay_yaml::{Budget, Map, Numbers, Options, parse_json_map, parse_with, to_json};
use serde_json::Value;

use crate::render::identify;

const DIALECT: Dialect = Dialect::Helm4;

/// Error of rendering a component.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    /// The component is invalid.
    #[error(transparent)]
    Invalid(#[from] mainstay_rollout::RenderError),
    /// The properties of a chart are invalid.
    #[error("component {component:?}: {message}")]
    Properties {
        component: String,
        message: &'static str,
    },
    /// The chart cannot be rendered.
    #[error("component {component:?}: {source}")]
    Chart {
        component: String,
        #[source]
        source: Box<ChartError>,
    },
    /// A rendered template is not valid YAML.
    #[error("component {component:?}: template {path:?} does not render valid YAML")]
    Manifest { component: String, path: String },
    /// Two renders of the chart differ.
    #[error("component {component:?}: {difference}")]
    NotReproducible {
        component: String,
        difference: NotReproducible,
    },
}

/// Renders all components of an application.
pub(crate) fn render_components(application: &Application) -> Result<Vec<RenderedComponent>, ComponentError> {
    let components = application.spec.components.iter();
    components
        .map(|component| {
            let manifests = match component.kind.as_str() {
                component_type::HELM => Some(render_chart(application, component)?),
                _ => None,
            };
            Ok(render_component(component, manifests)?)
        })
        .collect()
}

fn render_chart(application: &Application, component: &Component) -> Result<Vec<Value>, ComponentError> {
    let invalid = |message| ComponentError::Properties {
        component: component.name.clone(),
        message,
    };
    let properties = &component.properties;
    let text = properties.get("chart").and_then(Value::as_str);
    let text = text.ok_or_else(|| invalid("properties.chart is not set"))?;
    let compact: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(compact);
    let bytes = bytes.map_err(|_| invalid("properties.chart is not base64"))?;
    let values = match properties.get("values") {
        None | Some(Value::Null) => Map::default(),
        Some(values @ Value::Object(_)) => {
            let read = parse_json_map(values.to_string(), Numbers::Float, &Budget::default());
            read.map_err(|_| invalid("properties.values cannot be read"))?
        }
        Some(_) => return Err(invalid("properties.values is not a mapping")),
    };
    render_archive(application, component, &bytes, &values)
}

fn render_archive(
    application: &Application,
    component: &Component,
    bytes: &[u8],
    values: &Map,
) -> Result<Vec<Value>, ComponentError> {
    let mut options = RenderOptions::new(DIALECT);
    options.release.name.clone_from(&component.name);
    application.namespace().clone_into(&mut options.release.namespace);
    let prepared = prepare_archive(bytes, values, &options);
    let prepared = prepared.map_err(|source| Failure::from(source).with_component(component))?;
    let [mut first, mut second] = FixedHost::pair();
    let objects = render_reproducible([&mut first, &mut second], identify, |host| {
        render_objects(&prepared, &options, host)
    });
    objects.map_err(|failure| failure.with_component(component))
}

fn prepare_archive(bytes: &[u8], values: &Map, options: &RenderOptions) -> Result<Prepared, ChartError> {
    let loaded = load_archive(bytes, DIALECT)?;
    let preparation = PrepareOptions {
        dialect: DIALECT,
        kube_version: options.capabilities.kube_version.clone(),
        skip_schema: false,
    };
    prepare(&loaded, values, &preparation, &mut Vec::new())
}

/// Failure of rendering a chart.
enum Failure {
    Chart(ChartError),
    Manifest(String),
    Differs(NotReproducible),
}

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Self {
        Self::Chart(error)
    }
}

impl From<NotReproducible> for Failure {
    fn from(error: NotReproducible) -> Self {
        Self::Differs(error)
    }
}

impl Failure {
    fn with_component(self, component: &Component) -> ComponentError {
        let component = component.name.clone();
        match self {
            Self::Chart(source) => ComponentError::Chart {
                component,
                source: Box::new(source),
            },
            Self::Manifest(path) => ComponentError::Manifest { component, path },
            Self::Differs(difference) => ComponentError::NotReproducible {
                component,
                difference,
            },
        }
    }
}

fn render_objects(
    prepared: &Prepared,
    options: &RenderOptions,
    host: &mut dyn Host,
) -> Result<Vec<Value>, Failure> {
    let rendered = render(prepared, options, host)?;
    let manifests = sort_manifests(&rendered.files, DIALECT)?;
    let mut objects = Vec::new();
    for manifest in &manifests.generic {
        let object = read_manifest(manifest.content);
        objects.push(object.ok_or_else(|| Failure::Manifest(manifest.path.to_owned()))?);
    }
    objects.retain(|object| !object.is_null());
    Ok(objects)
}

fn read_manifest(content: &[u8]) -> Option<Value> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    let value = parse_with(content, &options).ok()?;
    serde_json::from_str(&to_json(&value).ok()?).ok()
}

#[cfg(test)]
mod tests;
