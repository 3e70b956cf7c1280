//! Custom resource definitions: our own, and Istio's from the catalog. [`install`] applies them.

mod install;

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};
use mainstay_yaml::{Budget, parse, to_json};
use serde_json::Value;

pub use install::{InstallError, Outcome, install, name};

/// Path of the file with Istio's definitions in a base chart.
pub const ISTIO_FILE: &str = "files/crd-all.gen.yaml";

/// Errors of reading definitions.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// The catalog has no such chart.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The chart has no such file.
    #[error("the base chart of Istio {0} has no {ISTIO_FILE}")]
    NoFile(Version),
    /// The file cannot be parsed.
    #[error("the definitions of Istio {version} cannot be read: {source}")]
    Unreadable {
        /// Istio version of the base chart.
        version: Version,
        /// Error of the YAML parser.
        source: Box<mainstay_yaml::Error>,
    },
}

/// Returns the definitions of our kinds. Their schemas accept the versions in the catalog.
pub fn own_definitions(catalog: &Catalog) -> Result<Vec<Value>, CatalogError> {
    let all: Vec<&str> = catalog.names().iter().map(|name| name.name.as_str()).collect();
    let concrete: Vec<&str> = all.iter().copied().filter(|name| is_version(name)).collect();
    let ambient: Vec<&str> = all.iter().copied().filter(|name| is_ambient(name)).collect();
    let default = catalog.default_version()?.name();
    Ok(definitions(&VersionNames {
        all: &all,
        concrete: &concrete,
        ambient: &ambient,
        default: &default,
    }))
}

/// Returns Istio's definitions as the unchanged text of the base chart.
pub fn istio_text(catalog: &Catalog, version: &Version) -> Result<String, DefinitionsError> {
    let files = catalog.chart(version, Flavour::Installer, "base")?;
    let bytes = files
        .get(ISTIO_FILE)
        .ok_or_else(|| DefinitionsError::NoFile(version.clone()))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns Istio's definitions as objects.
pub fn istio_definitions(catalog: &Catalog, version: &Version) -> Result<Vec<Value>, DefinitionsError> {
    let text = istio_text(catalog, version)?;
    let unreadable = |source| DefinitionsError::Unreadable {
        version: version.clone(),
        source: Box::new(source),
    };
    let mut found = Vec::new();
    for document in text.split("\n---") {
        let parsed =
            parse(document.trim_start_matches("---").as_bytes(), &Budget::default()).map_err(unreadable)?;
        let json = to_json(&parsed).map_err(unreadable)?;
        let object: Value = serde_json::from_str(&json).unwrap_or_default();
        if object.get("kind").is_some() {
            found.push(object);
        }
    }
    Ok(found)
}

fn is_version(name: &str) -> bool {
    name.strip_prefix('v')
        .is_some_and(|rest| rest.parse::<Version>().is_ok())
}

/// Whether a version has a supported ztunnel, which Istio has since 1.24.
fn is_ambient(name: &str) -> bool {
    let minor = name
        .strip_prefix("v1.")
        .and_then(|rest| rest.split(['.', '-']).next());
    minor.is_none_or(|minor| minor.parse().is_ok_and(|minor: u32| minor >= 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ztunnel_is_supported_since_1_24() {
        assert!(is_ambient("v1.24.0") && is_ambient("v1.31-latest") && is_ambient("master"));
        assert!(!is_ambient("v1.23.6") && !is_ambient("v1.22-latest"));
    }
}
