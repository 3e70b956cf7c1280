//! The catalog of the command line: embedded, pulled and `--charts` versions, and charts by reference.

use std::env;
use std::path::{Path, PathBuf};

use mainstay_catalog::derive::Files;
use mainstay_catalog::{Catalog, CatalogError, Flavour, Origin, Version};

use crate::error::{CliError, Kind, chain};

/// Prefix of chart references to the catalog.
pub(crate) const PREFIX: &str = "catalog:";

/// The `--charts` flag.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ChartsFlag {
    /// Directory with additional charts (DIR/VERSION/charts/CHART); takes precedence
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

impl ChartsFlag {
    /// Opens the catalog with embedded, pulled and `--charts` versions.
    pub(crate) fn open(&self) -> Result<Catalog, CliError> {
        let mut catalog = Catalog::embedded()?;
        if let Some(directory) = user_directory() {
            catalog = catalog.with_directory(Origin::Pulled, directory)?;
        }
        match &self.charts {
            None => Ok(catalog),
            Some(directory) => with_given(catalog, directory),
        }
    }
}

fn with_given(catalog: Catalog, directory: &Path) -> Result<Catalog, CliError> {
    if !directory.is_dir() {
        return Err(CliError::new(
            Kind::Usage,
            format!("--charts {}: no such directory", directory.display()),
        )
        .hint("name a directory that contains VERSION/installer/charts/CHART, such as 1.29.1/installer/charts/istiod"));
    }
    Ok(catalog.with_directory(Origin::Directory, directory)?)
}

/// Returns `$XDG_DATA_HOME/mainstay/charts` or its default.
pub(crate) fn user_directory() -> Option<PathBuf> {
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

/// A chart of the catalog: `catalog:CHART`, `catalog:CHART@VERSION`, `catalog:operator/CHART@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    pub(crate) flavour: Flavour,
    pub(crate) chart: &'a str,
    pub(crate) version: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Parses a reference; `None` if the text does not start with `catalog:`.
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

/// Returns the files of a chart by path; `None` if `reference` does not start with `catalog:`.
///
/// A version in the reference takes precedence over `version`.
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

/// Resolves a version name, or returns the default version.
pub(crate) fn version_or_default(catalog: &Catalog, name: Option<&str>) -> Result<Version, CatalogError> {
    match name {
        Some(name) => catalog.resolve(name),
        None => catalog.default_version(),
    }
}

/// Returns the name of a version as in the spec of an Istio: `1.29.1` and `v1.29.1` are equivalent.
pub(crate) fn version_name(catalog: &Catalog, text: &str) -> Result<String, CatalogError> {
    catalog.resolve(text)?;
    let is_bare = text.starts_with(|first: char| first.is_ascii_digit());
    Ok(if is_bare {
        format!("v{text}")
    } else {
        text.to_owned()
    })
}

impl From<CatalogError> for CliError {
    fn from(error: CatalogError) -> Self {
        let result = Self::new(Kind::Chart, chain(&error));
        match error.hint() {
            Some(hint) => result.hint(hint),
            None => result,
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
    fn references_are_parsed() {
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
