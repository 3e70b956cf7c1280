//! Renders the chart of a component and parses the output into objects.

use std::collections::BTreeMap;

use mainstay_chart::{
    Capabilities, ChartError, Dialect, File, KubeVersion, Loaded, PrepareOptions, RenderOptions, load_files,
    prepare, render,
};
use mainstay_gostd::error::chain;
use mainstay_template::NoHost;
use mainstay_yaml::{Budget, Numbers, Options, Value, parse_with};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::object::Object;
use crate::package::{Charts, PackageError};
use crate::path::Path;
use crate::validate::is_reported_deprecation;
use crate::values::ChartInput;

/// istioctl renders with the libraries of Helm 3.
const DIALECT: Dialect = Dialect::Helm3;

/// Release name in all charts.
const RELEASE: &str = "istio";

/// Prefix of warnings in the notes of a chart.
const NOTE_WARNING: &str = "WARNING: ";

/// Renders charts for one generation. Loaded charts are cached.
pub(crate) struct Renderer<'a> {
    charts: &'a dyn Charts,
    kube_version: KubeVersion,
    loaded: BTreeMap<&'static str, Loaded>,
}

impl<'a> Renderer<'a> {
    /// Creates a renderer for a cluster with this Kubernetes version.
    pub(crate) fn new(charts: &'a dyn Charts, kube_version: &str) -> Result<Self, Box<Diagnostic>> {
        let kube_version = KubeVersion::parse(kube_version, DIALECT).map_err(|error| {
            let message = format!("invalid Kubernetes version {kube_version:?}: {error}");
            Box::new(Diagnostic::fatal(Path::default(), message))
        })?;
        Ok(Self {
            charts,
            kube_version,
            loaded: BTreeMap::new(),
        })
    }

    /// Returns the objects of a chart in the order of its files. Adds its warnings to `diagnostics`.
    pub(crate) fn render(
        &mut self,
        input: &ChartInput,
        diagnostics: &mut Diagnostics,
    ) -> Result<Vec<Object>, Box<Diagnostic>> {
        let component = input.instance.component;
        let path = &input.instance.path;
        self.load(component.chart)
            .map_err(|error| error.into_diagnostic(path))?;
        let Some(loaded) = self.loaded.get(component.chart) else {
            return Ok(Vec::new());
        };
        let mut options = RenderOptions::new(DIALECT);
        options.release.name = RELEASE.into();
        options.release.namespace.clone_from(&input.instance.namespace);
        options.capabilities = Capabilities {
            kube_version: self.kube_version.clone(),
            ..Capabilities::offline(DIALECT)
        };
        let preparation = PrepareOptions {
            dialect: DIALECT,
            kube_version: self.kube_version.clone(),
            skip_schema: false,
        };
        let failed = |error: ChartError| RenderFailure::Chart(component.chart, error).into_diagnostic(path);
        let prepared = prepare(loaded, &input.values, &preparation, &mut Vec::new()).map_err(failed)?;
        let rendered = render(&prepared, &options, &mut NoHost).map_err(failed)?;
        let notes = warnings(&rendered.notes).into_iter();
        for warning in notes.filter(|note| !is_reported_deprecation(note)) {
            diagnostics.push(Diagnostic::warning(Path::default(), warning));
        }
        let crds = loaded.chart.crds();
        let mut crds: Vec<_> = crds.iter().filter(|_| keeps_crds(input)).collect();
        crds.sort_by(|a, b| a.file.name.cmp(&b.file.name));
        let texts = rendered
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_slice()));
        let texts = texts.filter(|(name, _)| name.strip_suffix(".txt").is_none());
        let crds = crds.iter().map(|crd| (crd.filename.as_str(), &*crd.file.data));
        let mut objects = Vec::new();
        for (name, text) in texts.chain(crds) {
            split_objects(name, text, &mut objects).map_err(|error| error.into_diagnostic(path))?;
        }
        Ok(objects)
    }

    fn load(&mut self, chart: &'static str) -> Result<(), RenderFailure> {
        if self.loaded.contains_key(chart) {
            return Ok(());
        }
        let files = self.charts.chart(chart).map_err(RenderFailure::Package)?;
        let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
        let loaded = load_files(files, DIALECT).map_err(|error| RenderFailure::Chart(chart, error))?;
        self.loaded.insert(chart, loaded);
        Ok(())
    }
}

/// Error of rendering a chart.
enum RenderFailure {
    Package(PackageError),
    Chart(&'static str, ChartError),
    Yaml(String, Box<mainstay_yaml::Error>),
}

impl RenderFailure {
    fn into_diagnostic(self, path: &Path) -> Box<Diagnostic> {
        let message = match &self {
            Self::Package(error) => chain(error),
            Self::Chart(chart, error) => format!("chart {chart:?}: {}", chain(error)),
            Self::Yaml(file, error) => format!("{file} renders to invalid YAML: {error}"),
        };
        Box::new(Diagnostic::fatal(path.clone(), message))
    }
}

/// Whether the CRDs of a chart are included. Those of the base chart can be disabled.
fn keeps_crds(input: &ChartInput) -> bool {
    let base = input.values.get("base");
    let switch = base.and_then(|base| base.get("enableIstioConfigCRDs"));
    input.instance.component.chart != "base" || switch.and_then(Value::as_bool) != Some(false)
}

fn warnings(notes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(notes);
    let lines = text.lines().filter_map(|line| line.strip_prefix(NOTE_WARNING));
    lines.map(ToOwned::to_owned).collect()
}

/// Splits text at lines that start with `---`. Drops empty documents.
fn split_documents(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"---") {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.extend_from_slice(line);
        }
    }
    // Trimming removes the newline of a block scalar at the end of a document, as in istioctl.
    let parts = parts.iter().map(|part| part.trim_ascii().to_vec());
    parts.filter(|part| !part.is_empty()).collect()
}

fn split_objects(name: &str, text: &[u8], objects: &mut Vec<Object>) -> Result<(), RenderFailure> {
    let parsed = parse_objects(text);
    objects.extend(parsed.map_err(|error| RenderFailure::Yaml(name.to_owned(), error))?);
    Ok(())
}

/// Parses all objects of a YAML stream. Documents without a kind are dropped.
pub fn parse_objects(text: &[u8]) -> Result<Vec<Object>, Box<mainstay_yaml::Error>> {
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: Budget::default(),
    };
    let mut objects = Vec::new();
    for part in split_documents(text) {
        let object = Object(parse_with(&part, &options).map_err(Box::new)?);
        if !object.kind().is_empty() {
            objects.push(object);
        }
    }
    Ok(objects)
}
