//! Versions and profiles as plain data: takes the catalogue once, gives answers without reading anything.

use std::collections::BTreeMap;

use mainstay_api::Values;
use mainstay_catalog::{Catalog, CatalogError, Flavour, Version};
use mainstay_yaml::{Numbers, Options, Value};

/// What a name of a version stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// This version, whose charts are here.
    Installable(Version),
    /// A version whose charts are not here.
    NotHere(Version),
    /// A version that is refused.
    EndOfLife,
}

/// Every name of a version, and the profiles of every version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    names: BTreeMap<String, Resolution>,
    profiles: BTreeMap<String, BTreeMap<String, Values>>,
}

/// Why a catalogue cannot become a library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The catalogue itself.
    #[error("cannot read the catalogue")]
    Catalog(#[from] CatalogError),
    /// A profile that is no YAML.
    #[error("profile {profile:?} of Istio {version} cannot be read")]
    Profile {
        /// Of which version.
        version: Version,
        /// Which.
        profile: String,
        /// Why.
        source: Box<mainstay_yaml::Error>,
    },
}

impl Library {
    /// Reads all names and profiles of a catalogue. A version that cannot be read is left out and told; it stops no other.
    #[must_use]
    pub fn from_catalog(catalog: &Catalog) -> (Self, Vec<LibraryError>) {
        let (mut library, mut problems) = (Self::default(), Vec::new());
        for name in catalog.names() {
            library.add_name(&name.name, catalog.resolve(&name.name));
        }
        for installable in catalog.installable() {
            for alias in &installable.aliases {
                library.add_name(alias, catalog.resolve(alias));
            }
            problems.extend(library.add_version(catalog, installable.version).err());
        }
        (library, problems)
    }

    fn add_name(&mut self, name: &str, resolved: Result<Version, CatalogError>) {
        let resolution = match resolved {
            Ok(version) => Resolution::Installable(version),
            Err(CatalogError::NotAvailable(version)) => Resolution::NotHere(version),
            Err(CatalogError::EndOfLife { .. }) => Resolution::EndOfLife,
            Err(_) => return,
        };
        self.names.insert(name.to_owned(), resolution);
    }

    fn add_version(&mut self, catalog: &Catalog, version: Version) -> Result<(), LibraryError> {
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
        self.put(version, profiles);
        Ok(())
    }

    /// Adds a version with its profiles.
    pub fn put(&mut self, version: Version, profiles: BTreeMap<String, Values>) {
        self.profiles.insert(version.name(), profiles);
        self.names
            .insert(version.name(), Resolution::Installable(version));
    }

    /// Says what a name stands for.
    pub fn name(&mut self, name: &str, resolution: Resolution) {
        self.names.insert(name.to_owned(), resolution);
    }

    /// What `name` stands for; nothing for a name nobody knows.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&Resolution> {
        self.names.get(name)
    }

    /// The values of a profile, by the name of a version (`v1.29.1`).
    #[must_use]
    pub fn profile(&self, version: &str, profile: &str) -> Option<&Values> {
        self.profiles.get(version)?.get(profile)
    }
}

/// `spec.values` of a profile; none where the profile has none.
fn profile_values(text: &[u8]) -> Result<Values, mainstay_yaml::Error> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    let profile = mainstay_yaml::parse_with(text, &options)?;
    Ok(match profile.at(&["spec", "values"]).map(json) {
        Some(serde_json::Value::Object(values)) => values,
        _ => Values::new(),
    })
}

/// The parser bounds the depth, so recursion is safe.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect::<Vec<_>>().into(),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), json(value)));
            serde_json::Value::Object(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, expected: &str) {
        let values = profile_values(yaml.as_bytes()).unwrap();
        assert_eq!(serde_json::Value::Object(values).to_string(), expected);
    }

    #[test]
    fn a_profile_gives_its_values() {
        check(
            "spec:\n  values:\n    profile: ambient\n    a: {b: 1, c: [x, true]}\n",
            r#"{"a":{"b":1,"c":["x",true]},"profile":"ambient"}"#,
        );
        check("kind: Istio\nspec: {}\n", "{}");
        check("", "{}");
    }

    #[test]
    fn a_profile_that_is_no_yaml_is_an_error() {
        assert!(profile_values(b"spec: [").is_err());
    }

    #[test]
    fn the_catalogue_of_this_build_becomes_a_library() {
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
