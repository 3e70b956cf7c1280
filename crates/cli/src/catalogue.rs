//! The catalogue as the command line sees it: takes `--charts` and the environment, gives a [`Catalog`]; and charts by reference.

use std::env;
use std::path::{Path, PathBuf};

use mainstay_catalog::derive::Files;
use mainstay_catalog::{Catalog, CatalogError, Flavour, Origin, Version};

use crate::error::{CliError, Kind};

/// What a chart reference of the catalogue begins with.
pub(crate) const PREFIX: &str = "catalog:";

/// The flag that adds a folder.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ChartsFlag {
    /// Take charts from this folder too (DIR/VERSION/charts/CHART, or as `cargo xtask charts` lays them out); it wins over others
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

impl ChartsFlag {
    /// Everything there is: embedded, pulled, and the folder.
    pub(crate) fn open(&self) -> Result<Catalog, CliError> {
        let mut catalog = Catalog::embedded()?;
        if let Some(folder) = user_folder() {
            catalog = catalog.with_directory(Origin::Pulled, folder)?;
        }
        match &self.charts {
            None => Ok(catalog),
            Some(folder) => with_given(catalog, folder),
        }
    }
}

fn with_given(catalog: Catalog, folder: &Path) -> Result<Catalog, CliError> {
    if !folder.is_dir() {
        return Err(CliError::new(
            Kind::Usage,
            format!("--charts {}: no such folder", folder.display()),
        ));
    }
    Ok(catalog.with_directory(Origin::Directory, folder)?)
}

/// `$XDG_DATA_HOME/mainstay/charts`, or what stands in for it.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("LOCALAPPDATA").filter(|_| cfg!(windows)))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("mainstay/charts"))
}

/// A chart of the catalogue: `catalog:CHART`, `catalog:CHART@VERSION`, `catalog:operator/CHART@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    pub(crate) flavour: Flavour,
    pub(crate) chart: &'a str,
    pub(crate) version: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Reads a reference; anything that does not begin with `catalog:` is somebody else's.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (chart, version) = rest
            .split_once('@')
            .map_or((rest, None), |(chart, version)| (chart, Some(version)));
        let (flavour, chart) = match chart.split_once('/') {
            Some(("operator", chart)) => (Flavour::Operator, chart),
            Some(("installer", chart)) => (Flavour::Installer, chart),
            _ => (Flavour::Installer, chart),
        };
        Some(Self {
            flavour,
            chart,
            version,
        })
    }
}

/// The files of the chart that `reference` names, by their path in it; `None` if it is no reference to the catalogue.
///
/// `version` is what `--version` says; a version in the reference wins.
pub(crate) fn resolve_chart(
    reference: &str,
    version: Option<&str>,
    charts: &ChartsFlag,
) -> Result<Option<Files>, CliError> {
    let Some(reference) = Reference::parse(reference) else {
        return Ok(None);
    };
    let catalog = charts.open()?;
    let version = version_or_default(&catalog, reference.version.or(version))?;
    Ok(Some(catalog.chart(
        &version,
        reference.flavour,
        reference.chart,
    )?))
}

/// The version that `name` stands for, or the default.
pub(crate) fn version_or_default(catalog: &Catalog, name: Option<&str>) -> Result<Version, CatalogError> {
    match name {
        Some(name) => catalog.resolve(name),
        None => catalog.default_version(),
    }
}

impl From<CatalogError> for CliError {
    fn from(error: CatalogError) -> Self {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        let told = Self::new(Kind::Chart, message);
        match error.hint() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(Flavour, &str, Option<&str>)>) {
        let found = Reference::parse(text).map(|found| (found.flavour, found.chart, found.version));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_are_read() {
        check("catalog:istiod", Some((Flavour::Installer, "istiod", None)));
        check(
            "catalog:istiod@v1.29-latest",
            Some((Flavour::Installer, "istiod", Some("v1.29-latest"))),
        );
        check(
            "catalog:operator/revisiontags@1.29.1",
            Some((Flavour::Operator, "revisiontags", Some("1.29.1"))),
        );
        check("catalog:installer/cni", Some((Flavour::Installer, "cni", None)));
        check("./istiod", None);
        check("istio/istiod", None);
    }
}
