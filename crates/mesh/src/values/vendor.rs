//! Applies vendor defaults below the user's values.

use mainstay_api::{ObjectKind, Values};
use serde_json::Value;

use super::merge::merge;
use crate::{Settings, ValuesError};

/// Merges the user's values over the defaults of a kind.
pub(super) fn apply(
    settings: &Settings,
    version: &str,
    kind: ObjectKind,
    user: Values,
) -> Result<Values, ValuesError> {
    let resource = match kind {
        ObjectKind::IstioCni => "istiocni",
        _ => "istio",
    };
    let defaults = settings
        .vendor_defaults
        .get(version)
        .and_then(|kinds| kinds.get(resource));
    match defaults {
        None => Ok(user),
        Some(Value::Object(defaults)) => {
            let mut merged = defaults.clone();
            merge(&mut merged, &user);
            Ok(merged)
        }
        Some(_) => Err(ValuesError::VendorDefaults {
            resource,
            kind: kind.name(),
            version: version.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    /// Checks the values of an Istio and an `IstioCNI`, each given as the user's values and the expected
    /// result.
    fn check(name: &str, defaults: &str, version: &str, istio: (&str, &str), cni: (&str, &str)) {
        let settings = Settings {
            vendor_defaults: serde_json::from_str(defaults).unwrap(),
            ..Settings::default()
        };
        for (kind, (user, expected)) in [(ObjectKind::Istio, istio), (ObjectKind::IstioCni, cni)] {
            let merged = apply(&settings, version, kind, map(user));
            let merged = merged.map_or_else(|error| error.to_string(), |values| to_json(&values));
            assert_eq!(merged, expected, "{name}: {}", kind.name());
        }
        assert_eq!(
            settings.vendor_defaults,
            serde_json::from_str(defaults).unwrap(),
            "{name}: defaults changed"
        );
    }

    #[test]
    fn the_users_values_take_precedence_over_defaults() {
        const ISTIO: &str = r#"{"pilot":{"env":{"someEnvVar":"true"}}}"#;
        const CNI: &str = r#"{"cni":{"cniConfDir":"example/path"}}"#;
        let both = format!(r#"{{"v1.24.2":{{"istio":{ISTIO},"istiocni":{CNI}}}}}"#);
        let istio_only = format!(r#"{{"v1.24.2":{{"istio":{ISTIO}}}}}"#);
        let cni_only = format!(r#"{{"v1.24.2":{{"istiocni":{CNI}}}}}"#);
        let none = ("{}", "{}");
        check(
            "custom values for both",
            &both,
            "v1.24.2",
            ("{}", ISTIO),
            ("{}", CNI),
        );
        check(
            "custom values for Istio only",
            &istio_only,
            "v1.24.2",
            (
                r#"{"meshConfig":{"a":true},"pilot":{"env":{"someOtherEnvVar":"true"}}}"#,
                r#"{"meshConfig":{"a":true},"pilot":{"env":{"someEnvVar":"true","someOtherEnvVar":"true"}}}"#,
            ),
            none,
        );
        check(
            "custom values for IstioCNI only",
            &cni_only,
            "v1.24.2",
            none,
            ("{}", CNI),
        );
        check("empty vendor defaults", "{}", "v1.24.2", none, none);
        check("non-existent version", &istio_only, "v1.25.0", none, none);
        check("invalid version format", &istio_only, "v1.24", none, none);
        let own = r#"{"pilot":{"env":{"someEnvVar":"false"}}}"#;
        check(
            "user values override vendor defaults",
            &istio_only,
            "v1.24.2",
            (own, own),
            none,
        );
    }

    #[test]
    fn defaults_that_are_not_a_map_are_an_error() {
        check(
            "malformed vendor defaults",
            r#"{"v1.24.2":{"istio":"env"}}"#,
            "v1.24.2",
            (
                "{}",
                "failed to apply vendor defaults: failed to apply vendor defaults for istio: vendor defaults for resource \
                 'Istio' (version 'v1.24.2') are not a map[string]any",
            ),
            ("{}", "{}"),
        );
    }
}
