//! Renders the objects of a release.
//!
//! Templates may use the clock and random source of the system, but a release is rejected if its objects
//! depend on either, because they would be written again after every render. Values cannot add objects or
//! change namespaces.

mod confine;
mod host;

use std::sync::{Arc, OnceLock};

use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};
use mainstay_chart::confine::without_line_breaks;
use mainstay_chart::{
    Capabilities, ChartError, Dialect, File, KubeVersion, NotReproducible, ObjectIdentity, PrepareOptions,
    RenderOptions, load_files, prepare, render, render_reproducible, sort_manifests,
};
use mainstay_mesh::plan::Release;
use mainstay_template::Host;
use mainstay_yaml::{Map, Numbers, Options};
use serde_json::Value;

pub use confine::ConfineError;
use host::SystemHost;

use crate::object::string_at;

/// Dialect of all renders. The charts render equally with both dialects; that of Helm 4 provides the
/// complete version of the cluster.
const DIALECT: Dialect = Dialect::Helm4;

/// Error of rendering a release.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The version is invalid.
    #[error("version {0:?} not found")]
    Version(String),
    /// The chart is not in the catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The chart or its values are invalid.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The chart uses the version of the cluster, which is not known yet.
    #[error("the version of the cluster is not known")]
    NoVersion,
    /// No random bytes are available.
    #[error("cannot read random bytes: {0}")]
    Entropy(String),
    /// Two renders of the release differ.
    #[error("chart {chart:?}: {difference}")]
    NotReproducible {
        /// Name of the chart.
        chart: &'static str,
        /// First object that differs.
        difference: NotReproducible,
    },
    /// An object does not belong to the chart.
    #[error(transparent)]
    Confined(#[from] ConfineError),
    /// A rendered template is not valid YAML.
    #[error("{path}: {source}")]
    Yaml {
        /// Path of the template.
        path: String,
        /// Error of the parser.
        source: Box<mainstay_yaml::Error>,
    },
}

/// Words in a template or in `Chart.yaml` that indicate that the chart uses the version of the cluster.
const VERSION_WORDS: [&str; 2] = ["Capabilities", "kubeVersion"];

/// A renderer of releases for a cluster.
#[derive(Debug)]
pub struct Renderer {
    catalog: Arc<Catalog>,
    version: OnceLock<KubeVersion>,
}

impl Renderer {
    /// Creates a renderer without the version of the cluster. Rendering a chart that needs it fails with
    /// [`RenderError::NoVersion`] until it is set.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            version: OnceLock::new(),
        }
    }

    /// Creates a renderer for a cluster with this version (`v1.36.4`).
    #[must_use]
    pub fn for_version(catalog: Arc<Catalog>, version: &str) -> Self {
        let renderer = Self::new(catalog);
        renderer.set_version(version);
        renderer
    }

    /// Sets the version of the cluster, unless it is already set.
    pub fn set_version(&self, version: &str) {
        let parsed = KubeVersion::parse(version, DIALECT);
        self.version
            .get_or_init(|| parsed.unwrap_or_else(|_| Capabilities::offline(DIALECT).kube_version));
    }

    /// Renders the objects of a release, in the order of installation.
    pub fn render(&self, release: &Release) -> Result<Vec<Value>, RenderError> {
        let values = to_yaml_map(&release.values);
        let objects = self.render_twice(release, &values)?;
        confine::check_namespaces(release, &objects)?;
        if mainstay_chart::confine::has_line_break(&values) {
            let reference = self.render_without_line_breaks(release, &values)?;
            confine::check_objects(release, &objects, &reference)?;
        }
        Ok(objects)
    }

    /// Renders a release. Fails if its objects depend on random values or on the time.
    fn render_twice(&self, release: &Release, values: &Map) -> Result<Vec<Value>, RenderError> {
        let (mut first, mut second) = (SystemHost::default(), SystemHost::later());
        let objects = render_reproducible([&mut first, &mut second], identify, |host| {
            self.render_values(release, values, host).map_err(Failure::Render)
        });
        first.check()?;
        second.check()?;
        objects.map_err(|failure| match failure {
            Failure::Render(error) => error,
            Failure::Differs(difference) => RenderError::NotReproducible {
                chart: release.chart,
                difference,
            },
        })
    }

    /// Renders a release without the line breaks in its values. Tries all methods of removing them until a
    /// render succeeds.
    fn render_without_line_breaks(
        &self,
        release: &Release,
        values: &Map,
    ) -> Result<Vec<Value>, ConfineError> {
        let mut attempts = without_line_breaks(values)
            .map(|values| self.render_values(release, &values, &mut SystemHost::default()));
        let rendered = attempts.find_map(Result::ok);
        rendered.ok_or(ConfineError::Unverified { chart: release.chart })
    }

    fn render_values(
        &self,
        release: &Release,
        values: &Map,
        host: &mut dyn Host,
    ) -> Result<Vec<Value>, RenderError> {
        let version = parse_version(&release.version)?;
        let files = self.catalog.chart(&version, Flavour::Operator, release.chart)?;
        let files: Vec<File> = files
            .into_iter()
            .map(|(name, data)| File::new(name, &data))
            .collect();
        let mut options = RenderOptions::new(DIALECT);
        options.release.name.clone_from(&release.key.name);
        options.release.namespace.clone_from(&release.key.namespace);
        match self.version.get() {
            Some(version) => options.capabilities.kube_version = version.clone(),
            None if files.iter().any(uses_version) => return Err(RenderError::NoVersion),
            None => {}
        }
        let loaded = load_files(files, DIALECT)?;
        let preparation = PrepareOptions {
            dialect: DIALECT,
            kube_version: options.capabilities.kube_version.clone(),
            skip_schema: false,
        };
        let prepared = prepare(&loaded, values, &preparation, &mut Vec::new())?;
        let rendered = render(&prepared, &options, host)?;
        let manifests = sort_manifests(&rendered.files, DIALECT)?;
        let objects = manifests
            .generic
            .iter()
            .map(|manifest| parse_object(manifest.path, manifest.content));
        let objects: Result<Vec<Value>, RenderError> = objects.collect();
        Ok(objects?.into_iter().filter(|object| !object.is_null()).collect())
    }
}

/// Error of one of two renders, or a difference between them.
enum Failure {
    Render(RenderError),
    Differs(NotReproducible),
}

impl From<NotReproducible> for Failure {
    fn from(error: NotReproducible) -> Self {
        Self::Differs(error)
    }
}

/// Returns the identity of a rendered object.
pub(crate) fn identify(object: &Value) -> ObjectIdentity {
    let text = |pointer: &str| string_at(object, pointer).to_owned();
    ObjectIdentity {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

/// Whether a file of a chart may use the version of the cluster.
fn uses_version(file: &File) -> bool {
    let text = String::from_utf8_lossy(&file.data);
    VERSION_WORDS.iter().any(|word| text.contains(word))
}

fn parse_version(name: &str) -> Result<Version, RenderError> {
    let parsed = name.strip_prefix('v').and_then(|version| version.parse().ok());
    parsed.ok_or_else(|| RenderError::Version(name.to_owned()))
}

fn to_yaml_map(values: &mainstay_api::Values) -> Map {
    values
        .iter()
        .map(|(key, value)| (key.clone(), to_yaml(value)))
        .collect()
}

/// Converts a chart value. Values pass through JSON, in which every number is a float. Recursion is safe,
/// because the API server limits the depth of values.
fn to_yaml(value: &Value) -> mainstay_yaml::Value {
    match value {
        Value::Null => mainstay_yaml::Value::Null,
        Value::Bool(value) => mainstay_yaml::Value::Bool(*value),
        Value::Number(number) => mainstay_yaml::Value::Float(number.as_f64().unwrap_or_default()),
        Value::String(text) => mainstay_yaml::Value::String(text.clone()),
        Value::Array(items) => mainstay_yaml::Value::List(items.iter().map(to_yaml).collect()),
        Value::Object(map) => mainstay_yaml::Value::Map(to_yaml_map(map)),
    }
}

fn parse_object(path: &str, content: &[u8]) -> Result<Value, RenderError> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    let parsed = mainstay_yaml::parse_with(content, &options).map_err(|source| RenderError::Yaml {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(parsed.into())
}

#[cfg(test)]
mod tests;
