//! In-memory representation of a chart.

use std::sync::Arc;

use mainstay_yaml::Value;

use crate::metadata::{Dependency, Metadata};

/// A chart with its subcharts. Cheap to clone: file contents are shared.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Contents of `Chart.yaml`. For a v1 chart, includes the dependencies of `requirements.yaml`.
    pub metadata: Metadata,
    /// Contents of `Chart.lock`, or of `requirements.lock` in a v1 chart.
    pub lock: Option<Lock>,
    /// All files in `templates/`, in the order of the source.
    pub templates: Arc<[File]>,
    /// All other files (README, `crds/`, …), in the order of the source.
    pub files: Arc<[File]>,
    /// Contents of `values.yaml` as a map; null if the file does not exist.
    pub values: Arc<Value>,
    /// Text of `values.yaml`, for diagnostics.
    pub values_text: Option<Arc<[u8]>>,
    /// Text of `values.schema.json`.
    pub schema: Option<Arc<[u8]>>,
    /// Subcharts in `charts/`, sorted by the name of their directory or archive.
    pub dependencies: Vec<Chart>,
}

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path in the chart, with forward slashes: `templates/deployment.yaml`.
    pub name: String,
    /// Contents without a byte order mark.
    pub data: Arc<[u8]>,
}

/// Resolved dependencies of a lock file. They do not affect rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// Time of the resolution, as written.
    pub generated: String,
    /// Hash of the dependencies in `Chart.yaml`.
    pub digest: String,
    /// Resolved dependencies.
    pub dependencies: Vec<Dependency>,
}

/// A custom resource definition of a chart or one of its subcharts.
#[derive(Clone, Debug)]
pub struct Crd<'a> {
    /// Path that starts with the root chart's name: `app/charts/db/crds/a.yaml`.
    pub filename: String,
    /// File that contains the definition.
    pub file: &'a File,
}

impl Chart {
    /// Returns the chart's name. After dependencies are processed, this is the alias if there is one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the files in `crds/` of this chart, followed by those of its subcharts.
    #[must_use]
    pub fn crds(&self) -> Vec<Crd<'_>> {
        let mut found = Vec::new();
        self.collect_crds(self.name(), &mut found);
        found
    }

    fn collect_crds<'a>(&'a self, path: &str, found: &mut Vec<Crd<'a>>) {
        let own = self.files.iter().filter(|file| is_crd(&file.name));
        found.extend(own.map(|file| Crd {
            filename: format!("{path}/{}", file.name),
            file,
        }));
        for sub in &self.dependencies {
            sub.collect_crds(&format!("{path}/charts/{}", sub.name()), found);
        }
    }
}

impl File {
    /// Creates a file. A leading byte order mark is removed, as in Helm.
    #[must_use]
    pub fn new(name: impl Into<String>, data: &[u8]) -> Self {
        Self {
            name: name.into(),
            data: Arc::from(without_bom(data)),
        }
    }
}

/// Returns `data` without a leading UTF-8 byte order mark.
pub(crate) fn without_bom(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data)
}

fn is_crd(name: &str) -> bool {
    name.starts_with("crds/") && has_manifest_extension(name)
}

fn has_manifest_extension(name: &str) -> bool {
    let extension = crate::load::extension(name);
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}
