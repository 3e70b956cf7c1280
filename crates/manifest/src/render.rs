//! Renders the chart of a component and parses the output into objects.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use mainstay_chart::confine::without_line_breaks;
use mainstay_chart::{
    Capabilities, ChartError, Dialect, File, FixedHost, KubeVersion, Loaded, NotReproducible, PrepareOptions,
    RenderOptions, Rendered, load_files, prepare, render, render_reproducible,
};
use mainstay_gostd::error::chain;
use mainstay_template::Host;
use mainstay_yaml::{Budget, Map, Numbers, Options, Value, parse_with};

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

    /// Returns the objects of a chart in the order of its files. Adds its warnings to `diagnostics`. Fails if
    /// the objects depend on random values or on the time.
    pub(crate) fn render(
        &mut self,
        input: &ChartInput,
        diagnostics: &mut Diagnostics,
    ) -> Result<Vec<Object>, Box<Diagnostic>> {
        let mut notes = Vec::new();
        let [mut first, mut second] = FixedHost::pair();
        let objects = render_reproducible([&mut first, &mut second], Object::identity, |host| {
            let (objects, found) = self.render_values(input, &input.values, host)?;
            notes = found;
            Ok(objects)
        });
        let failed = |error: RenderFailure| error.into_diagnostic(input);
        let objects = objects.map_err(failed)?;
        for warning in notes.into_iter().filter(|note| !is_reported_deprecation(note)) {
            diagnostics.push(Diagnostic::warning(Path::default(), warning));
        }
        Ok(objects)
    }

    /// Renders a chart without the line breaks in its values. Tries all methods of removing them until a
    /// render succeeds. Returns `None` if all fail.
    pub(crate) fn render_without_line_breaks(&mut self, input: &ChartInput) -> Option<Vec<Object>> {
        let mut attempts = without_line_breaks(&input.values).map(|values| {
            let [mut host, _] = FixedHost::pair();
            self.render_values(input, &values, &mut host)
        });
        let (objects, _) = attempts.find_map(Result::ok)?;
        Some(objects)
    }

    /// Returns the objects and the warnings of a chart.
    fn render_values(
        &mut self,
        input: &ChartInput,
        values: &Map,
        host: &mut dyn Host,
    ) -> Result<(Vec<Object>, Vec<String>), RenderFailure> {
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
        let loaded = self.load(input.instance.component.chart)?;
        let prepared = prepare(loaded, values, &preparation, &mut Vec::new())?;
        let rendered = render(&prepared, &options, host)?;
        let objects = collect_objects(input, loaded, &rendered)?;
        Ok((objects, warnings(&rendered.notes)))
    }

    fn load(&mut self, chart: &'static str) -> Result<&Loaded, RenderFailure> {
        Ok(match self.loaded.entry(chart) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let files = self.charts.chart(chart)?;
                let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
                vacant.insert(load_files(files, DIALECT)?)
            }
        })
    }
}

/// Parses the rendered files, followed by the CRDs of the chart.
fn collect_objects(
    input: &ChartInput,
    loaded: &Loaded,
    rendered: &Rendered,
) -> Result<Vec<Object>, RenderFailure> {
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
        split_objects(name, text, &mut objects)?;
    }
    Ok(objects)
}

/// Error of rendering a chart.
enum RenderFailure {
    Package(PackageError),
    Chart(ChartError),
    Yaml(String, Box<mainstay_yaml::Error>),
    Differs(NotReproducible),
}

impl From<PackageError> for RenderFailure {
    fn from(error: PackageError) -> Self {
        Self::Package(error)
    }
}

impl From<ChartError> for RenderFailure {
    fn from(error: ChartError) -> Self {
        Self::Chart(error)
    }
}

impl From<NotReproducible> for RenderFailure {
    fn from(error: NotReproducible) -> Self {
        Self::Differs(error)
    }
}

impl RenderFailure {
    fn into_diagnostic(self, input: &ChartInput) -> Box<Diagnostic> {
        let chart = input.instance.component.chart;
        let message = match &self {
            Self::Package(error) => chain(error),
            Self::Chart(error) => format!("chart {chart:?}: {}", chain(error)),
            Self::Yaml(file, error) => format!("{file} renders to invalid YAML: {error}"),
            Self::Differs(difference) => format!("chart {chart:?}: {difference}"),
        };
        Box::new(Diagnostic::fatal(input.instance.path.clone(), message))
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
