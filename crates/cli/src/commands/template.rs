//! `mainstay template`: renders a chart like `helm template`.

mod args;
mod check;
mod name;
mod namespace;
mod output_dir;
mod post_render;
mod values;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mainstay_catalog::derive::Files;
use mainstay_chart::{
    Capabilities, ChartError, Dialect, File, KubeVersion, Loaded, PrintOptions, Release, RenderEnvironment,
    RenderOptions, Request, Warning, load_files, load_path, template, template_files, write_template,
};

pub(crate) use args::Args;

use super::print;
use crate::catalog::resolve_chart;
use crate::error::{CliError, Kind};
use crate::host::SystemHost;
use args::Like;
use post_render::Program;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let dialect = dialect(args.like);
    let capabilities = capabilities(args, dialect)?;
    check::check(args, dialect)?;
    let program = Program::find(&args.output.post_renderer, &args.output.post_renderer_args)?;
    let (name, chart) = name::name_and_chart(args)?;
    let source = locate(chart, args)?;
    let values = values::merge(&args.values, dialect)?;
    let loaded = source.load(dialect)?;
    name::check_release_name(&name, dialect)
        .map_err(|error| logged("release name check failed", error, dialect))?;
    let release = Release {
        name,
        namespace: namespace::namespace(args),
        revision: 1,
        is_upgrade: args.release.is_upgrade,
    };
    let render = RenderOptions {
        release,
        capabilities,
        ..RenderOptions::new(dialect)
    };
    let skip_schema = args.values.skip_schema_validation;
    let request = Request {
        values,
        skip_schema,
        render,
        print: print_options(args),
    };
    match &args.output.directory {
        Some(directory) => write_files(directory, &loaded, &request, args),
        None => write_text(&loaded, &request, program, args),
    }
}

fn dialect(like: Like) -> Dialect {
    match like {
        Like::Helm4 => Dialect::Helm4,
        Like::Helm3 => Dialect::Helm3,
    }
}

fn capabilities(args: &Args, dialect: Dialect) -> Result<Capabilities, CliError> {
    let mut capabilities = Capabilities::offline(dialect);
    if let Some(version) = args
        .release
        .kube_version
        .as_deref()
        .filter(|version| !version.is_empty())
    {
        capabilities.kube_version = KubeVersion::parse(version, dialect).map_err(|error| {
            CliError::new(Kind::Usage, format!("invalid kube version '{version}': {error}"))
        })?;
    }
    capabilities.api_versions.extend(
        args.release
            .api_versions
            .iter()
            .flat_map(|list| values::comma_list(list)),
    );
    Ok(capabilities)
}

fn print_options(args: &Args) -> PrintOptions {
    PrintOptions {
        include_crds: args.output.include_crds,
        no_hooks: args.output.no_hooks,
        skip_tests: args.output.skip_tests,
        show_only: args.output.show_only.clone(),
    }
}

/// Location of a chart.
enum Source {
    /// In a directory or an archive.
    Path(PathBuf),
    /// In the catalog.
    Files(Files),
}

impl Source {
    fn load(self, dialect: Dialect) -> Result<Loaded, CliError> {
        match self {
            Self::Path(path) => Ok(load_path(&path, dialect)?),
            Self::Files(files) => {
                let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
                Ok(load_files(files, dialect)?)
            }
        }
    }
}

/// Locates a chart in the catalog or on disk; charts of repositories are rejected with Helm's message.
fn locate(chart: &str, args: &Args) -> Result<Source, CliError> {
    let chart = chart.trim();
    if let Some(files) = resolve_chart(chart, args.network.version.as_deref(), &args.catalog)? {
        return Ok(Source::Files(files));
    }
    let path = Path::new(chart);
    let here = path.exists();
    if args.network.repo.is_some() && !(here && args.like == Like::Helm3) {
        let message = format!("cannot look for chart {chart:?} in a repository");
        return Err(CliError::new(Kind::Offline, message).hint(PULL));
    }
    if here {
        return Ok(Source::Path(std::path::absolute(path)?));
    }
    let missing = CliError::new(Kind::Chart, not_found(chart));
    if path.is_absolute() || chart.starts_with('.') {
        Err(missing
            .hint("name a chart's directory or archive, or an embedded one such as `catalog:istiod@1.29.1`"))
    } else {
        Err(missing.hint(PULL))
    }
}

const PULL: &str =
    "fetch the chart first (`mainstay charts pull`, `helm pull`) and use its path: rendering works offline";

fn not_found(chart: &str) -> String {
    if Path::new(chart).is_absolute() || chart.starts_with('.') {
        return format!("path {chart:?} not found");
    }
    match chart.split_once('/') {
        _ if chart.contains("://") => format!("cannot fetch {chart}"),
        Some((repo, _)) => format!("repo {repo} not found"),
        None => format!("non-absolute URLs should be in form of repo_name/path_to_chart, got: {chart}"),
    }
}

fn write_text(
    loaded: &Loaded,
    request: &Request,
    program: Option<Program>,
    args: &Args,
) -> Result<(), CliError> {
    let dialect = request.render.dialect;
    let result = match program {
        Some(program) => post_rendered(loaded, request, program),
        None => streamed(loaded, request),
    };
    match result {
        Ok(written) => written,
        Err(error) if error.is_from_render() => {
            if args.output.debug {
                print(error.rendered())?;
                return Err(error.into());
            }
            Err(CliError::from(error).note("\n\nUse --debug flag to render out invalid YAML"))
        }
        Err(error) => Err(logged(
            "chart dependencies processing failed",
            error.into(),
            dialect,
        )),
    }
}

/// Renders and writes the text of stdout through a buffer; the inner result is that of writing.
fn streamed(loaded: &Loaded, request: &Request) -> Result<Result<(), CliError>, ChartError> {
    let dialect = request.render.dialect;
    let environment = RenderEnvironment {
        host: &mut SystemHost,
        warn: &mut |warning| warn(warning, dialect),
        post_renderer: None,
    };
    let mut stdout = BufWriter::with_capacity(WRITE_BUFFER, std::io::stdout().lock());
    let mut written = Ok(());
    write_template(loaded, request, environment, &mut |piece| {
        if written.is_ok() {
            written = stdout.write_all(piece);
        }
    })?;
    Ok(written.and_then(|()| stdout.flush()).map_err(CliError::from))
}

fn post_rendered(
    loaded: &Loaded,
    request: &Request,
    mut program: Program,
) -> Result<Result<(), CliError>, ChartError> {
    let dialect = request.render.dialect;
    let environment = RenderEnvironment {
        host: &mut SystemHost,
        warn: &mut |warning| warn(warning, dialect),
        post_renderer: Some(&mut |stream| program.run(stream)),
    };
    let output = template(loaded, request, environment)?;
    Ok(print(&output.text))
}

/// Size of the buffer before stdout.
const WRITE_BUFFER: usize = 64 << 10;

fn write_files(directory: &Path, loaded: &Loaded, request: &Request, args: &Args) -> Result<(), CliError> {
    let dialect = request.render.dialect;
    let mut no_host = SystemHost;
    let environment = RenderEnvironment {
        host: &mut no_host,
        warn: &mut |warning| warn(warning, dialect),
        post_renderer: None,
    };
    let pieces = template_files(loaded, request, environment).map_err(|error| {
        let note = if error.is_from_render() {
            "\n\nUse --debug flag to render out invalid YAML"
        } else {
            ""
        };
        CliError::from(error).note(note)
    })?;
    let release = args
        .output
        .release_name
        .then_some(request.render.release.name.as_str());
    let mut report = output_dir::write(directory, release, &pieces)?;
    report.push('\n');
    print(report.as_bytes())
}

/// Prints a warning like Helm.
fn warn(warning: &Warning, dialect: Dialect) {
    // A closed stderr is ignored.
    let _ = writeln!(std::io::stderr(), "{}", warning.line(dialect));
}

/// Logs a failure as Helm 4 does before it reports the failure.
fn logged(step: &'static str, error: CliError, dialect: Dialect) -> CliError {
    let text = error.message();
    if let (Dialect::Helm4, Some(cause)) = (
        dialect,
        text.strip_prefix(step).and_then(|it| it.strip_prefix(": ")),
    ) {
        warn(
            &Warning::Failed {
                step,
                error: cause.to_owned(),
            },
            dialect,
        );
    }
    error
}
