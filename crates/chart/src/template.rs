//! The steps of `helm template` in one call: renders a loaded chart and returns the text of stdout or the
//! files of `--output-dir`. Does not access the disk.

use mainstay_sprig as sprig;
use mainstay_template::{Error, Host, Limits, Meter, TemplateSet, Value, execute};
use mainstay_yaml::Map;

use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::load::Loaded;
use crate::prepare::{PrepareOptions, Prepared, prepare};
use crate::print::{OutputFile, PostRenderer, PrintOptions, Printer};
use crate::render::{RenderOptions, Rendered, render};
use crate::warning::Warning;

/// Inputs of one call: values, render options and print options.
#[derive(Clone, Debug)]
pub struct Request {
    /// Merged values of the user; see [`Layers`](crate::Layers).
    pub values: Map,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
    /// Release, cluster and limits for templates.
    pub render: RenderOptions,
    /// Selection of the printed manifests.
    pub print: PrintOptions,
}

impl Request {
    /// Creates a request with the defaults of `helm template`.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            values: Map::new(),
            skip_schema: false,
            render: RenderOptions::new(dialect),
            print: PrintOptions::default(),
        }
    }
}

/// Side effects of a call, provided by the caller.
pub struct RenderEnvironment<'a> {
    /// Source of randomness and time, and the cluster for `lookup`.
    pub host: &'a mut dyn Host,
    /// Callback for every line that Helm writes to stderr, called immediately.
    pub warn: &'a mut dyn FnMut(&Warning),
    /// `--post-renderer`: filter for all manifests except hooks.
    pub post_renderer: Option<&'a mut PostRenderer<'a>>,
}

/// Result of [`template`].
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Text of stdout.
    pub text: Vec<u8>,
    /// Rendered `NOTES.txt`, which `helm template` does not print.
    pub notes: Vec<u8>,
}

/// Renders a chart to the text of stdout.
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
    let (text, warnings) = printer(&prepared, &rendered, request).text(post_renderer)?;
    warnings.iter().for_each(warn);
    Ok(Output {
        text,
        notes: rendered.notes,
    })
}

/// Renders a chart and passes the text of stdout to `write` in pieces, so that the whole text is never in
/// memory. Does not support a post-renderer. Writes nothing if the result is an error.
pub fn write_template(
    loaded: &Loaded,
    request: &Request,
    environment: RenderEnvironment<'_>,
    write: &mut dyn FnMut(&[u8]),
) -> Result<(), ChartError> {
    let RenderEnvironment { host, warn, .. } = environment;
    let (prepared, rendered) = run(loaded, request, host, warn)?;
    let warnings = printer(&prepared, &rendered, request).write(write)?;
    warnings.iter().for_each(warn);
    Ok(())
}

/// Renders a chart to the files of `--output-dir`, in the order in which they are written.
pub fn template_files(
    loaded: &Loaded,
    request: &Request,
    environment: RenderEnvironment<'_>,
) -> Result<Vec<OutputFile>, ChartError> {
    let RenderEnvironment { host, warn, .. } = environment;
    let (prepared, rendered) = run(loaded, request, host, warn)?;
    let (files, warnings) = printer(&prepared, &rendered, request).files()?;
    warnings.iter().for_each(warn);
    Ok(files)
}

fn printer<'a>(prepared: &'a Prepared, rendered: &'a Rendered, request: &'a Request) -> Printer<'a> {
    Printer {
        chart: &prepared.chart,
        files: &rendered.files,
        options: &request.print,
        dialect: request.render.dialect,
    }
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

/// Renders the argument of `--name-template`, which can use Sprig's functions and has no data. The text of
/// an error is Go's.
pub fn release_name_from(text: &str, host: &mut dyn Host) -> Result<String, Error> {
    const NAME: &str = "name-template";
    let mut set = TemplateSet::named(NAME);
    set.add_functions(sprig::functions());
    set.parse(NAME, text)?;
    let mut meter = Meter::new(Limits::default());
    let name = execute(&set, NAME, Value::Nil, &mut meter, host)?;
    Ok(String::from_utf8_lossy(&name).into_owned())
}
