//! Tests of the feature form.

use mainstay_yaml::{Budget, parse_map, to_json};

use super::*;

/// Translates `spec` and compares the result and the messages.
fn check(spec: &str, expected: &str, messages: &[&str]) {
    let spec = parse_map(spec, &Budget::default()).unwrap();
    let mut operator = Map::from([("spec".to_owned(), Value::Map(spec))]);
    let (_, found) = translate_features(&mut operator);
    let found: Vec<String> = found.list().iter().map(ToString::to_string).collect();
    assert_eq!(found, messages);
    assert_eq!(to_json(&operator["spec"]).unwrap(), expected);
}

#[test]
fn a_feature_enables_its_components_unless_they_are_disabled() {
    check(
        "{trafficManagement: {enabled: true, components: {pilot: {k8s: {replicaCount: 2}}}}}",
        r#"{"components":{"pilot":{"enabled":true,"k8s":{"replicaCount":2}}}}"#,
        &[],
    );
    check(
        "{gateways: {enabled: true, components: {egressGateway: {enabled: false}}}}",
        concat!(
            r#"{"components":{"egressGateways":[{"enabled":false,"name":"istio-egressgateway"}],"#,
            r#""ingressGateways":[{"enabled":true,"name":"istio-ingressgateway"}]}}"#
        ),
        &[],
    );
    check(
        "{telemetry: {enabled: true, v2: {enabled: false}, components: {kiali: {enabled: false}}}}",
        concat!(
            r#"{"addonComponents":{"grafana":{"enabled":true},"kiali":{"enabled":false},"#,
            r#""prometheus":{"enabled":true},"prometheusOperator":{"enabled":true},"tracing":{"enabled":true}},"#,
            r#""values":{"telemetry":{"v2":{"enabled":false}}}}"#
        ),
        &[],
    );
}

#[test]
fn a_disabled_feature_disables_its_components() {
    check(
        "{security: {enabled: false}}",
        r#"{"components":{"pilot":{"enabled":false}}}"#,
        &[],
    );
    check(
        "{thirdParty: {enabled: false, components: {cni: {enabled: true}}}}",
        r#"{"components":{"cni":{"enabled":false}}}"#,
        &[
            "error: spec.thirdParty.components.cni.enabled: is enabled, but its feature \"thirdParty\" is disabled\n  hint: set spec.thirdParty.enabled to true, or remove this",
        ],
    );
    check(
        "{security: {enabled: false}, components: {pilot: {enabled: true}}}",
        r#"{"components":{"pilot":{"enabled":false}}}"#,
        &[
            "error: spec.components.pilot.enabled: is enabled, but its feature \"security\" is disabled\n  hint: set spec.security.enabled to true, or remove this",
        ],
    );
    check(
        "{security: {enabled: false}, autoInjection: {enabled: true}}",
        r#"{"components":{"pilot":{"enabled":false}}}"#,
        &[
            "error: spec.security.enabled: pilot implements \"security\", which is disabled, and \"autoInjection\", which is enabled\n  hint: enable or disable both features",
        ],
    );
}

#[test]
fn a_disabled_feature_disables_all_its_components() {
    let message = |path: &str, feature: &str| {
        format!(
            "error: spec.{path}.enabled: is enabled, but its feature {feature:?} is disabled\n  \
             hint: set spec.{feature}.enabled to true, or remove this"
        )
    };
    check(
        concat!(
            "{gateways: {enabled: false, components: {egressGateway: {enabled: true}}}, ",
            "components: {ingressGateways: [{name: a, enabled: true}, {name: b}]}, ",
            "values: {gateways: {istio-ingressgateway: {enabled: true, runAsRoot: true}}}}"
        ),
        concat!(
            r#"{"components":{"egressGateways":[{"enabled":false,"name":"istio-egressgateway"}],"#,
            r#""ingressGateways":[{"enabled":false,"name":"a"},{"enabled":false,"name":"b"},"#,
            r#"{"enabled":false,"name":"istio-ingressgateway"}]},"#,
            r#""values":{"gateways":{"istio-ingressgateway":{"enabled":false,"runAsRoot":true}}}}"#
        ),
        &[
            &message("gateways.components.egressGateway", "gateways"),
            &message("components.ingressGateways[name:a]", "gateways"),
            &message("values.gateways.istio-ingressgateway", "gateways"),
        ],
    );
    check(
        "{telemetry: {enabled: false}, addonComponents: {grafana: {enabled: true}, kiali: {}}}",
        r#"{"addonComponents":{"grafana":{"enabled":false},"kiali":{}}}"#,
        &[&message("addonComponents.grafana", "telemetry")],
    );
    // The order of the features does not matter.
    check(
        "{trafficManagement: {enabled: true}, security: {enabled: false}}",
        r#"{"components":{"pilot":{"enabled":false}}}"#,
        &[
            "error: spec.security.enabled: pilot implements \"security\", which is disabled, and \"trafficManagement\", which is enabled\n  hint: enable or disable both features",
        ],
    );
}

#[test]
fn gateways_of_the_profile_are_disabled() {
    let read = |text: &str| Value::Map(parse_map(text, &Budget::default()).unwrap());
    let mut user = Map::from([("spec".to_owned(), read("{gateways: {enabled: false}}"))]);
    let (disabled, _) = translate_features(&mut user);
    let profile = "{components: {ingressGateways: [{name: a, enabled: true}], egressGateways: null}}";
    let mut merged = Map::from([("spec".to_owned(), read(profile))]);
    disabled.disable_components(&mut merged);
    assert_eq!(
        to_json(&merged["spec"]).unwrap(),
        r#"{"components":{"egressGateways":[],"ingressGateways":[{"enabled":false,"name":"a"}]}}"#
    );
}

#[test]
fn namespaces_are_overridden_on_three_levels() {
    check(
        concat!(
            "{defaultNamespace: mesh, gateways: {namespace: edge, components: ",
            "{ingressGateway: {namespace: own}, egressGateway: {}}}}"
        ),
        concat!(
            r#"{"components":{"egressGateways":[{"name":"istio-egressgateway","namespace":"edge"}],"#,
            r#""ingressGateways":[{"name":"istio-ingressgateway","namespace":"own"}]},"#,
            r#""defaultNamespace":"mesh","values":{"global":{"istioNamespace":"mesh"}}}"#
        ),
        &[],
    );
    check(
        "{trafficManagement: {components: {namespace: control, pilot: {}}}}",
        r#"{"components":{"pilot":{"namespace":"control"}}}"#,
        &[],
    );
    check(
        "{namespace: a, values: {global: {istioNamespace: b}}}",
        r#"{"namespace":"a","values":{"global":{"istioNamespace":"b"}}}"#,
        &[],
    );
}

#[test]
fn removed_components_are_reported() {
    check(
        "{policy: {enabled: true}}",
        "{}",
        &[
            "error: spec.policy: component \"policy\" was removed in Istio 1.8 and cannot be enabled\n  hint: use AuthorizationPolicy and external authorization providers",
        ],
    );
    check(
        "{telemetry: {components: {telemetry: {enabled: false}}}}",
        "{}",
        &[
            "warning: spec.telemetry: component \"telemetry\" was removed in Istio 1.8; this has no effect\n  hint: remove it",
        ],
    );
}
