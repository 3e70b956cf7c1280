//! `mainstay charts pull`: adds both flavours of a released version to the user's catalog.

use std::path::PathBuf;

use mainstay_catalog::{
    AliasChange, Catalog, Flavour, Note, Version, derive_operator, release_from_charts, write_version,
};

use crate::catalog::{ChartsFlag, user_directory};
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::remote::{Client, DEFAULT_REPOSITORY, Pulled, Source, sha256};
use crate::ui::Progress;

/// Arguments of `charts pull`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay charts pull 1.30.3
  mainstay charts pull 1.30.3 --repo https://charts.example.com/istio
  mainstay charts pull 1.30.3 oci://gcr.io/istio-release/charts
  mainstay charts pull 1.30.3 --to charts --digest sha256:…    # as in `charts.pull` of the operator's Helm chart

Every archive is verified against the digest in its index or manifest. Nothing is added unless the charts base, istiod, cni,
ztunnel and gateway all exist. The printed digest covers all archives; with --digest, other archives are rejected. HTTPS_PROXY,
HTTP_PROXY and NO_PROXY are honored.")]
pub(crate) struct Args {
    /// Version to add: X.Y.Z
    version: String,

    /// A Helm repository (https://…) or an OCI registry (oci://…)
    #[arg(value_name = "SOURCE", conflicts_with = "repo")]
    source: Option<String>,

    /// Same as SOURCE
    #[arg(long, value_name = "URL")]
    repo: Option<String>,

    /// Connect to the source without TLS
    #[arg(long)]
    plain_http: bool,

    /// Request registry tokens also from this host (repeatable); by default only from the registry's own
    #[arg(long, value_name = "HOST")]
    token_host: Vec<String>,

    /// Write to this directory instead of the user's catalog; use it with --charts
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// Reject charts with another digest than this one, which an earlier pull printed
    #[arg(long, value_name = "sha256:…", value_parser = crate::remote::parse_digest)]
    digest: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let version: Version = args.version.parse()?;
    let directory = args
        .to
        .clone()
        .or_else(user_directory)
        .ok_or_else(missing_directory)?;
    let address = args
        .source
        .as_deref()
        .or(args.repo.as_deref())
        .unwrap_or(DEFAULT_REPOSITORY);
    let source = Source::parse(address, args.plain_http)?.with_token_hosts(&args.token_host);
    let progress = Progress::start();
    let pulled = source.pull(&Client::new()?, &version, &progress)?;
    let digest = digest(&pulled);
    if let Some(expected) = args.digest.as_ref().filter(|expected| **expected != digest) {
        return Err(digest_mismatch(&version, &digest, expected));
    }
    let note = provenance(address, &pulled);
    let catalog = ChartsFlag::default().open()?;
    let flavours = flavours(&catalog, &version, pulled)?;
    let target = write_version(
        &directory,
        &version,
        &flavours,
        Note {
            name: "SOURCE",
            text: &note,
        },
    )?;
    let mut text = format!(
        "Istio {version}: {} in {}\ndigest: {digest}\n",
        names(&flavours),
        target.display()
    );
    if let Some(change) = catalog.alias_change(&version) {
        text.push_str(&describe(&change, &version));
    }
    print(text.as_bytes())
}

/// Describes the change of an alias, because meshes that use the alias are upgraded.
fn describe(change: &AliasChange, version: &Version) -> String {
    match &change.current {
        Some(current) => format!("{} resolves to {version} (was {current})\n", change.alias),
        None => format!("{} resolves to {version}\n", change.alias),
    }
}

/// Returns one digest of all archives.
fn digest(pulled: &[Pulled]) -> String {
    format!("sha256:{}", sha256(digests(pulled).as_bytes()))
}

/// Returns each chart and the digest of its archive, one per line.
fn digests(pulled: &[Pulled]) -> String {
    let line = |one: &Pulled| format!("{} {}\n", one.chart, one.digest);
    pulled.iter().map(line).collect()
}

fn digest_mismatch(version: &Version, found: &str, expected: &str) -> CliError {
    let message = format!("the charts of Istio {version} have the digest {found}, expected {expected}");
    CliError::new(Kind::Chart, message)
        .hint("check the source; if it is right, use the digest that a pull without --digest prints")
}

fn missing_directory() -> CliError {
    CliError::new(Kind::Usage, "no directory for the user's catalog")
        .hint("set HOME or XDG_DATA_HOME, or use --to")
}

/// Derives both flavours of the pulled charts.
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

/// Returns the source file that is stored with the charts.
fn provenance(address: &str, pulled: &[Pulled]) -> String {
    format!("{address}\n{}", digests(pulled))
}

fn names(flavours: &[(Flavour, mainstay_catalog::derive::Files)]) -> String {
    let counts = flavours
        .iter()
        .map(|(flavour, files)| format!("{} files for the {flavour}", files.len()));
    counts.collect::<Vec<_>>().join(", ")
}
