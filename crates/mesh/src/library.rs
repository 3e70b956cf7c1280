//! Versions and profiles of the catalog as plain data, read once.

use std::collections::BTreeMap;

use mainstay_api::Values;
use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};
use mainstay_yaml::{Numbers, Options};

/// Result of resolving a version name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// A version whose charts are available.
    Installable(Version),
    /// A version whose charts are not available.
    ChartsUnavailable(Version),
    /// A version at end of life.
    EndOfLife,
}

/// All version names, and the profiles of each version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    names: BTreeMap<String, Resolution>,
    profiles: BTreeMap<String, BTreeMap<String, Values>>,
}

/// Errors while reading the catalog.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The catalog cannot be read.
    #[error("cannot read the catalog")]
    Catalog(#[from] CatalogError),
    /// A profile is not valid YAML.
    #[error("profile {profile:?} of Istio {version} cannot be read")]
    Profile {
        /// The version.
        version: Version,
        /// The profile.
        profile: String,
        /// The cause.
        source: Box<mainstay_yaml::Error>,
    },
}

impl Library {
    /// Reads all names and profiles of a catalog. A version that cannot be read is left out and returned as
    /// an error.
    #[must_use]
    pub fn from_catalog(catalog: &Catalog) -> (Self, Vec<LibraryError>) {
        let (mut library, mut problems) = (Self::default(), Vec::new());
        for name in catalog.names() {
            library.load_name(&name.name, catalog.resolve(&name.name));
        }
        for installable in catalog.installable() {
            for alias in &installable.aliases {
                library.load_name(alias, catalog.resolve(alias));
            }
            problems.extend(library.load_version(catalog, installable.version).err());
        }
        (library, problems)
    }

    fn load_name(&mut self, name: &str, resolved: Result<Version, CatalogError>) {
        let resolution = match resolved {
            Ok(version) => Resolution::Installable(version),
            Err(CatalogError::NotAvailable(version)) => Resolution::ChartsUnavailable(version),
            Err(CatalogError::EndOfLife { .. }) => Resolution::EndOfLife,
            Err(_) => return,
        };
        self.names.insert(name.to_owned(), resolution);
    }

    fn load_version(&mut self, catalog: &Catalog, version: Version) -> Result<(), LibraryError> {
        let mut profiles = BTreeMap::new();
        for profile in catalog.profiles(&version, Flavour::Operator)? {
            let text = catalog.profile(&version, Flavour::Operator, &profile)?;
            let values = profile_values(&text).map_err(|source| LibraryError::Profile {
                version: version.clone(),
                profile: profile.clone(),
                source: Box::new(source),
            })?;
            profiles.insert(profile, values);
        }
        self.add_version(version, profiles);
        Ok(())
    }

    /// Adds a version with its profiles. Its name resolves to it.
    pub fn add_version(&mut self, version: Version, profiles: BTreeMap<String, Values>) {
        self.profiles.insert(version.name(), profiles);
        self.names
            .insert(version.name(), Resolution::Installable(version));
    }

    /// Adds a version name or an alias.
    pub fn add_name(&mut self, name: &str, resolution: Resolution) {
        self.names.insert(name.to_owned(), resolution);
    }

    /// Returns the resolution of `name`, or `None` if the name is unknown.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&Resolution> {
        self.names.get(name)
    }

    /// Returns the values of a profile, by version name (`v1.29.1`).
    #[must_use]
    pub fn profile(&self, version: &str, profile: &str) -> Option<&Values> {
        self.profiles.get(version)?.get(profile)
    }
}

/// Returns `spec.values` of a profile, empty if unset.
fn profile_values(text: &[u8]) -> Result<Values, mainstay_yaml::Error> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    let profile = mainstay_yaml::parse_with(text, &options)?;
    Ok(match profile.at(&["spec", "values"]).cloned().map(Into::into) {
        Some(serde_json::Value::Object(values)) => values,
        _ => Values::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, expected: &str) {
        let values = profile_values(yaml.as_bytes()).unwrap();
        assert_eq!(serde_json::Value::Object(values).to_string(), expected);
    }

    #[test]
    fn values_of_a_profile_are_read() {
        check(
            "spec:\n  values:\n    profile: ambient\n    a: {b: 1, c: [x, true]}\n",
            r#"{"a":{"b":1,"c":["x",true]},"profile":"ambient"}"#,
        );
        check("kind: Istio\nspec: {}\n", "{}");
        check("", "{}");
    }

    #[test]
    fn a_profile_that_is_not_yaml_is_an_error() {
        assert!(profile_values(b"spec: [").is_err());
    }

    #[test]
    fn the_catalog_of_this_build_is_read() {
        let catalog = Catalog::embedded().unwrap();
        let (library, problems) = Library::from_catalog(&catalog);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(library.resolve("no such version"), None);
        for installable in catalog.installable() {
            let name = installable.version.name();
            assert_eq!(
                library.resolve(&name),
                Some(&Resolution::Installable(installable.version))
            );
            assert!(
                library
                    .profile(&name, "default")
                    .is_some_and(|values| !values.is_empty()),
                "{name}"
            );
            assert_eq!(library.profile(&name, "../default"), None);
        }
    }
}
