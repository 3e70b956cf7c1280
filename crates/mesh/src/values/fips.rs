//! Sets the environment variables that restrict control plane and `ZTunnel` to approved ciphers in FIPS mode.

use mainstay_api::Values;
use mainstay_catalog::Version;
use serde_json::Value;

use super::merge::map_at;

/// Last version of `ZTunnel` that needs the variable. Later versions use approved ciphers only.
const LAST_WITHOUT_140_3: &str = "1.30.0";
const ZTUNNEL_VARIABLE: &str = "TLS12_ENABLED";

/// Sets the compliance policy of a control plane.
pub(super) fn apply_istio(fips: bool, values: &mut Values) {
    if fips {
        set_variable(values, "pilot", "COMPLIANCE_POLICY", "fips-140-2");
    }
}

/// Sets the variable of `ZTunnel` up to 1.30.0, and removes it from later versions.
pub(super) fn apply_ztunnel(fips: bool, version: &Version, values: &mut Values) {
    let approved = LAST_WITHOUT_140_3
        .parse()
        .is_ok_and(|last: Version| *version > last);
    if !fips {
        return;
    }
    if approved {
        let variables = values
            .get_mut("ztunnel")
            .and_then(|map| map.get_mut("env"))
            .and_then(Value::as_object_mut);
        if let Some(variables) = variables {
            variables.remove(ZTUNNEL_VARIABLE);
        }
        return;
    }
    set_variable(values, "ztunnel", ZTUNNEL_VARIABLE, "true");
}

fn set_variable(values: &mut Values, component: &str, name: &str, value: &str) {
    if let Some(variables) = map_at(values, &[component, "env"]) {
        variables.entry(name).or_insert_with(|| value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    #[test]
    fn the_control_plane_gets_a_policy() {
        let check = |name: &str, fips, user: &str, expected: &str| {
            let mut values = map(user);
            apply_istio(fips, &mut values);
            assert_eq!(to_json(&values), expected, "{name}");
        };
        check("FIPS not enabled", false, "{}", "{}");
        check(
            "FIPS enabled",
            true,
            "{}",
            r#"{"pilot":{"env":{"COMPLIANCE_POLICY":"fips-140-2"}}}"#,
        );
        check(
            "FIPS enabled with existing env",
            true,
            r#"{"pilot":{"env":{"OTHER_VAR":"value"}}}"#,
            r#"{"pilot":{"env":{"COMPLIANCE_POLICY":"fips-140-2","OTHER_VAR":"value"}}}"#,
        );
        let own = r#"{"pilot":{"env":{"COMPLIANCE_POLICY":"custom-policy"}}}"#;
        check("FIPS enabled but COMPLIANCE_POLICY already set", true, own, own);
    }

    #[test]
    fn the_node_proxy_gets_a_variable_up_to_1_30_0() {
        let check = |name: &str, fips, version: &str, user: &str, expected: &str| {
            let mut values = map(user);
            apply_ztunnel(fips, &version.parse().unwrap(), &mut values);
            assert_eq!(to_json(&values), expected, "{name}");
        };
        let set = r#"{"ztunnel":{"env":{"TLS12_ENABLED":"true"}}}"#;
        check("FIPS not enabled", false, "1.29.0", "{}", "{}");
        check("FIPS enabled", true, "1.29.0", "{}", set);
        check(
            "FIPS enabled with existing env",
            true,
            "1.29.0",
            r#"{"ztunnel":{"env":{"OTHER_VAR":"value"}}}"#,
            r#"{"ztunnel":{"env":{"OTHER_VAR":"value","TLS12_ENABLED":"true"}}}"#,
        );
        let own = r#"{"ztunnel":{"env":{"TLS12_ENABLED":"false"}}}"#;
        check(
            "FIPS enabled but TLS12_ENABLED already set",
            true,
            "1.29.0",
            own,
            own,
        );
        check("version 1.30 still sets TLS12_ENABLED", true, "1.30.0", "{}", set);
        check(
            "version > 1.30 removes TLS12_ENABLED",
            true,
            "1.31.0",
            r#"{"ztunnel":{"env":{"OTHER_VAR":"keep","TLS12_ENABLED":"true"}}}"#,
            r#"{"ztunnel":{"env":{"OTHER_VAR":"keep"}}}"#,
        );
        check("1.30.1 is greater than 1.30.0", true, "1.30.1", "{}", "{}");
        check(
            "version > 1.30 does not set TLS12_ENABLED even with FIPS",
            true,
            "1.31.0",
            "{}",
            "{}",
        );
        check(
            "version 1.31-alpha does not set TLS12_ENABLED",
            true,
            "1.31.0-alpha.0",
            "{}",
            "{}",
        );
    }
}
