//! Tests the conversion of `IstioOperator` configurations to custom resources: every profile and selected
//! settings render the same objects before and after, all files render the same objects up to the reported
//! differences, and settings that cannot be converted are reported.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a panic is how a test fails"
)]

#[path = "conversion/helm.rs"]
mod helm;
#[path = "conversion/round_trip.rs"]
mod round_trip;

use std::sync::Arc;

use mainstay_adopt::{FieldDifference, Migration, to_resources};
use mainstay_catalog::{Catalog, Version};
use mainstay_manifest::{CatalogPackage, InputFile, Request, generate};
use mainstay_testkit::CaseCounts;

/// Converts settings, and checks that the migration reports every difference.
fn convert(sets: &[&str]) -> Migration {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let version: Version = "1.29.1".parse().unwrap();
    let package = CatalogPackage::new(&catalog, version.clone());
    let mut request = Request::new(&package);
    request.sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let rendered = generate(&request).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let migration = to_resources(&rendered, &catalog, &version, &[]);
    let migration = migration.unwrap_or_else(|error| panic!("{sets:?}: {error:?}"));
    let checked = round_trip::check_report(&rendered, &migration, &catalog);
    checked.unwrap_or_else(|wrong| panic!("{sets:?}: {wrong}"));
    migration
}

/// Settings that disable the ingress gateway, which another chart renders after the conversion.
const INGRESS_OFF: [&str; 2] = [
    "components.ingressGateways[0].name=istio-ingressgateway",
    "components.ingressGateways[0].enabled=false",
];

/// Account that the operator installs exactly for the revision or tag `default`.
const READER: &str = "ServiceAccount istio-system/istio-reader-service-account";
/// Policies that the operator installs exactly for the revision or tag `default`.
const POLICIES: [&str; 2] = [
    "ValidatingAdmissionPolicy /stable-channel-default-policy.istio.io",
    "ValidatingAdmissionPolicyBinding /stable-channel-default-policy-binding.istio.io",
];

/// Whether these objects as a whole are the only difference with an effect.
fn differs_in(migration: &Migration, objects: &[&str]) -> bool {
    let effective = migration.differences.iter().filter(|one| one.harmless.is_none());
    let found: Vec<(&str, &str)> = effective
        .map(|one| (one.object.as_str(), one.field.as_str()))
        .collect();
    let expected: Vec<(&str, &str)> = objects.iter().map(|object| (*object, "")).collect();
    found == expected && migration.is_equal() == objects.is_empty()
}

/// Configurations that render the same objects before and after, except for objects of the default revision.
const EQUAL: &[&[&str]] = &[
    &["profile=default", INGRESS_OFF[0], INGRESS_OFF[1]],
    &["profile=minimal"],
    &[
        "profile=demo",
        INGRESS_OFF[0],
        INGRESS_OFF[1],
        "components.egressGateways[0].name=istio-egressgateway",
        "components.egressGateways[0].enabled=false",
    ],
    &["profile=ambient"],
    &["profile=preview", INGRESS_OFF[0], INGRESS_OFF[1]],
    &["profile=stable", INGRESS_OFF[0], INGRESS_OFF[1]],
    &["profile=minimal", "revision=canary"],
    &["profile=minimal", "meshConfig.accessLogFile=/dev/stdout"],
    &["profile=minimal", "values.pilot.autoscaleMin=3"],
    &["profile=minimal", "values.global.proxy.privileged=true"],
    &["profile=minimal", "values.pilot.env.PILOT_ENABLE_STATUS=on"],
    &["profile=minimal", "hub=example.com/istio", "tag=1.29.1-debug"],
    &[
        "profile=minimal",
        "components.pilot.k8s.resources.requests.cpu=321m",
    ],
    &["profile=minimal", "components.pilot.k8s.nodeSelector.disk=ssd"],
    &["profile=ambient", "values.ztunnel.logLevel=debug"],
    &["profile=minimal", "components.cni.enabled=true"],
];

#[test]
fn configurations_render_the_same_objects_as_resources() {
    let mut counts = CaseCounts::default();
    for sets in EQUAL {
        let migration = convert(sets);
        let expected: &[&str] = match () {
            () if sets.contains(&"revision=canary") => &[READER],
            () if sets.contains(&"profile=stable") => &POLICIES,
            () => &[],
        };
        counts.count(differs_in(&migration, expected), || {
            format!(
                "{sets:?}: {:#?}\n{:#?}",
                migration.differences, migration.resources
            )
        });
        assert!(migration.equal_objects > 10, "{sets:?}");
    }
    println!("migrated manifests: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

#[test]
fn resources_contain_only_what_differs_from_the_profile() {
    let migration = convert(&["profile=ambient", "values.pilot.autoscaleMin=3"]);
    let kinds: Vec<&str> = migration
        .resources
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Istio", "IstioCNI", "ZTunnel"]);
    let spec = &migration.resources[0]["spec"];
    assert_eq!(spec["profile"], "ambient");
    assert_eq!(spec["values"]["pilot"]["autoscaleMin"], 3, "{spec}");
    let keys: Vec<&String> = spec["values"].as_object().unwrap().keys().collect();
    assert!(keys.len() <= 3, "{spec}");
}

#[test]
fn settings_that_cannot_be_converted_are_reported() {
    let migration = convert(&[
        "profile=default",
        "components.pilot.k8s.strategy.rollingUpdate.maxSurge=3",
    ]);
    let paths: Vec<&str> = migration
        .not_carried
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert!(
        paths.contains(&"components.ingressGateways[name:istio-ingressgateway]"),
        "{paths:?}"
    );
    assert_eq!(migration.gateways.len(), 1);
    assert_eq!(migration.gateways[0].release, "istio-ingressgateway");
}

#[test]
fn a_setting_that_the_chart_combines_with_others_is_a_difference() {
    // The value that sets the autoscaler also renders a disruption budget.
    let migration = convert(&["profile=minimal", "components.pilot.k8s.hpaSpec.minReplicas=4"]);
    let effective = migration.differences.iter().filter(|one| one.harmless.is_none());
    let effective: Vec<&FieldDifference> = effective.collect();
    let [difference] = effective.as_slice() else {
        panic!("{effective:?}");
    };
    assert_eq!(difference.object, "HorizontalPodAutoscaler istio-system/istiod");
    assert_eq!(difference.set.as_deref(), Some("pilot.autoscaleMin"));
    assert!(!migration.is_equal());
}

#[test]
fn objects_of_gateways_are_compared() {
    let migration = convert(&[
        "revision=canary",
        "components.base.enabled=false",
        "components.ingressGateways[0].name=edge",
        "components.ingressGateways[0].namespace=edge",
        "components.ingressGateways[0].enabled=true",
        "components.ingressGateways[0].label.tier=one",
        "components.ingressGateways[0].k8s.hpaSpec.minReplicas=2",
    ]);
    let edge = migration
        .gateways
        .iter()
        .find(|one| one.release == "edge")
        .unwrap();
    assert_eq!(edge.values["revision"], "canary");
    let found = |object: &str, field: &str| {
        let mut all = migration.differences.iter();
        all.find(|one| one.object == object && one.field.starts_with(field))
    };
    let selector = found("Deployment edge/edge", ".spec.selector").unwrap();
    let selection = "the chart gateway selects pods by the labels app and istio";
    assert_eq!((selector.reason, selector.harmless), (Some(selection), None));
    let labels = found("Service edge/edge", ".metadata.labels").unwrap();
    assert_eq!(labels.reason, Some("every chart has its own labels"));
    let account = found("ServiceAccount edge/edge-service-account", "").unwrap();
    assert!(
        account.reason.is_some() && account.desired.is_none(),
        "{account:?}"
    );
    let ports = found("Service edge/edge", ".spec.ports").unwrap();
    assert_eq!(ports.reason, None);
    assert!(found("HorizontalPodAutoscaler edge/edge", ".spec.minReplicas").is_none());
    assert!(!migration.is_equal());
}

#[test]
fn objects_of_base_are_compared() {
    let migration = convert(&["profile=minimal", "values.global.imagePullSecrets[0]=pull"]);
    let validator = |one: &&FieldDifference| one.object.ends_with("/istiod-default-validator");
    let validator = migration.differences.iter().find(validator).unwrap();
    let expected = "`istioctl install` and `mainstay install` create it, too";
    assert_eq!((validator.harmless, &validator.live), (Some(expected), &None));
    // Definitions are compared, too.
    assert!(migration.equal_objects > 30, "{}", migration.equal_objects);
    assert!(migration.is_equal(), "{:#?}", migration.differences);
    let migration = convert(&["profile=minimal", "revision=canary"]);
    let account = migration.differences.iter().find(|one| one.object == READER);
    let expected = "the operator installs it exactly for the revision or tag default";
    assert_eq!(account.unwrap().reason, Some(expected));
}

#[test]
fn settings_of_a_gateway_without_a_value_are_reported() {
    let migration = convert(&[
        "components.ingressGateways[0].name=istio-ingressgateway",
        "components.ingressGateways[0].k8s.strategy.rollingUpdate.maxSurge=1",
        "values.gateways.istio-ingressgateway.externalTrafficPolicy=Local",
    ]);
    let mut paths = migration.not_carried.iter().map(|one| one.path.as_str());
    let strategy =
        "components.ingressGateways[name:istio-ingressgateway].k8s.strategy.rollingUpdate.maxSurge";
    assert!(paths.any(|path| path == strategy), "{:?}", migration.not_carried);
    let mut paths = migration.not_carried.iter().map(|one| one.path.as_str());
    assert!(paths.any(|path| path == "values.gateways.istio-ingressgateway.externalTrafficPolicy"));
}

#[test]
fn comments_of_the_file_are_kept() {
    let text = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n  meshConfig:\n    \
                # for the auditors\n    accessLogFile: /dev/stdout # all proxies\n";
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let version: Version = "1.29.1".parse().unwrap();
    let package = CatalogPackage::new(&catalog, version.clone());
    let mut request = Request::new(&package);
    request.files = vec![InputFile {
        name: "mesh.yaml".to_owned(),
        text: text.into(),
    }];
    let rendered = generate(&request).unwrap();
    let migration = to_resources(&rendered, &catalog, &version, &[text.to_owned()]).unwrap();
    let printed = mainstay_cluster::deploy::document(&migration.resources[0]).unwrap();
    let printed = migration.comments[0].write(&printed);
    let expected = "      # for the auditors\n      accessLogFile: /dev/stdout # all proxies\n";
    assert!(printed.contains(expected), "{printed}");
}
