//! Tests for TLS profiles.

use serde_json::json;

use super::*;

/// Compares minimum version, number of ciphers, first cipher and groups of the profile for the mesh, or the
/// error.
fn check(name: &str, spec: &serde_json::Value, expected: &str) {
    let found = ClusterTls::from_object(&json!({"spec": spec})).and_then(|tls| tls.mesh_profile());
    let shown = match found {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(profile)) => {
            let first = profile.ciphers.first().map_or("", String::as_str);
            let min_version = profile.min_version.map_or("any", TlsVersion::number);
            format!(
                "{min_version} {} {first} {}",
                profile.ciphers.len(),
                profile.groups.join(",")
            )
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{name}");
}

const GROUPS: &str = "X25519MLKEM768,X25519,secp256r1,secp384r1";

#[test]
fn upstream_cases() {
    check("no TLS profile set, no adherence policy", &json!({}), "nothing");
    check(
        "LegacyAdheringComponentsOnly does not honor profile",
        &json!({"tlsAdherence": "LegacyAdheringComponentsOnly", "tlsSecurityProfile": {"type": "Modern"}}),
        "nothing",
    );
    check(
        "StrictAllComponents honors profile and populates cipher suites",
        &json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": {"type": "Modern", "modern": {}}}),
        &format!("1.3 3 TLS_AES_128_GCM_SHA256 {GROUPS}"),
    );
    check(
        "StrictAllComponents with nil profile uses default (intermediate)",
        &json!({"tlsAdherence": "StrictAllComponents"}),
        &format!("1.2 9 TLS_AES_128_GCM_SHA256 {GROUPS}"),
    );
}

#[test]
fn further_profiles() {
    let strict = |profile: serde_json::Value| json!({"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": profile});
    check(
        "old allows versions that Envoy does not support",
        &strict(json!({"type": "Old"})),
        &format!("any 21 TLS_AES_128_GCM_SHA256 {GROUPS}"),
    );
    check(
        "an unknown type",
        &strict(json!({"type": "Future"})),
        &format!("1.2 9 TLS_AES_128_GCM_SHA256 {GROUPS}"),
    );
    check(
        "an unknown adherence is strict",
        &json!({"tlsAdherence": "Future"}),
        &format!("1.2 9 TLS_AES_128_GCM_SHA256 {GROUPS}"),
    );
    let custom = json!({"type": "Custom", "custom": {"ciphers": ["NOPE", "ECDHE-RSA-AES128-GCM-SHA256"], "minTLSVersion": "VersionTLS12"}});
    check(
        "custom",
        &strict(custom),
        "1.2 1 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 ",
    );
    check(
        "custom without content",
        &strict(json!({"type": "Custom"})),
        "fetching TLS profile from APIServer: custom TLS profile specified but Custom field is nil",
    );
    let version = json!({"type": "Custom", "custom": {"minTLSVersion": "VersionTLS99"}});
    check(
        "an unknown version",
        &strict(version),
        "unknown tls version \"VersionTLS99\"",
    );
    check(
        "not an object",
        &json!({"tlsSecurityProfile": 5}),
        "fetching TLS profile from APIServer: cannot decode the object",
    );
}

#[test]
fn unknown_ciphers_are_reported() {
    let old = ClusterTls::from_object(&json!({"spec": {"tlsSecurityProfile": {"type": "Old"}}})).unwrap();
    assert_eq!(
        old.unknown_ciphers(),
        [
            "ECDHE-ECDSA-AES256-SHA384",
            "ECDHE-RSA-AES256-SHA384",
            "AES256-SHA256"
        ]
    );
}

#[test]
fn a_relevant_change_ends_the_process() {
    let tls = |adherence: &str, kind: &str| {
        ClusterTls::from_object(
            &json!({"spec": {"tlsAdherence": adherence, "tlsSecurityProfile": {"type": kind}}}),
        )
        .unwrap()
    };
    let strict = tls("StrictAllComponents", "Modern");
    assert_eq!(strict.outdated_by(&strict), None);
    let profile = "TLS profile has changed, initiating shutdown to reload configuration";
    assert_eq!(
        strict.outdated_by(&tls("StrictAllComponents", "Old")),
        Some(profile)
    );
    let policy = "TLS adherence policy has changed, initiating shutdown to reload configuration";
    assert_eq!(strict.outdated_by(&tls("", "Modern")), Some(policy));
    assert_eq!(
        tls("", "Modern").outdated_by(&tls("", "Old")),
        None,
        "the profile is not honored"
    );
}

#[test]
fn the_metrics_server_uses_the_profile() {
    let suites = |profile: Option<&TlsProfile>| {
        let builder = server_config(profile).unwrap();
        let config = builder.with_cert_resolver(std::sync::Arc::new(
            rustls::server::ResolvesServerCertUsingSni::new(),
        ));
        config
            .crypto_provider()
            .cipher_suites
            .iter()
            .map(|suite| format!("{:?}", suite.suite()))
            .collect::<Vec<_>>()
    };
    let all = suites(None);
    assert!(all.len() > 4, "{all:?}");
    let narrow = TlsProfile {
        ciphers: vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".into()],
        min_version: Some(TlsVersion::V1_2),
        groups: Vec::new(),
    };
    let found = suites(Some(&narrow));
    assert_eq!(
        found
            .iter()
            .filter(|name| !name.starts_with("TLS13_"))
            .collect::<Vec<_>>(),
        ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
    );
    let unsupported = TlsProfile {
        ciphers: vec!["TLS_RSA_WITH_RC4_128_SHA".into()],
        ..narrow
    };
    assert_eq!(suites(Some(&unsupported)), all);
}
