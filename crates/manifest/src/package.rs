//! Sources of profiles and charts: traits that callers implement, and an implementation for the catalog.

use mainstay_catalog::derive::Files;
use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};

/// An Istio minor version. It selects the translation rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor {
    /// Major number.
    pub major: u64,
    /// Minor number.
    pub minor: u64,
}

/// Error of loading a profile or chart.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The profile, chart or add-on does not exist.
    #[error("{kind} {name:?} not found")]
    NotFound {
        /// Kind of the requested item: `profile`, `chart` or `add-on`.
        kind: &'static str,
        /// Requested name.
        name: String,
    },
    /// The source cannot be read.
    #[error("{kind} {name:?} cannot be read")]
    Read {
        /// Kind of the requested item: `profile`, `chart` or `add-on`.
        kind: &'static str,
        /// Requested name.
        name: String,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A source of profiles: `IstioOperator` documents by name.
pub trait Profiles {
    /// Returns the names of all profiles, sorted.
    fn profile_names(&self) -> Result<Vec<String>, PackageError>;
    /// Returns the text of a profile.
    fn profile(&self, name: &str) -> Result<Vec<u8>, PackageError>;
}

/// A source of charts.
pub trait Charts {
    /// Returns the Istio minor version of the charts.
    fn minor(&self) -> Minor;
    /// Returns the files of a chart by path. `name` is `base`, `istiod`, `istio-ingress`, `istio-egress`,
    /// `cni` or `ztunnel`.
    fn chart(&self, name: &str) -> Result<Files, PackageError>;
    /// Returns the manifest of an add-on, such as `prometheus`.
    fn addon(&self, name: &str) -> Result<Vec<u8>, PackageError> {
        Err(PackageError::NotFound {
            kind: "add-on",
            name: name.to_owned(),
        })
    }
}

/// Profiles and release charts of one version in a catalog.
#[derive(Debug)]
pub struct CatalogPackage<'a> {
    catalog: &'a Catalog,
    version: Version,
}

impl<'a> CatalogPackage<'a> {
    /// Creates the package of a version.
    #[must_use]
    pub fn new(catalog: &'a Catalog, version: Version) -> Self {
        Self { catalog, version }
    }

    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }
}

impl Profiles for CatalogPackage<'_> {
    fn profile_names(&self) -> Result<Vec<String>, PackageError> {
        let names = self.catalog.profiles(&self.version, Flavour::Installer);
        names.map_err(|error| convert(error, "profile", ""))
    }

    fn profile(&self, name: &str) -> Result<Vec<u8>, PackageError> {
        let text = self.catalog.profile(&self.version, Flavour::Installer, name);
        text.map_err(|error| convert(error, "profile", name))
    }
}

impl Charts for CatalogPackage<'_> {
    fn minor(&self) -> Minor {
        let (major, minor) = self.version.minor();
        Minor { major, minor }
    }

    fn chart(&self, name: &str) -> Result<Files, PackageError> {
        let files = self.catalog.chart(&self.version, Flavour::Installer, name);
        files.map_err(|error| convert(error, "chart", name))
    }

    fn addon(&self, name: &str) -> Result<Vec<u8>, PackageError> {
        let text = self.catalog.addon(&self.version, name);
        text.map_err(|error| convert(error, "add-on", name))
    }
}

fn convert(error: CatalogError, kind: &'static str, name: &str) -> PackageError {
    let name = name.to_owned();
    match error {
        CatalogError::UnknownProfile { .. }
        | CatalogError::UnknownChart { .. }
        | CatalogError::UnknownAddon { .. } => PackageError::NotFound { kind, name },
        other => PackageError::Read {
            kind,
            name,
            source: Box::new(other),
        },
    }
}
