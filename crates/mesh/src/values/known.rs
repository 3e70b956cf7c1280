//! Removes keys that the schema of `IstioRevision` does not contain. Profiles also contain keys for other
//! charts, which the API server prunes, so that every comparison would find a difference.

use mainstay_api::Values;

/// Top-level keys of `values` in the definition of `IstioRevision`.
const KEYS: [&str; 13] = [
    "base",
    "compatibilityVersion",
    "defaultRevision",
    "experimental",
    "gatewayClasses",
    "global",
    "istiodRemote",
    "meshConfig",
    "pilot",
    "profile",
    "revision",
    "sidecarInjectorWebhook",
    "telemetry",
];

/// Removes unknown keys.
pub(super) fn remove_unknown(values: &mut Values) {
    values.retain(|key, _| KEYS.contains(&key.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    #[test]
    fn keys_for_other_charts_are_removed() {
        let mut values =
            map(r#"{"global":{"a":1},"ztunnel":{"resourceName":"ztunnel"},"revisionTags":["x"]}"#);
        remove_unknown(&mut values);
        assert_eq!(to_json(&values), r#"{"global":{"a":1}}"#);
    }

    #[test]
    fn keys_equal_those_of_the_definition() {
        let names = mainstay_api::crd::VersionNames {
            all: &["v1.29.1"],
            concrete: &["v1.29.1"],
            ambient: &["v1.29.1"],
            default: "v1.29.1",
        };
        let definitions = mainstay_api::crd::definitions(&names);
        let revision = definitions
            .iter()
            .find(|one| one["spec"]["names"]["kind"] == "IstioRevision")
            .unwrap();
        let schema = &revision["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let keys = schema["properties"]["spec"]["properties"]["values"]["properties"]
            .as_object()
            .unwrap();
        let mut keys: Vec<_> = keys.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, KEYS);
    }
}
