//! Tests the conversion of charts with values to an `IstioOperator` and to custom resources.

use std::sync::Arc;

use mainstay_adopt::{HelmChart, HelmSource, Migration, SourceFile, helm_to_operator, helm_to_resources};
use mainstay_api::Values;
use mainstay_catalog::{Catalog, Version};
use mainstay_testkit::{CaseCounts, case_count};

use HelmChart::{Base, Cni, Gateway, Istiod, Ztunnel};

fn version() -> Version {
    "1.29.1".parse().unwrap()
}

fn sources(charts: &[(HelmChart, &str)]) -> Vec<HelmSource> {
    let mut sources = Vec::new();
    if charts.iter().all(|(chart, _)| *chart != Base) {
        sources.push(HelmSource::with_values(Base, &version(), Values::new()));
    }
    for (chart, text) in charts {
        let file = format!("{}.yaml", chart.name());
        let file = SourceFile {
            name: &file,
            text: text.as_bytes(),
        };
        let source = HelmSource::from_values(*chart, &version(), file);
        sources.push(source.unwrap_or_else(|error| panic!("{text}: {error}")));
    }
    sources
}

fn to_operator(charts: &[(HelmChart, &str)]) -> Migration {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let migration = helm_to_operator(&sources(charts), &catalog);
    migration.unwrap_or_else(|error| panic!("{charts:?}: {error}"))
}

fn to_resources(charts: &[(HelmChart, &str)]) -> Migration {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let migration = helm_to_resources(&sources(charts), &catalog);
    migration.unwrap_or_else(|error| panic!("{charts:?}: {error}"))
}

/// Charts with values that render the same objects after both conversions.
const EQUAL: &[&[(HelmChart, &str)]] = &[
    &[(Istiod, "")],
    &[(Istiod, "autoscaleMin: 3\nautoscaleMax: 7\n")],
    &[(Istiod, "pilot: {autoscaleEnabled: false, replicaCount: 2}\n")],
    &[(Istiod, "env: {PILOT_ENABLE_STATUS: \"true\"}\n")],
    &[(
        Istiod,
        "meshConfig: {accessLogFile: /dev/stdout, enableTracing: true}\n",
    )],
    &[
        (Base, "defaultRevision: canary\n"),
        (Istiod, "revision: canary\n"),
    ],
    &[(Istiod, "revision: canary\nrevisionTags: [prod]\n")],
    &[(Istiod, "global: {hub: example.com/istio, tag: 1.29.1-debug}\n")],
    &[(Istiod, "resources: {requests: {cpu: 321m}}\n")],
    &[(
        Istiod,
        "nodeSelector: {disk: ssd}\ntolerations: [{key: a, operator: Exists}]\n",
    )],
    &[(Istiod, "podLabels: {team: mesh}\npodAnnotations: {a: b}\n")],
    &[(Istiod, "global: {proxy: {privileged: true, logLevel: debug}}\n")],
    &[(
        Istiod,
        "global: {logAsJson: true, multiCluster: {clusterName: east}, network: a}\n",
    )],
    &[
        (Istiod, "pilot: {cni: {enabled: true}}\n"),
        (Cni, "cniBinDir: /opt/cni/bin\n"),
    ],
    &[(Istiod, ""), (Cni, "logging: {level: debug}\n")],
    &[
        (Istiod, "profile: ambient\n"),
        (Cni, "profile: ambient\n"),
        (Ztunnel, "profile: ambient\nlogLevel: debug\n"),
    ],
    &[(Istiod, "profile: demo\n")],
    &[(Istiod, "profile: preview\n")],
    &[(Istiod, "traceSampling: 5\nkeepaliveMaxServerConnectionAge: 10m\n")],
    &[(
        Istiod,
        "sidecarInjectorWebhook: {enableNamespacesByDefault: true}\n",
    )],
];

/// Validator of the chart `base`, which the operator installs exactly for the revision or tag `default`.
const VALIDATOR: &str = "ValidatingWebhookConfiguration /istiod-default-validator";

/// Default number of cases. `MAINSTAY_CASES` overrides it; the full proof runs all cases.
const CASES: usize = 6;

#[test]
fn charts_render_the_same_objects_as_an_operator() {
    let mut counts = CaseCounts::default();
    for charts in EQUAL.iter().take(case_count(CASES)) {
        let migration = to_operator(charts);
        counts.count(migration.is_equal() && migration.equal_objects > 20, || {
            let (equal, operator) = (migration.equal_objects, &migration.resources);
            format!(
                "{charts:?}: {equal} equal\n{:#?}\n{operator:#?}",
                migration.differences
            )
        });
    }
    println!("charts as IstioOperator: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

#[test]
fn charts_render_the_same_objects_as_resources() {
    let mut counts = CaseCounts::default();
    for charts in EQUAL.iter().take(case_count(CASES)) {
        let migration = to_resources(charts);
        let has_default = !charts
            .iter()
            .any(|(_, values)| values.contains("revision: canary"));
        let expected: &[&str] = if has_default {
            &[]
        } else {
            &[super::READER, VALIDATOR]
        };
        let is_equal = super::differs_in(&migration, expected);
        counts.count(is_equal && migration.equal_objects > 10, || {
            let (equal, resources) = (migration.equal_objects, &migration.resources);
            format!(
                "{charts:?}: {equal} equal\n{:#?}\n{resources:#?}",
                migration.differences
            )
        });
    }
    println!("charts as resources: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// Prints a converted configuration with its comments.
fn printed(migration: &Migration) -> String {
    let text = mainstay_cluster::deploy::document(&migration.resources[0]).unwrap();
    migration.comments[0].write(&text)
}

#[test]
fn an_operator_contains_only_what_differs_from_the_profile_with_comments() {
    let values = "# Mesh of the shop\n\n# enough for two zones\nautoscaleMin: 2\nautoscaleMax: 5 # the default\n\
                  global:\n  hub: registry.istio.io/release # the default\nmeshConfig:\n  # for the auditors\n  \
                  accessLogFile: /dev/stdout # all proxies\n";
    let migration = to_operator(&[(Istiod, values)]);
    let expected = "# Mesh of the shop\napiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  meshConfig:\n    \
                    # for the auditors\n    accessLogFile: /dev/stdout # all proxies\n  profile: minimal\n  values:\n    \
                    defaultRevision: default\n    pilot:\n      # enough for two zones\n      autoscaleMin: 2\n";
    assert_eq!(printed(&migration), expected, "{:#?}", migration.differences);
    assert!(migration.not_carried.is_empty(), "{:?}", migration.not_carried);
}

#[test]
fn ambient_charts_use_the_ambient_profile() {
    let migration = to_operator(&[
        (Istiod, "profile: ambient\n"),
        (Cni, "profile: ambient\n"),
        (Ztunnel, "profile: ambient\n"),
    ]);
    let expected = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: ambient\n  values:\n    \
                    defaultRevision: default\n    pilot:\n      cni:\n        enabled: false\n";
    assert_eq!(printed(&migration), expected);
    assert!(migration.is_equal(), "{:#?}", migration.differences);
}

#[test]
fn values_that_cannot_be_converted_are_reported_with_the_reason() {
    let migration = to_operator(&[
        (
            Istiod,
            "global: {variant: debug, proxy: {excludeInboundPorts: x}}\n",
        ),
        (Cni, "global: {variant: distroless}\n"),
        (Gateway, "service: {type: NodePort}\nminReadySeconds: 3\n"),
    ]);
    let found: Vec<&str> = migration
        .not_carried
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(
        found,
        [
            "chart cni (cni.yaml): global.variant",
            "chart gateway (gateway.yaml): minReadySeconds",
            "values.global.proxy.excludeInboundPorts",
        ]
    );
    assert!(!migration.is_equal());
}

#[test]
fn two_control_planes_become_two_operators() {
    let migration = to_operator(&[(Istiod, "revision: canary\n"), (Istiod, ""), (Cni, "")]);
    let components: Vec<_> = migration
        .resources
        .iter()
        .map(|one| one["spec"]["components"].clone())
        .collect();
    assert_eq!(components.len(), 2);
    assert_eq!(components[0]["cni"]["enabled"], true, "{components:?}");
    assert_eq!(components[1]["base"]["enabled"], false, "{components:?}");
    assert!(migration.is_equal(), "{:#?}", migration.differences);
}
