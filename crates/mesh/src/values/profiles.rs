//! Applies profiles and platform below the user's values.

use mainstay_api::Values;
use serde_json::Value;

use super::merge::merge;
use crate::{Invalid, Library, Platform, ProfileProblem, ValuesError};

/// Merges the user's values over the profiles, and sets the platform.
pub(super) fn apply(
    library: &Library,
    version: &str,
    platform: Platform,
    profile: &str,
    user: &Values,
) -> Result<Values, ValuesError> {
    let profiles = profile_names(platform.default_profile(), profile);
    let mut values = merge_profiles(library, version, &profiles).map_err(|problem| ValuesError::Profile {
        profiles: profiles.iter().map(ToString::to_string).collect(),
        problem,
    })?;
    merge(&mut values, user);
    set_platform(&mut values, platform)?;
    Ok(values)
}

/// Returns the profiles to apply: always `default`, then the user's profile if it is set, otherwise the
/// platform's.
fn profile_names<'a>(platform: &'a str, user: &'a str) -> Vec<&'a str> {
    let second = [user, platform]
        .into_iter()
        .find(|name| !matches!(*name, "" | "default"));
    ["default"].into_iter().chain(second).collect()
}

fn merge_profiles(library: &Library, version: &str, profiles: &[&str]) -> Result<Values, ProfileProblem> {
    let mut values = Values::new();
    for profile in profiles {
        merge(&mut values, load_profile(library, version, profile)?);
    }
    Ok(values)
}

fn load_profile<'a>(
    library: &'a Library,
    version: &str,
    profile: &str,
) -> Result<&'a Values, ProfileProblem> {
    if profile.is_empty() {
        return Err(ProfileProblem::Name(Invalid::EmptyProfile));
    }
    if profile.contains('/') {
        return Err(ProfileProblem::Name(Invalid::BadProfile(profile.to_owned())));
    }
    let missing = || ProfileProblem::Missing(format!("{version}/profiles/{profile}.yaml"));
    library.profile(version, profile).ok_or_else(missing)
}

/// Sets `global.platform` if the key is missing. A `null` value stays.
fn set_platform(values: &mut Values, platform: Platform) -> Result<(), ValuesError> {
    let Some(platform) = platform.value() else {
        return Ok(());
    };
    let global = values
        .entry("global")
        .or_insert_with(|| Value::Object(Values::new()));
    let Value::Object(global) = global else {
        return Err(ValuesError::NotAMap {
            found: format_value(global),
            kind: go_type(global),
        });
    };
    global.entry("platform").or_insert_with(|| platform.into());
    Ok(())
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        other => other.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{library, map, to_json};

    fn library_with(profiles: &[(&str, &str)]) -> Library {
        library("1.29.1", profiles)
    }

    #[test]
    fn default_profile_and_at_most_one_other_are_applied() {
        let check = |platform, user, expected: &[&str]| {
            assert_eq!(profile_names(platform, user), expected, "{platform:?} {user:?}");
        };
        for platform in ["", "default"] {
            check(platform, "", &["default"]);
            check(platform, "default", &["default"]);
            check(platform, "demo", &["default", "demo"]);
        }
        check("openshift", "", &["default", "openshift"]);
        check("openshift", "default", &["default", "openshift"]);
        check("openshift", "openshift", &["default", "openshift"]);
        check(
            "openshift",
            "openshift-ambient",
            &["default", "openshift-ambient"],
        );
    }

    fn check_layers(name: &str, profiles: &[&str], expected: &str) {
        let library = library_with(&[
            (
                "default",
                r#"{"value1":"1-from-default","value2":"2-from-default"}"#,
            ),
            ("overlay", r#"{"value2":"2-from-overlay"}"#),
            ("custom", r#"{"value1":"1-from-custom"}"#),
        ]);
        let values = merge_profiles(&library, "v1.29.1", profiles);
        let values = values.map_or_else(|problem| problem.to_string(), |values| to_json(&values));
        assert_eq!(values, expected, "{name}");
    }

    #[test]
    fn later_profiles_take_precedence() {
        check_layers("nil default profiles", &[], "{}");
        let default = r#"{"value1":"1-from-default","value2":"2-from-default"}"#;
        check_layers("default profile only", &["default"], default);
        let overlay = r#"{"value1":"1-from-default","value2":"2-from-overlay"}"#;
        check_layers("default and overlay", &["default", "overlay"], overlay);
        let custom = r#"{"value1":"1-from-custom","value2":"2-from-overlay"}"#;
        check_layers(
            "default and overlay and custom",
            &["default", "overlay", "custom"],
            custom,
        );
    }

    #[test]
    fn a_profile_that_cannot_be_loaded_is_an_error() {
        check_layers(
            "default profile empty",
            &[""],
            "validation error: profile name cannot be empty",
        );
        let missing = "failed to read profile file v1.29.1/profiles/invalid.yaml: open v1.29.1/profiles/invalid.yaml: file does \
                       not exist";
        check_layers("profile not found", &["invalid"], missing);
        let bad = "validation error: invalid profile name ../not-in-profiles-dir";
        check_layers("path-traversal-attack", &["../not-in-profiles-dir"], bad);
    }

    #[test]
    fn the_platform_is_set_unless_the_user_sets_it() {
        let library = library_with(&[("default", "{}"), ("openshift", "{}")]);
        let check = |platform, user: &str, expected: &str| {
            let values = apply(&library, "v1.29.1", platform, "", &map(user));
            let values = values.map_or_else(|error| error.to_string(), |values| to_json(&values));
            assert_eq!(values, expected, "{platform:?} {user}");
        };
        check(Platform::Kubernetes, "{}", "{}");
        check(
            Platform::OpenShift,
            "{}",
            r#"{"global":{"platform":"openshift"}}"#,
        );
        let own = r#"{"global":{"platform":"other"}}"#;
        check(Platform::OpenShift, own, own);
        check(
            Platform::OpenShift,
            r#"{"global":"text"}"#,
            "failed to apply profile: failed to set global.platform: failed to get value global.platform: .global.platform \
             accessor error: text is of the type string, expected map[string]interface{}",
        );
    }
}
