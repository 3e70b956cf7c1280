//! `mainstay charts pull`: takes a version and a source, adds both flavours of it to the user's catalogue.

use std::path::PathBuf;

use mainstay_catalog::{
    Catalog, Flavour, Note, Version, derive_operator, release_from_charts, write_version,
};

use crate::catalogue::{ChartsFlag, user_folder};
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::remote::{Client, DEFAULT_REPOSITORY, Progress, Pulled, Source};

/// Arguments of `charts pull`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay charts pull 1.30.3
  mainstay charts pull 1.30.3 --repo https://charts.example.com/istio
  mainstay charts pull 1.30.3 oci://gcr.io/istio-release/charts

Every archive is verified against the digest its index or manifest names. The charts base, istiod, cni, ztunnel and gateway
must all be there, else nothing is added. HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured.")]
pub(crate) struct Args {
    /// The version to add, as released: X.Y.Z
    version: String,

    /// A Helm repository (https://…) or an OCI registry (oci://…)
    #[arg(value_name = "SOURCE", conflicts_with = "repo")]
    source: Option<String>,

    /// The same as SOURCE
    #[arg(long, value_name = "URL")]
    repo: Option<String>,

    /// Speak to the source without TLS
    #[arg(long)]
    plain_http: bool,

    /// Add to this folder instead of your catalogue; read it with --charts
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let version: Version = args.version.parse()?;
    let folder = args.to.clone().or_else(user_folder).ok_or_else(no_folder)?;
    let address = args
        .source
        .as_deref()
        .or(args.repo.as_deref())
        .unwrap_or(DEFAULT_REPOSITORY);
    let source = Source::parse(address, args.plain_http)?;
    let mut progress = Progress::start();
    let pulled = source.pull(&Client::new()?, &version, &mut progress)?;
    let note = provenance(address, &pulled);
    let flavours = flavours(&ChartsFlag::default().open()?, &version, pulled)?;
    let target = write_version(
        &folder,
        &version,
        &flavours,
        Note {
            name: "SOURCE",
            text: &note,
        },
    )?;
    print(format!("Istio {version}: {} in {}\n", names(&flavours), target.display()).as_bytes())
}

fn no_folder() -> CliError {
    CliError::new(Kind::Usage, "there is no place for your catalogue")
        .hint("set HOME or XDG_DATA_HOME, or name a folder with --to")
}

/// Both flavours of what was pulled.
fn flavours(
    catalog: &Catalog,
    version: &Version,
    pulled: Vec<Pulled>,
) -> Result<Vec<(Flavour, mainstay_catalog::derive::Files)>, CliError> {
    let charts = pulled.into_iter().map(|one| (one.chart, one.files)).collect();
    let release = release_from_charts(charts, catalog.nearest_profiles(version)?, version)?;
    let operator = derive_operator(&release, version)?;
    Ok(vec![(Flavour::Installer, release), (Flavour::Operator, operator)])
}

/// Kept beside the charts: where they came from.
fn provenance(address: &str, pulled: &[Pulled]) -> String {
    let lines = pulled.iter().map(|one| format!("{} {}\n", one.chart, one.digest));
    std::iter::once(format!("{address}\n"))
        .chain(lines)
        .collect::<Vec<_>>()
        .concat()
}

fn names(flavours: &[(Flavour, mainstay_catalog::derive::Files)]) -> String {
    let counts = flavours
        .iter()
        .map(|(flavour, files)| format!("{} files for the {flavour}", files.len()));
    counts.collect::<Vec<_>>().join(", ")
}
