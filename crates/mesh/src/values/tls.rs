//! Applies the TLS profile of the cluster: ciphers, minimum version and curves, unless the user sets them.

use mainstay_api::Values;
use mainstay_catalog::Version;
use serde_json::Value;

use super::merge::map_at;
use crate::{TlsProfile, TlsVersion};

/// Keys of the mesh's TLS settings.
const SETTINGS: [&str; 2] = ["tlsDefaults", "meshMTLS"];

/// The first version whose istiod has `--tls-min-version`.
const MIN_VERSION_FLAG: (u64, u64) = (1, 29);

/// Applies the profile. A profile without known ciphers has no effect.
pub(super) fn apply(profile: Option<&TlsProfile>, version: &Version, values: &mut Values) {
    let Some(profile) = profile.filter(|profile| !profile.ciphers.is_empty()) else {
        return;
    };
    for settings in SETTINGS {
        if let Some(map) = map_at(values, &["meshConfig", settings]) {
            apply_to_settings(map, profile);
        }
    }
    // Curves are set in tlsDefaults only, because gateways cannot be provisioned if meshMTLS contains
    // curves.
    if let Some(defaults) = map_at(values, &["meshConfig", "tlsDefaults"]) {
        let curves: Vec<Value> = profile
            .groups
            .iter()
            .map(|group| envoy_curve(group).into())
            .collect();
        if is_unset(defaults.get("ecdhCurves")) && !curves.is_empty() {
            defaults.insert("ecdhCurves".into(), curves.into());
        }
    }
    add_arg(values, "--tls-cipher-suites", &profile.ciphers.join(","));
    if let Some(least) = profile.min_version.filter(|_| has_min_version_flag(version)) {
        add_arg(values, "--tls-min-version", least.number());
    }
}

fn has_min_version_flag(version: &Version) -> bool {
    let later = version.minor() > MIN_VERSION_FLAG;
    later || (version.minor() == MIN_VERSION_FLAG && !is_first_pre_release(version))
}

/// Whether the version is a pre-release of the first minor version with the flag, which sorts below the
/// release.
fn is_first_pre_release(version: &Version) -> bool {
    version.to_string().starts_with("1.29.0-")
}

fn apply_to_settings(settings: &mut Values, profile: &TlsProfile) {
    if is_unset(settings.get("cipherSuites")) {
        settings.insert("cipherSuites".into(), profile.ciphers.clone().into());
    }
    if let Some(least) = profile
        .min_version
        .filter(|_| is_unset(settings.get("minProtocolVersion")))
    {
        settings.insert("minProtocolVersion".into(), least.protocol().into());
    }
    // Envoy rejects ciphers if the minimum version is TLS 1.3.
    if settings.get("minProtocolVersion").and_then(Value::as_str) == Some(TlsVersion::V1_3.protocol()) {
        settings.remove("cipherSuites");
    }
}

fn is_unset(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

/// Adds a flag of istiod, unless the user passes it as `--name value` or `--name=value`.
fn add_arg(values: &mut Values, name: &str, value: &str) {
    let Some(pilot) = map_at(values, &["pilot"]) else {
        return;
    };
    let args = pilot.entry("extraContainerArgs").or_insert(Value::Null);
    if args.is_null() {
        *args = Value::Array(Vec::new());
    }
    let Value::Array(args) = args else { return };
    let passed = |arg: &Value| {
        let rest = arg.as_str().and_then(|arg| arg.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if !args.iter().any(passed) {
        args.push(format!("{name}={value}").into());
    }
}

/// Returns Envoy's name of a curve.
fn envoy_curve(group: &str) -> &str {
    match group.trim().to_ascii_lowercase().as_str() {
        "secp256r1" | "prime256v1" | "p-256" | "p256" => "P-256",
        "secp384r1" | "p-384" | "p384" => "P-384",
        "x25519" => "X25519",
        _ => group,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    const RSA: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

    fn profile(ciphers: &[&str], min_version: Option<TlsVersion>, groups: &[&str]) -> TlsProfile {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        TlsProfile {
            ciphers: owned(ciphers),
            min_version,
            groups: owned(groups),
        }
    }

    fn check(name: &str, profile: &TlsProfile, version: &str, user: &str, expected: &str) {
        let mut values = map(user);
        apply(Some(profile), &version.parse().unwrap(), &mut values);
        let expected: String = expected.split_whitespace().collect();
        assert_eq!(to_json(&values), expected, "{name}");
    }

    #[test]
    fn without_a_profile_nothing_changes() {
        let mut values = map("{}");
        apply(None, &"1.29.0".parse().unwrap(), &mut values);
        assert_eq!(to_json(&values), "{}", "nil TLS config does not change values");
        check(
            "empty cipher suites does not change values",
            &profile(&[], None, &[]),
            "1.29.0",
            "{}",
            "{}",
        );
    }

    #[test]
    fn ciphers_are_set_unless_the_user_sets_them() {
        let rsa = profile(&[RSA], None, &[]);
        let two = profile(&[RSA, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"], None, &[]);
        check(
            "applies multiple cipher suites",
            &two,
            "1.28.0",
            "{}",
            r#"{"meshConfig":{
                "meshMTLS":{"cipherSuites":["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256","TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]},
                "tlsDefaults":{"cipherSuites":["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256","TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]}},
               "pilot":{"extraContainerArgs":["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]}}"#,
        );
        let own = r#"{"meshConfig":{"meshMTLS":{"cipherSuites":["TLS_AES_128_GCM_SHA256"]},
            "tlsDefaults":{"cipherSuites":["TLS_AES_128_GCM_SHA256"]}},
            "pilot":{"extraContainerArgs":["--tls-cipher-suites=TLS_AES_128_GCM_SHA256"]}}"#;
        check(
            "does not override existing cipherSuites",
            &rsa,
            "1.28.0",
            own,
            own,
        );
    }

    /// Checks the flags of istiod that result from these flags of the user.
    fn check_args(name: &str, profile: &TlsProfile, version: &str, user: &[&str], expected: &[&str]) {
        let mut values = map(&serde_json::json!({"pilot": {"extraContainerArgs": user}}).to_string());
        apply(Some(profile), &version.parse().unwrap(), &mut values);
        assert_eq!(
            values["pilot"]["extraContainerArgs"],
            serde_json::json!(expected),
            "{name}"
        );
    }

    #[test]
    fn flags_are_added_unless_the_user_passes_them() {
        let rsa = profile(&[RSA], None, &[]);
        let suites = format!("--tls-cipher-suites={RSA}");
        check_args(
            "preserves existing extraContainerArgs",
            &rsa,
            "1.28.0",
            &["--some-arg=value"],
            &["--some-arg=value", &suites],
        );
        check_args(
            "does not treat arg with shared prefix as already present",
            &rsa,
            "1.28.0",
            &["--tls-cipher-suites-foo=bar"],
            &["--tls-cipher-suites-foo=bar", &suites],
        );
        check_args(
            "either spelling counts",
            &rsa,
            "1.28.0",
            &["--tls-cipher-suites", "x"],
            &["--tls-cipher-suites", "x"],
        );
        let v12 = profile(&[RSA], Some(TlsVersion::V1_2), &[]);
        check_args(
            "adds tls-min-version for istio 1.29+",
            &v12,
            "1.29.0",
            &[],
            &[&suites, "--tls-min-version=1.2"],
        );
        check_args(
            "does not add tls-min-version for istio < 1.29",
            &v12,
            "1.28.3",
            &[],
            &[&suites],
        );
        check_args(
            "a pre-release comes before the release",
            &v12,
            "1.29.0-rc.1",
            &[],
            &[&suites],
        );
        check_args(
            "does not add tls-min-version when MinVersion is zero",
            &rsa,
            "1.29.0",
            &[],
            &[&suites],
        );
    }

    #[test]
    fn minimum_version_and_curves() {
        check(
            "minimum 1.2",
            &profile(&[RSA], Some(TlsVersion::V1_2), &[]),
            "1.28.3",
            "{}",
            r#"{"meshConfig":{
                "meshMTLS":{"cipherSuites":["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],"minProtocolVersion":"TLSV1_2"},
                "tlsDefaults":{"cipherSuites":["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],"minProtocolVersion":"TLSV1_2"}},
               "pilot":{"extraContainerArgs":["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]}}"#,
        );
        let curves = ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1"];
        check(
            "TLS 1.3 removes the ciphers; curves only in tlsDefaults",
            &profile(&[RSA], Some(TlsVersion::V1_3), &curves),
            "1.30.0",
            "{}",
            r#"{"meshConfig":{"meshMTLS":{"minProtocolVersion":"TLSV1_3"},
                "tlsDefaults":{"ecdhCurves":["X25519MLKEM768","X25519","P-256","P-384"],"minProtocolVersion":"TLSV1_3"}},
               "pilot":{"extraContainerArgs":["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256","--tls-min-version=1.3"]}}"#,
        );
    }
}
