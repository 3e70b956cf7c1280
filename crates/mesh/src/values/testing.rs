//! Helpers for table-driven tests.

use mainstay_api::Values;

use crate::Library;

/// Parses a map from JSON.
pub(crate) fn map(json: &str) -> Values {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Returns a map as JSON with sorted keys.
pub(crate) fn to_json(values: &Values) -> String {
    serde_json::to_string(&sorted(&serde_json::Value::Object(values.clone()))).unwrap()
}

/// Sorts keys explicitly, because another crate of the build may enable `preserve_order` of `serde_json`.
fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            serde_json::Value::Object(entries.into_iter().collect())
        }
        serde_json::Value::Array(items) => items.iter().map(sorted).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// Returns a library with one version and these profiles.
pub(crate) fn library(version: &str, profiles: &[(&str, &str)]) -> Library {
    let mut library = Library::default();
    let profiles = profiles
        .iter()
        .map(|(name, values)| ((*name).to_owned(), map(values)));
    library.add_version(version.parse().unwrap(), profiles.collect());
    library
}
