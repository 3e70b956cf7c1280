//! `helm template` in one call: takes a loaded chart and a request, gives what goes to stdout. Touches no disk.

use mainstay_sprig as sprig;
use mainstay_template::{Host, Limits, Meter, TemplateSet, Value, execute};
use mainstay_yaml::Map;

use crate::error::ChartError;
use crate::load::Loaded;
use crate::prepare::{PrepareOptions, Prepared, prepare};
use crate::print::{self, OutputFile, PostRenderer, PrintOptions};
use crate::render::{RenderOptions, Rendered, render};
use crate::warning::Warning;

/// What to render and how to print it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the user set, merged; see [`Layers`](crate::Layers).
    pub values: Map,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
    /// What templates are told.
    pub render: RenderOptions,
    /// What is printed.
    pub print: PrintOptions,
}

impl Request {
    /// What `helm template` does when nothing is said.
    #[must_use]
    pub fn new(dialect: crate::Dialect) -> Self {
        Self {
            values: Map::new(),
            skip_schema: false,
            render: RenderOptions::new(dialect),
            print: PrintOptions::default(),
        }
    }
}

/// What the caller lends for the time of a call.
pub struct RenderEnvironment<'a> {
    /// Randomness, time, and a cluster to look things up in.
    pub host: &'a mut dyn Host,
    /// Told what Helm says on stderr, as it comes up.
    pub warn: &'a mut dyn FnMut(&Warning),
    /// What manifests pass through on their way out.
    pub post_renderer: Option<&'a mut PostRenderer<'a>>,
}

/// What a call came to.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// What goes to stdout.
    pub text: Vec<u8>,
    /// What the chart's `NOTES.txt` says; `helm template` does not print it.
    pub notes: Vec<u8>,
}

/// From a chart to the text of stdout.
pub fn template(
    loaded: &Loaded,
    request: &Request,
    environment: RenderEnvironment<'_>,
) -> Result<Output, ChartError> {
    let RenderEnvironment {
        host,
        warn,
        post_renderer,
    } = environment;
    let (prepared, rendered) = run(loaded, request, host, warn)?;
    let dialect = request.render.dialect;
    let (text, warnings) = print::print(
        &prepared.chart,
        &rendered.files,
        &request.print,
        dialect,
        post_renderer,
    )?;
    warnings.iter().for_each(warn);
    Ok(Output {
        text,
        notes: rendered.notes,
    })
}

/// From a chart to the files of `--output-dir`, in the order they are written.
pub fn template_files(
    loaded: &Loaded,
    request: &Request,
    environment: RenderEnvironment<'_>,
) -> Result<Vec<OutputFile>, ChartError> {
    let RenderEnvironment { host, warn, .. } = environment;
    let (prepared, rendered) = run(loaded, request, host, warn)?;
    let dialect = request.render.dialect;
    let (pieces, warnings) = print::pieces(&prepared.chart, &rendered.files, &request.print, dialect)?;
    warnings.iter().for_each(warn);
    Ok(pieces)
}

fn run(
    loaded: &Loaded,
    request: &Request,
    host: &mut dyn Host,
    warn: &mut dyn FnMut(&Warning),
) -> Result<(Prepared, Rendered), ChartError> {
    let options = PrepareOptions {
        dialect: request.render.dialect,
        kube_version: request.render.capabilities.kube_version.clone(),
        skip_schema: request.skip_schema,
    };
    let mut warnings = Vec::new();
    let prepared = prepare(loaded, &request.values, &options, &mut warnings);
    warnings.iter().for_each(warn);
    let prepared = prepared?;
    let rendered = render(&prepared, &request.render, host)?;
    Ok((prepared, rendered))
}

/// `--name-template`: the name a template gives, or what Go says about it. It has Sprig's functions and no data.
pub fn release_name_from(text: &str, host: &mut dyn Host) -> Result<String, String> {
    const NAME: &str = "name-template";
    let mut set = TemplateSet::named(NAME);
    set.functions(sprig::functions());
    set.parse(NAME, text).map_err(|error| error.text)?;
    let mut meter = Meter::new(Limits::default());
    let name = execute(&set, NAME, Value::Nil, &mut meter, host).map_err(|error| error.text)?;
    Ok(String::from_utf8_lossy(&name).into_owned())
}
