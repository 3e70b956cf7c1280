//! Renders a release into objects.

use std::sync::{Arc, OnceLock};

use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};
use mainstay_chart::{
    Capabilities, ChartError, Dialect, File, KubeVersion, PrepareOptions, RenderOptions, load_files, prepare,
    render, sort_manifests,
};
use mainstay_mesh::plan::Release;
use mainstay_template::NoHost;
use mainstay_yaml::{Map, Numbers, Options};
use serde_json::Value;

/// The charts render equally under both; Helm 4 passes the whole version of the cluster.
const DIALECT: Dialect = Dialect::Helm4;

/// Why a release cannot be rendered.
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
    /// A rendered template is not valid YAML.
    #[error("{path}: {source}")]
    Yaml {
        /// Path of the template.
        path: String,
        /// The parse error.
        source: Box<mainstay_yaml::Error>,
    },
}

/// Words by which charts use the version of the cluster, in a template or in `Chart.yaml`.
const VERSION_WORDS: [&str; 2] = ["Capabilities", "kubeVersion"];

/// Renders charts for a cluster.
#[derive(Debug)]
pub struct Renderer {
    catalog: Arc<Catalog>,
    version: OnceLock<KubeVersion>,
}

impl Renderer {
    /// Creates a renderer for a cluster whose version is set when a chart needs it; few do.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            version: OnceLock::new(),
        }
    }

    /// Creates a renderer for a cluster of this version (`v1.36.4`).
    #[must_use]
    pub fn for_version(catalog: Arc<Catalog>, version: &str) -> Self {
        let renderer = Self::new(catalog);
        renderer.set_version(version);
        renderer
    }

    /// Sets the version of the cluster, unless it is set.
    pub fn set_version(&self, version: &str) {
        let parsed = KubeVersion::parse(version, DIALECT);
        self.version
            .get_or_init(|| parsed.unwrap_or_else(|_| Capabilities::offline(DIALECT).kube_version));
    }

    /// Returns the objects of a release in the order of installation.
    pub fn render(&self, release: &Release) -> Result<Vec<Value>, RenderError> {
        let version = version(&release.version)?;
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
        let prepared = prepare(&loaded, &values(&release.values), &preparation, &mut Vec::new())?;
        let rendered = render(&prepared, &options, &mut NoHost)?;
        let manifests = sort_manifests(&rendered.files, DIALECT)?;
        let objects = manifests
            .generic
            .iter()
            .map(|manifest| object(manifest.path, manifest.content));
        let objects: Result<Vec<Value>, RenderError> = objects.collect();
        Ok(objects?.into_iter().filter(|object| !object.is_null()).collect())
    }
}

/// Whether a file of a chart may use the version of the cluster.
fn uses_version(file: &File) -> bool {
    let text = String::from_utf8_lossy(&file.data);
    VERSION_WORDS.iter().any(|word| text.contains(word))
}

fn version(name: &str) -> Result<Version, RenderError> {
    let parsed = name.strip_prefix('v').and_then(|version| version.parse().ok());
    parsed.ok_or_else(|| RenderError::Version(name.to_owned()))
}

fn values(values: &mainstay_api::Values) -> Map {
    values
        .iter()
        .map(|(key, value)| (key.clone(), yaml(value)))
        .collect()
}

/// Values pass through JSON, where every number is a float. The API server bounds their depth.
fn yaml(value: &Value) -> mainstay_yaml::Value {
    match value {
        Value::Null => mainstay_yaml::Value::Null,
        Value::Bool(value) => mainstay_yaml::Value::Bool(*value),
        Value::Number(number) => mainstay_yaml::Value::Float(number.as_f64().unwrap_or_default()),
        Value::String(text) => mainstay_yaml::Value::String(text.clone()),
        Value::Array(items) => mainstay_yaml::Value::List(items.iter().map(yaml).collect()),
        Value::Object(map) => mainstay_yaml::Value::Map(values(map)),
    }
}

fn object(path: &str, content: &[u8]) -> Result<Value, RenderError> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    let parsed = mainstay_yaml::parse_with(content, &options).map_err(|source| RenderError::Yaml {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(json(parsed))
}

/// The parser bounds the depth, so recursion is safe.
fn json(value: mainstay_yaml::Value) -> Value {
    match value {
        mainstay_yaml::Value::Null => Value::Null,
        mainstay_yaml::Value::Bool(value) => value.into(),
        mainstay_yaml::Value::Int(value) => value.into(),
        mainstay_yaml::Value::Uint(value) => value.into(),
        mainstay_yaml::Value::Float(value) => value.into(),
        mainstay_yaml::Value::String(text) => text.into(),
        mainstay_yaml::Value::List(items) => items.into_iter().map(json).collect::<Vec<_>>().into(),
        mainstay_yaml::Value::Map(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests;
