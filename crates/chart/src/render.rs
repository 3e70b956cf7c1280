//! Rendering of all templates of a prepared chart to one text per file, without access to clocks, files or
//! clusters: templates access them only through the caller's [`Host`].

mod failure;
mod scope;

use std::any::Any;
use std::collections::BTreeMap;

use mainstay_template::{Failure, Host, Limits, Map, MapType, Meter, TemplateSet, Value, execute};

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::functions::{self, State, without_no_value};
use crate::objects::Capabilities;
use crate::prepare::Prepared;
use failure::Failures;
use scope::Renderable;

/// Inputs of a render other than values.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// Helm version that determines rules and messages.
    pub dialect: Dialect,
    /// Release that is visible in templates.
    pub release: Release,
    /// Cluster and Helm version that are visible in templates.
    pub capabilities: Capabilities,
    /// Limits for all templates together.
    pub limits: Limits,
}

/// A release, visible in templates as `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Release name.
    pub name: String,
    /// Release namespace.
    pub namespace: String,
    /// Revision number.
    pub revision: i64,
    /// Whether the release upgrades an earlier one.
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
    /// Creates the options with the defaults of `helm template`.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            release: Release::default(),
            capabilities: Capabilities::offline(dialect),
            limits: default_limits(),
        }
    }
}

/// Returns limits that allow Helm's thousand nested includes, each inside a few blocks.
fn default_limits() -> Limits {
    Limits {
        depth: 20_000,
        ..Limits::default()
    }
}

/// Output of a render.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// Rendered text by template path (`chart/templates/x.yaml`). Partials and notes are not included.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Rendered `NOTES.txt` of the root chart.
    pub notes: Vec<u8>,
}

/// Runs the templates of a chart and its subcharts.
pub fn render(
    prepared: &Prepared,
    options: &RenderOptions,
    host: &mut dyn Host,
) -> Result<Rendered, ChartError> {
    let renderables = scope::renderables(prepared, options);
    let run = Run {
        renderables: &renderables,
        dialect: options.dialect,
    };
    let set = run.parse()?;
    let mut meter = Meter::new(options.limits.clone());
    let mut host = RenderHost {
        host,
        state: State::default(),
    };
    let mut rendered = Rendered::default();
    for renderable in renderables.iter().filter(|renderable| !renderable.is_partial()) {
        let text = run.execute(&set, renderable, &mut meter, &mut host)?;
        rendered.add(&prepared.chart, &renderable.path, text);
    }
    Ok(rendered)
}

impl Rendered {
    fn add(&mut self, chart: &Chart, path: &str, mut text: Vec<u8>) {
        // All files remain in memory until they are sorted.
        text.shrink_to_fit();
        if !path.ends_with("NOTES.txt") {
            self.files.insert(path.to_owned(), text);
        } else if path.strip_prefix(chart.name()) == Some("/templates/NOTES.txt") {
            self.notes = text;
        }
    }
}

/// Templates of one render and the rules that apply to them.
struct Run<'a> {
    renderables: &'a [Renderable<'a>],
    dialect: Dialect,
}

impl Run<'_> {
    fn parse(&self) -> Result<TemplateSet, ChartError> {
        let mut set = functions::template_set(self.dialect);
        for renderable in self.renderables {
            set.parse_shared(&renderable.path, renderable.text)
                .map_err(|error| self.failures().parse(&renderable.path, &error))?;
        }
        Ok(set)
    }

    fn execute(
        &self,
        set: &TemplateSet,
        renderable: &Renderable<'_>,
        meter: &mut Meter,
        host: &mut RenderHost<'_>,
    ) -> Result<Vec<u8>, ChartError> {
        let values = MapType::Named(self.dialect.values_type());
        renderable.scope.insert("Template", renderable.template(values));
        let dot = Value::Map(renderable.scope.retyped(values));
        execute(set, &renderable.path, dot, meter, host)
            .map(without_no_value)
            .map_err(|error| self.failures().execute(&error))
    }

    fn failures(&self) -> Failures<'_> {
        Failures {
            renderables: self.renderables,
            dialect: self.dialect,
        }
    }
}

/// The caller's host, extended by the state of Helm's functions during one render.
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
    ) -> Result<Value, Failure> {
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
