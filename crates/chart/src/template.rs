//! `helm template` in one call: renders a loaded chart and returns the text of stdout or the files of
//! `--output-dir`. Does not access the disk.

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

/// The values, render options and print options of one call.
#[derive(Clone, Debug)]
pub struct Request {
    /// The user's values, merged; see [`Layers`](crate::Layers).
    pub values: Map,
    /// `--skip-schema-validation`.
    pub skip_schema: bool,
    /// Release, cluster and limits that templates see.
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

/// The side effects of a call, supplied by the caller.
pub struct RenderEnvironment<'a> {
    /// Randomness, time, and the cluster that `lookup` queries.
    pub host: &'a mut dyn Host,
    /// Called for every line that Helm writes to stderr, as it occurs.
    pub warn: &'a mut dyn FnMut(&Warning),
    /// `--post-renderer`: filter for all manifests except hooks.
    pub post_renderer: Option<&'a mut PostRenderer<'a>>,
}

/// The result of [`template`].
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The text of stdout.
    pub text: Vec<u8>,
    /// The rendered `NOTES.txt`, which `helm template` does not print.
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

/// Renders a chart and passes the text of stdout to `write`, piece by piece: it is not in memory as a whole.
/// Without a post-renderer. Nothing is written if the result is an error.
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

/// Renders a chart to the files of `--output-dir`, in the order they are written.
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

/// Renders the argument of `--name-template`, which has Sprig's functions and no data. The error's text is
/// Go's.
pub fn release_name_from(text: &str, host: &mut dyn Host) -> Result<String, Error> {
    const NAME: &str = "name-template";
    let mut set = TemplateSet::named(NAME);
    set.functions(sprig::functions());
    set.parse(NAME, text)?;
    let mut meter = Meter::new(Limits::default());
    let name = execute(&set, NAME, Value::Nil, &mut meter, host)?;
    Ok(String::from_utf8_lossy(&name).into_owned())
}
