//! A prepared chart to text: takes values and options, runs every template, gives one text per file. Reads no clock, file or
//! cluster: what templates ask of the world goes to the caller's [`Host`].

mod failure;
mod scope;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use mainstay_template::{Host, Limits, Map, MapType, Meter, MissingKey, TemplateSet, Value, execute};

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::functions::{self, State, without_no_value};
use crate::objects::Capabilities;
use crate::prepare::Prepared;
use scope::Renderable;

/// What a render is told beside values.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// Which Helm to be.
    pub dialect: Dialect,
    /// The release.
    pub release: Release,
    /// The cluster.
    pub capabilities: Capabilities,
    /// What all templates together may use.
    pub limits: Limits,
}

/// What templates see as `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its number.
    pub revision: i64,
    /// Whether it replaces an older one.
    pub is_upgrade: bool,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            name: "release-name".into(),
            namespace: "default".into(),
            revision: 1,
            is_upgrade: false,
        }
    }
}

impl RenderOptions {
    /// What `helm template` assumes when nothing is said.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            release: Release::default(),
            capabilities: Capabilities::offline(dialect),
            limits: limits(),
        }
    }
}

/// Deep enough for the thousand nested includes Helm allows, each of them inside a few blocks.
fn limits() -> Limits {
    Limits {
        depth: 20_000,
        ..Limits::default()
    }
}

/// What every template made, by path, without partials and notes.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// `chart/templates/x.yaml` against its text.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What the root chart's `NOTES.txt` says.
    pub notes: Vec<u8>,
}

/// Runs the templates of a chart and its subcharts.
pub fn render(
    prepared: &Prepared,
    options: &RenderOptions,
    host: &mut dyn Host,
) -> Result<Rendered, ChartError> {
    let renderables = scope::renderables(prepared, options);
    let set = parse(&renderables, options.dialect)?;
    let mut meter = Meter::new(options.limits.clone());
    let mut host = RenderHost {
        host,
        state: State::default(),
    };
    let mut rendered = Rendered::default();
    for renderable in renderables.iter().filter(|renderable| !renderable.is_partial()) {
        let text = run(&set, renderable, &renderables, options, &mut meter, &mut host)?;
        rendered.add(&prepared.chart, &renderable.path, text);
    }
    Ok(rendered)
}

impl Rendered {
    fn add(&mut self, chart: &Chart, path: &str, text: Vec<u8>) {
        if !path.ends_with("NOTES.txt") {
            self.files.insert(path.to_owned(), text);
        } else if path.strip_prefix(chart.name()) == Some("/templates/NOTES.txt") {
            self.notes = text;
        }
    }
}

fn parse(renderables: &[Renderable<'_>], dialect: Dialect) -> Result<TemplateSet, ChartError> {
    let mut set = empty_set(dialect);
    for renderable in renderables {
        set.parse(&renderable.path, renderable.text)
            .map_err(|error| failure::parse(&renderable.path, &error, &|name| source(renderables, name)))?;
    }
    Ok(set)
}

/// A set with Helm's functions and no templates. Looking up three hundred names is a part of a render one can see, and the
/// answer is always the same.
fn empty_set(dialect: Dialect) -> TemplateSet {
    fn with_functions(dialect: Dialect) -> TemplateSet {
        let mut set = TemplateSet::new();
        set.functions(&functions::functions(dialect));
        set.missing_key(MissingKey::Zero);
        set
    }
    static HELM3: LazyLock<TemplateSet> = LazyLock::new(|| with_functions(Dialect::Helm3));
    static HELM4: LazyLock<TemplateSet> = LazyLock::new(|| with_functions(Dialect::Helm4));
    match dialect {
        Dialect::Helm3 => HELM3.clone(),
        Dialect::Helm4 => HELM4.clone(),
    }
}

fn run(
    set: &TemplateSet,
    renderable: &Renderable<'_>,
    renderables: &[Renderable<'_>],
    options: &RenderOptions,
    meter: &mut Meter,
    host: &mut RenderHost<'_>,
) -> Result<Vec<u8>, ChartError> {
    let values = MapType::Named(scope::values_type(options.dialect));
    renderable.scope.insert("Template", renderable.template(values));
    let dot = Value::Map(renderable.scope.retyped(values));
    execute(set, &renderable.path, dot, meter, host)
        .map(without_no_value)
        .map_err(|error| failure::run(&error, options.dialect, &|name| source(renderables, name)))
}

fn source<'a>(renderables: &[Renderable<'a>], name: &str) -> Option<&'a [u8]> {
    renderables
        .iter()
        .find(|renderable| renderable.path == name)
        .map(|renderable| renderable.text)
}

/// The caller's host, with what Helm's functions keep during one render.
struct RenderHost<'a> {
    host: &'a mut dyn Host,
    state: State,
}

impl Host for RenderHost<'_> {
    fn entropy(&mut self, buffer: &mut [u8]) {
        self.host.entropy(buffer);
    }

    fn now(&mut self) -> i128 {
        self.host.now()
    }

    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, String> {
        self.host.lookup(api_version, kind, namespace, name)
    }

    fn state(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.state)
    }
}

impl Renderable<'_> {
    fn template(&self, values: MapType) -> Value {
        let entries = [
            ("BasePath".into(), Value::string(self.base_path.as_str())),
            ("Name".into(), Value::string(self.path.as_str())),
        ];
        Value::Map(Map::new(values, entries.into_iter().collect()))
    }
}
