//! Tests the precedence of the steps in the whole pipeline.

use std::collections::BTreeMap;

use super::testing::{library, map, to_json};
use super::*;
use crate::{Images, Platform, TlsProfile};

const PROFILES: &[(&str, &str)] = &[
    (
        "default",
        r#"{"defaultRevision":"","global":{"configValidation":true,"istioNamespace":"istio-system"},"ztunnel":{"resourceName":"ztunnel"}}"#,
    ),
    ("ambient", r#"{"profile":"ambient"}"#),
    ("openshift", r#"{"global":{"platform":"openshift"}}"#),
    (
        "custom",
        r#"{"pilot":{"env":{"FROM":"profile"},"hub":"from-custom-profile"},"telemetry":{"enabled":false}}"#,
    ),
];

fn without_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

fn check_revision(settings: &Settings, profile: &str, user: &str, expected: &str) {
    let library = library("1.29.1", PROFILES);
    let pipeline = Pipeline::new(settings, &library);
    let user = map(user);
    let plane = ControlPlane {
        revision: "my-rev",
        namespace: "istio-system",
        profile,
        values: Some(&user),
    };
    let values = pipeline.revision_values(plane, &"1.29.1".parse().unwrap());
    let values = values.map_or_else(|error| error.to_string(), |values| to_json(&values));
    assert_eq!(values, without_whitespace(expected), "{profile:?} {user:?}");
}

#[test]
fn a_revision_without_values_has_its_name_and_the_default_profile() {
    check_revision(
        &Settings::default(),
        "",
        "{}",
        r#"{"global":{"configValidation":true,"istioNamespace":"istio-system"},"revision":"my-rev"}"#,
    );
}

#[test]
fn values_are_merged_by_precedence() {
    check_revision(
        &Settings::default(),
        "custom",
        r#"{"pilot":{"hub":"mine"},"revision":"theirs","global":{"istioNamespace":"elsewhere","configValidation":false}}"#,
        r#"{"global":{"configValidation":false,"istioNamespace":"istio-system"},
            "pilot":{"env":{"FROM":"profile"},"hub":"mine"},"revision":"my-rev","telemetry":{"enabled":false}}"#,
    );
}

#[test]
fn all_steps_contribute_to_the_values() {
    let images = Images {
        istiod: "istiod@sha256:a".into(),
        proxy: "proxy@sha256:b".into(),
        ..Images::default()
    };
    let vendor: BTreeMap<_, _> = [(
        "v1.29.1".to_owned(),
        [(
            "istio".to_owned(),
            serde_json::json!({"pilot": {"env": {"VENDOR": "yes"}, "image": "vendor"}}),
        )]
        .into(),
    )]
    .into();
    let settings = Settings {
        platform: Platform::OpenShift,
        images: [("v1.29.1".to_owned(), images)].into(),
        fips: true,
        tls: Some(TlsProfile {
            ciphers: vec!["C".into()],
            ..TlsProfile::default()
        }),
        vendor_defaults: vendor,
        ..Settings::default()
    };
    check_revision(
        &settings,
        "",
        r#"{"meshConfig":{"tlsDefaults":{"cipherSuites":["MINE"]}}}"#,
        r#"{"global":{"configValidation":true,"istioNamespace":"istio-system","platform":"openshift",
              "proxy":{"image":"proxy@sha256:b"},"proxy_init":{"image":"proxy@sha256:b"}},
            "meshConfig":{"meshMTLS":{"cipherSuites":["C"]},"tlsDefaults":{"cipherSuites":["MINE"]}},
            "pilot":{"env":{"COMPLIANCE_POLICY":"fips-140-2","VENDOR":"yes"},
              "extraContainerArgs":["--tls-cipher-suites=C"],"image":"istiod@sha256:a"},
            "revision":"my-rev"}"#,
    );
}

#[test]
fn a_missing_profile_is_an_error() {
    let library = library("1.29.1", PROFILES);
    let settings = Settings::default();
    let pipeline = Pipeline::new(&settings, &library);
    let plane = ControlPlane {
        revision: "r",
        namespace: "n",
        profile: "external",
        values: None,
    };
    assert_eq!(
        pipeline
            .revision_values(plane, &"1.29.1".parse().unwrap())
            .unwrap_err()
            .to_string(),
        "failed to apply profile: failed to get values from profile [\"default\" \"external\"]: failed to read profile file \
         v1.29.1/profiles/external.yaml: open v1.29.1/profiles/external.yaml: file does not exist"
    );
}

#[test]
fn cni_values_keep_keys_of_the_chart() {
    let library = library("1.29.1", PROFILES);
    let settings = Settings::default();
    let pipeline = Pipeline::new(&settings, &library);
    let user = map(r#"{"cni":{"cniConfDir":"/etc"}}"#);
    let values = pipeline
        .cni_values(Some(&user), "ambient", &"1.29.1".parse().unwrap())
        .unwrap();
    assert_eq!(
        to_json(&values),
        without_whitespace(
            r#"{"cni":{"cniConfDir":"/etc"},"defaultRevision":"","global":{"configValidation":true,"istioNamespace":"istio-system"},
                "profile":"ambient","ztunnel":{"resourceName":"ztunnel"}}"#
        )
    );
}

#[test]
fn ztunnel_values_inherit_from_the_control_plane() {
    let library = library("1.29.1", PROFILES);
    let settings = Settings {
        fips: true,
        ..Settings::default()
    };
    let pipeline = Pipeline::new(&settings, &library);
    let plane = RevisionSpec {
        values: Some(map(
            r#"{"global":{"istioNamespace":"mesh","network":"n1"},"meshConfig":{"trustDomain":"td"},"pilot":{"x":1},"revision":"my-rev"}"#,
        )),
        ..RevisionSpec::default()
    };
    let user = map(r#"{"global":{"network":"n2"},"ztunnel":{"logLevel":"debug"}}"#);
    let values = pipeline
        .ztunnel_values(Some(&user), Some(&plane), &"1.29.1".parse().unwrap())
        .unwrap();
    assert_eq!(
        to_json(&values),
        without_whitespace(
            r#"{"defaultRevision":"","env":{"TLS12_ENABLED":"true"},
                "global":{"configValidation":true,"istioNamespace":"mesh","network":"n2"},"logLevel":"debug",
                "meshConfig":{"trustDomain":"td"},"profile":"ambient","revision":"my-rev",
                "ztunnel":{"env":{"TLS12_ENABLED":"true"},"logLevel":"debug","resourceName":"ztunnel"}}"#
        )
    );
}

#[test]
fn empty_values_do_not_override_a_profile() {
    check_revision(
        &Settings::default(),
        "custom",
        r#"{"pilot":{"env":{},"extraContainerArgs":[]}}"#,
        r#"{"global":{"configValidation":true,"istioNamespace":"istio-system"},
            "pilot":{"env":{"FROM":"profile"},"hub":"from-custom-profile"},"revision":"my-rev","telemetry":{"enabled":false}}"#,
    );
}
