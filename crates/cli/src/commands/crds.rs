//! `mainstay crds`: takes the catalogue, prints the definitions a cluster needs: our kinds and Istio's own.

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_yaml::{Budget, Numbers, parse_json, to_yaml_v3};

use crate::catalogue::{ChartsFlag, version_or_default};
use crate::commands::print;
use crate::error::{CliError, Kind};

/// Arguments of `crds`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay crds | kubectl apply --server-side -f -
  mainstay crds --only mainstay > crds.yaml
  mainstay crds --only istio --version 1.28.2")]
pub(crate) struct Args {
    /// Only those of one side
    #[arg(long, value_enum)]
    only: Option<Side>,

    /// Istio's definitions of this version; the newest that is pinned unless given
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    /// `Istio`, `IstioRevision`, `IstioRevisionTag`, `IstioCNI`, `ZTunnel`
    Mainstay,
    /// What Istio's base chart brings
    Istio,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let catalog = args.charts.open()?;
    let mut out = String::new();
    if args.only != Some(Side::Istio) {
        out.push_str(&ours(&catalog)?);
    }
    if args.only != Some(Side::Mainstay) {
        out.push_str(&istios(&catalog, args.version.as_deref())?);
    }
    print(out.as_bytes())
}

/// Our kinds, as documents.
fn ours(catalog: &Catalog) -> Result<String, CliError> {
    let all: Vec<&str> = catalog.names().iter().map(|name| name.name.as_str()).collect();
    let concrete: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| version(name).is_some())
        .collect();
    let ambient: Vec<&str> = all.iter().copied().filter(|name| is_ambient(name)).collect();
    let default = catalog.default_version()?.name();
    let names = VersionNames {
        all: &all,
        concrete: &concrete,
        ambient: &ambient,
        default: &default,
    };
    let failed =
        |error: mainstay_yaml::Error| CliError::new(Kind::Io, format!("cannot write a definition: {error}"));
    let documents = definitions(&names).into_iter().map(|definition| {
        let value = parse_json(definition.to_string(), Numbers::Exact, &Budget::default()).map_err(failed)?;
        Ok(format!("---\n{}", to_yaml_v3(&value).map_err(failed)?))
    });
    documents.collect()
}

fn version(name: &str) -> Option<Version> {
    name.strip_prefix('v')?.parse().ok()
}

/// The ztunnel of Istio 1.24 is the first that the API takes.
fn is_ambient(name: &str) -> bool {
    let minor = name
        .strip_prefix("v1.")
        .and_then(|rest| rest.split(['.', '-']).next());
    minor.is_none_or(|minor| minor.parse().is_ok_and(|minor: u32| minor >= 24))
}

/// Istio's kinds, as their chart has them.
fn istios(catalog: &Catalog, version: Option<&str>) -> Result<String, CliError> {
    const FILE: &str = "files/crd-all.gen.yaml";
    let version = version_or_default(catalog, version)?;
    let files = catalog.chart(&version, Flavour::Installer, "base")?;
    let bytes = files.get(FILE).ok_or_else(|| {
        CliError::new(
            Kind::Chart,
            format!("the base chart of Istio {version} has no {FILE}"),
        )
    })?;
    let text = String::from_utf8_lossy(bytes).into_owned();
    Ok(if text.starts_with("---") {
        text
    } else {
        format!("---\n{text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambient_begins_at_1_24() {
        assert!(is_ambient("v1.24.0") && is_ambient("v1.31-latest") && is_ambient("master"));
        assert!(!is_ambient("v1.23.6") && !is_ambient("v1.22-latest"));
    }
}
