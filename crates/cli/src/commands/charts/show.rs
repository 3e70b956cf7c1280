//! `mainstay charts show`: prints the contents of a version, a chart or a file.

use mainstay_catalog::derive::Files;
use mainstay_catalog::{Catalog, Flavour, Version};

use crate::catalog::ChartsFlag;
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::ui::table;

/// Arguments of `charts show`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag each; clap keeps them exclusive"
)]
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay charts show 1.29.1
  mainstay charts show v1.29-latest istiod --values
  mainstay charts show 1.29.1 istiod --file templates/deployment.yaml
  mainstay charts show 1.29.1 --profile ambient")]
pub(crate) struct Args {
    /// Version or alias
    version: String,

    /// Chart of the version
    chart: Option<String>,

    /// Print the chart's values.yaml
    #[arg(long, group = "what", requires = "chart")]
    values: bool,

    /// Print the chart's README.md
    #[arg(long, group = "what", requires = "chart")]
    readme: bool,

    /// Print the chart's Chart.yaml
    #[arg(long, group = "what", requires = "chart")]
    metadata: bool,

    /// List the chart's files (default)
    #[arg(long, group = "what", requires = "chart")]
    files: bool,

    /// Print one file of the chart
    #[arg(long, group = "what", requires = "chart", value_name = "PATH")]
    file: Option<String>,

    /// Print a profile of the version
    #[arg(long, group = "what", conflicts_with = "chart", value_name = "NAME")]
    profile: Option<String>,

    /// Flavour of the charts
    #[arg(long, value_enum, default_value_t = FlavourName::Installer)]
    flavour: FlavourName,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FlavourName {
    Installer,
    Operator,
}

impl From<FlavourName> for Flavour {
    fn from(name: FlavourName) -> Self {
        match name {
            FlavourName::Installer => Self::Installer,
            FlavourName::Operator => Self::Operator,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let catalog = args.charts.open()?;
    let version = catalog.resolve(&args.version)?;
    let flavour = args.flavour.into();
    match (&args.chart, &args.profile) {
        (_, Some(profile)) => print(&catalog.profile(&version, flavour, profile)?),
        (Some(chart), None) => show_chart(args, &catalog.chart(&version, flavour, chart)?),
        (None, None) => show_version(&catalog, &version, flavour),
    }
}

fn show_version(catalog: &Catalog, version: &Version, flavour: Flavour) -> Result<(), CliError> {
    let one = catalog
        .installable()
        .into_iter()
        .find(|one| one.version == *version);
    let (origin, also) = one
        .map(|one| (one.origin.name(), one.aliases.join(", ")))
        .unwrap_or_default();
    let rows = [
        ("version", version.to_string()),
        ("aliases", also),
        ("origin", origin.to_owned()),
        ("flavour", flavour.to_string()),
        ("charts", catalog.charts(version, flavour)?.join(", ")),
        ("profiles", catalog.profiles(version, flavour)?.join(", ")),
    ];
    let rows = rows.map(|(name, text)| vec![format!("{name}:"), text]);
    print(table::lines("", &rows).as_bytes())
}

fn show_chart(args: &Args, files: &Files) -> Result<(), CliError> {
    let wanted = match &args.file {
        Some(path) => Some(path.as_str()),
        None if args.values => Some("values.yaml"),
        None if args.readme => Some("README.md"),
        None if args.metadata => Some("Chart.yaml"),
        None => None,
    };
    match wanted {
        Some(path) => show_file(files, path),
        None => print(
            files
                .keys()
                .flat_map(|path| [path, "\n"])
                .collect::<String>()
                .as_bytes(),
        ),
    }
}

fn show_file(files: &Files, path: &str) -> Result<(), CliError> {
    let missing = || {
        CliError::new(Kind::Chart, format!("the chart has no file {path:?}"))
            .hint("omit --file to list the files")
    };
    print(files.get(path).ok_or_else(missing)?)
}
