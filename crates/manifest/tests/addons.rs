//! Tests add-ons of the pinned release: each add-on alone, enabled by the telemetry feature, and in other
//! namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use mainstay_catalog::{Catalog, Version};
use mainstay_manifest::{CatalogPackage, ComponentName, Object, Request, generate};

/// Generates only add-ons and returns `Kind namespace/name` of their objects.
fn objects(sets: &[&str]) -> Vec<String> {
    let names = addons(sets).into_iter();
    let mut names: Vec<String> = names
        .map(|object| format!("{} {}/{}", object.kind(), object.namespace(), object.name()))
        .collect();
    names.sort();
    names
}

fn addons(sets: &[&str]) -> Vec<Object> {
    let catalog = Catalog::embedded().unwrap();
    let version: Version = "1.29.1".parse().unwrap();
    let package = CatalogPackage::new(&catalog, version);
    let mut request = Request::new(&package);
    request.sets = ["profile=empty"]
        .iter()
        .chain(sets)
        .map(|set| (*set).to_owned())
        .collect();
    let rendered = generate(&request).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let components = rendered.components.into_iter();
    let addons = components.filter(|one| one.component == ComponentName::Addons);
    addons.flat_map(|one| one.objects).collect()
}

fn check(addon: &str, expected: &[&str]) {
    let found = objects(&[&format!("addonComponents.{addon}.enabled=true")]);
    for name in expected {
        assert!(
            found.iter().any(|one| one == name),
            "{addon}: no {name} in {found:#?}"
        );
    }
}

#[test]
fn every_addon_installs_its_manifest() {
    check(
        "grafana",
        &["Deployment istio-system/grafana", "Service istio-system/grafana"],
    );
    check(
        "kiali",
        &["Deployment istio-system/kiali", "Service istio-system/kiali"],
    );
    check(
        "prometheus",
        &[
            "Deployment istio-system/prometheus",
            "Service istio-system/prometheus",
        ],
    );
    check(
        "prometheusOperator",
        &[
            "PodMonitor istio-system/envoy-stats-monitor",
            "ServiceMonitor istio-system/istio-component-monitor",
        ],
    );
    check(
        "tracing",
        &["Deployment istio-system/jaeger", "Service istio-system/tracing"],
    );
}

#[test]
fn tracing_has_two_providers() {
    let found = objects(&[
        "addonComponents.tracing.enabled=true",
        "addonComponents.tracing.spec.provider=zipkin",
    ]);
    assert!(
        found.contains(&"Deployment istio-system/zipkin".to_owned()),
        "{found:#?}"
    );
    assert!(!found.iter().any(|one| one.contains("jaeger")), "{found:#?}");
}

#[test]
fn the_telemetry_feature_enables_its_addons() {
    let found = objects(&[
        "telemetry.enabled=true",
        "telemetry.components.kiali.enabled=false",
    ]);
    for name in ["grafana", "prometheus", "jaeger"] {
        let deployment = format!("Deployment istio-system/{name}");
        assert!(found.contains(&deployment), "{found:#?}");
    }
    assert!(!found.iter().any(|one| one.contains("kiali")), "{found:#?}");
    assert!(objects(&["telemetry.enabled=false"]).is_empty());
}

#[test]
fn an_addon_has_its_own_namespace() {
    let sets = [
        "addonComponents.prometheus.enabled=true",
        "addonComponents.prometheus.namespace=observability",
    ];
    let found = objects(&sets);
    assert!(
        found.contains(&"Deployment observability/prometheus".to_owned()),
        "{found:#?}"
    );
    assert!(
        !found.iter().any(|one| one.contains(" istio-system/")),
        "{found:#?}"
    );
}

#[test]
fn an_unknown_addon_is_an_error_with_the_candidates() {
    let catalog = Catalog::embedded().unwrap();
    let package = CatalogPackage::new(&catalog, "1.29.1".parse().unwrap());
    let mut request = Request::new(&package);
    request.sets = vec![
        "profile=empty".to_owned(),
        "addonComponents.grafan.enabled=true".to_owned(),
    ];
    let error = generate(&request).unwrap_err().to_string();
    assert!(
        error.contains("addonComponents.grafan: this add-on does not exist"),
        "{error}"
    );
    assert!(error.contains("did you mean \"grafana\"?"), "{error}");
}
