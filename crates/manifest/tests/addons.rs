//! Tests add-ons of the pinned release: each add-on alone, enabled by the telemetry feature, and in other
//! namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use mainstay_catalog::{Catalog, Version};
use mainstay_manifest::{
    CatalogPackage, ComponentName, Diagnostics, InputFile, Object, Rendered, Request, generate,
};
use mainstay_yaml::{Budget, Value, parse};

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
    let rendered = render("{}", sets).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    addon_objects(rendered)
}

fn addon_objects(rendered: Rendered) -> Vec<Object> {
    let components = rendered.components.into_iter();
    let addons = components.filter(|one| one.component == ComponentName::Addons);
    addons.flat_map(|one| one.objects).collect()
}

/// Generates the value of `spec.addonComponents` without any other component.
fn render(addon_components: &str, sets: &[&str]) -> Result<Rendered, Diagnostics> {
    let catalog = Catalog::embedded().unwrap();
    let version: Version = "1.29.1".parse().unwrap();
    let package = CatalogPackage::new(&catalog, version);
    let mut request = Request::new(&package);
    request.files = vec![InputFile {
        name: "addons.yaml".into(),
        text: format!("spec: {{profile: empty, addonComponents: {addon_components}}}").into_bytes(),
    }];
    request.sets = sets.iter().map(|set| (*set).to_owned()).collect();
    generate(&request)
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
    let error = render("{grafan: {enabled: true}}", &[]).unwrap_err().to_string();
    assert!(
        error.contains("addonComponents.grafan: this add-on does not exist"),
        "{error}"
    );
    assert!(error.contains("did you mean \"grafana\"?"), "{error}");
}

#[test]
fn an_unknown_provider_is_an_error_with_the_candidates() {
    let spec = "{tracing: {enabled: true, spec: {provider: zipkins}}}";
    let error = render(spec, &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "addons.yaml:1:74: error: spec.addonComponents.tracing.spec.provider: \
         expected one of jaeger, zipkin (value \"zipkins\")\n  hint: did you mean \"zipkin\"?"
    );
}

/// Settings that apply to every add-on with a workload.
const SETTINGS: &str = "{
    replicaCount: 2,
    env: [{name: ADDED, value: x}],
    imagePullPolicy: Never,
    resources: {limits: {cpu: 1}},
    readinessProbe: {periodSeconds: 7},
    nodeSelector: {pool: addons},
    podAnnotations: {a: b},
    priorityClassName: high,
    affinity: {nodeAffinity: {}},
    tolerations: [{operator: Exists}],
    securityContext: {runAsUser: 1337},
    serviceAnnotations: {c: d},
    overlays: [{kind: Deployment, name: NAME, patches: [{path: spec.paused, value: true}]}]}";

const IN_POD: &[(&str, &str)] = &[
    ("nodeSelector", "{pool: addons}"),
    ("priorityClassName", "high"),
    ("affinity", "{nodeAffinity: {}}"),
    ("tolerations", "[{operator: Exists}]"),
];

#[track_caller]
fn check_settings(addon: &str, spec: &str, deployment: &str, container: &str, service: &str) {
    let settings = SETTINGS.replace("NAME", deployment);
    let rendered = render(
        &format!("{{{addon}: {{enabled: true, spec: {spec}, k8s: {settings}}}}}"),
        &[],
    );
    let rendered = rendered.unwrap_or_else(|error| panic!("{addon}: {error}"));
    assert_eq!(rendered.warnings.to_string(), "", "{addon}");
    let objects = addon_objects(rendered);
    let find = |kind: &str, name: &str| {
        let mut objects = objects.iter();
        let found = objects.find(|one| one.kind() == kind && one.name() == name);
        found
            .unwrap_or_else(|| panic!("{addon}: no {kind} {name}"))
            .0
            .clone()
    };
    let read = |text: &str| parse(text, &Budget::default()).unwrap();
    let workload = find("Deployment", deployment);
    assert_eq!(workload.at(&["spec", "replicas"]), Some(&Value::Int(2)));
    assert_eq!(workload.at(&["spec", "paused"]), Some(&Value::Bool(true)));
    let template = workload.at(&["spec", "template"]).unwrap();
    assert_eq!(
        template.at(&["metadata", "annotations", "a"]),
        Some(&Value::from("b"))
    );
    let pod = template.get("spec").unwrap();
    for (field, value) in IN_POD {
        assert_eq!(pod.get(field), Some(&read(value)), "{addon}.{field}");
    }
    assert_eq!(pod.at(&["securityContext", "runAsUser"]), Some(&Value::Int(1337)));
    let containers = pod.get("containers").and_then(Value::as_list).unwrap();
    let is_main = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(container);
    let main = containers.iter().find(is_main).unwrap();
    let env = main.get("env").and_then(Value::as_list).unwrap();
    assert!(env.contains(&read("{name: ADDED, value: x}")), "{addon}: {env:?}");
    assert_eq!(main.get("imagePullPolicy"), Some(&Value::from("Never")));
    assert_eq!(main.at(&["resources", "limits", "cpu"]), Some(&Value::Int(1)));
    assert_eq!(
        main.at(&["readinessProbe", "periodSeconds"]),
        Some(&Value::Int(7))
    );
    let service = find("Service", service);
    assert_eq!(
        service.at(&["metadata", "annotations", "c"]),
        Some(&Value::from("d"))
    );
}

#[test]
fn settings_and_overlays_are_applied_to_addons() {
    check_settings("grafana", "{}", "grafana", "grafana", "grafana");
    check_settings("kiali", "{}", "kiali", "kiali", "kiali");
    check_settings(
        "prometheus",
        "{}",
        "prometheus",
        "prometheus-server",
        "prometheus",
    );
    check_settings("tracing", "{}", "jaeger", "jaeger", "tracing");
    check_settings("tracing", "{provider: zipkin}", "zipkin", "zipkin", "tracing");
}

#[test]
fn fields_of_addons_without_effect_are_reported() {
    let check = |spec: &str, expected: &[&str]| {
        let rendered = render(spec, &[]).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<String> = rendered
            .warnings
            .list()
            .iter()
            .map(|one| format!("{}: {}", one.path, one.message))
            .collect();
        assert_eq!(found, expected);
    };
    check(
        "{prometheusOperator: {enabled: true, k8s: {replicaCount: 2}}}",
        &["spec.addonComponents.prometheusOperator.k8s.replicaCount: has no effect: no workload is rendered"],
    );
    check(
        "{kiali: {enabled: true, k8s: {hpaSpec: {minReplicas: 2}}}}",
        &[
            "spec.addonComponents.kiali.k8s.hpaSpec: has no effect: no HorizontalPodAutoscaler \"kiali\" is rendered",
        ],
    );
    check(
        "{kiali: {chartPath: x, schema: {}, spec: {provider: zipkin}}, tracing: {spec: {provider: zipkin, a: b}}}",
        &[
            "spec.addonComponents.kiali.chartPath: has no effect",
            "spec.addonComponents.kiali.schema: has no effect",
            "spec.addonComponents.kiali.spec.provider: has no effect",
            "spec.addonComponents.tracing.spec.a: has no effect",
        ],
    );
}

#[test]
fn an_overlay_of_an_addon_that_selects_nothing_is_an_error() {
    let spec = "{kiali: {enabled: true, k8s: {overlays: [{kind: Deployment, name: kialy}]}}}";
    let error = render(spec, &[]).unwrap_err().to_string();
    assert!(
        error.contains("spec.addonComponents.kiali.k8s.overlays[0]: no Deployment \"kialy\" is rendered"),
        "{error}"
    );
}
