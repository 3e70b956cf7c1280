//! Specs that the rules of the definition reject or accept, as a table. Servers receive them in dry runs.

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, operator};

/// Creates all specs in dry runs and compares the results. No webhook may be registered.
pub(crate) async fn check_rules(world: &World) {
    let path = format!("/apis/install.istio.io/v1alpha1/namespaces/{NAMESPACE}/istiooperators?dryRun=All");
    let create = async |spec: &Value| {
        let body = operator("dry-run", spec.clone());
        world.send("POST", &path, Some(&body)).await
    };
    let (violations, valid) = (violations(), valid_specs());
    for (spec, expected) in &violations {
        let (_, message) = create(spec).await.unwrap_err();
        assert!(message.contains(expected), "{spec}: {message}");
    }
    for spec in &valid {
        let created = create(spec).await;
        created.unwrap_or_else(|error| panic!("{spec}: {error:?}"));
    }
    println!(
        "rules of the definition: {} rejected, {} accepted",
        violations.len(),
        valid.len()
    );
}

/// Violations of the rules, and a part of each message.
fn violations() -> Vec<(Value, &'static str)> {
    let gateway = |name: &str| json!([{"name": name, "enabled": true}]);
    let pilot =
        |feature: &str| json!({feature: {"enabled": false}, "components": {"pilot": {"enabled": true}}});
    let own = |feature: &str, component: &str| json!({feature: {"enabled": false, "components": {component: {"enabled": true}}}});
    let gateways = |list: &str| {
        let gateways = gateway("a");
        json!({"gateways": {"enabled": false}, "components": {list: gateways}})
    };
    let addon =
        |name: &str| json!({"telemetry": {"enabled": false}, "addonComponents": {name: {"enabled": true}}});
    let pilot_message = "components.pilot is enabled, but its feature";
    let mut violations = vec![
        (
            json!({"profile": "../custom"}),
            "profile must be a name, not a path",
        ),
        (
            json!({"profile": ".hidden"}),
            "profile must be a name, not a path",
        ),
        (json!({"profile": "external"}), "is named remote"),
        (
            json!({"hub": "registry.example.com/my istio"}),
            "hub must be a registry",
        ),
        (
            json!({"hub": "registry.example.com/Istio"}),
            "hub must be a registry",
        ),
        (json!({"tag": "1.29:latest"}), "tag must be an image tag"),
        (json!({"tag": ""}), "tag must be an image tag"),
        (json!({"tag": 1.5}), "spec.tag"),
        (
            json!({"components": {"ingressGateways": gateway("Edge_One")}}),
            "name must consist of",
        ),
        (
            json!({"components": {"egressGateways": gateway("Edge_One")}}),
            "name must consist of",
        ),
        (
            json!({"components": {"egressGateways": [null]}}),
            "egressGateways[0]",
        ),
        (
            json!({"gateways": {"components": {"ingressGateways": gateway("A")}}}),
            "name must consist of",
        ),
        (
            json!({"security": {"enabled": false}, "autoInjection": {"enabled": true}}),
            "enable or disable all of them",
        ),
        (gateways("ingressGateways"), "its feature gateways is disabled"),
        (gateways("egressGateways"), "its feature gateways is disabled"),
        (
            json!({"gateways": {"enabled": false, "components": {"egressGateways": gateway("a")}}}),
            "a gateway in components.egressGateways is enabled",
        ),
        (
            own("gateways", "ingressGateway"),
            "components.ingressGateway is enabled",
        ),
        (
            json!({"thirdParty": {"enabled": false}, "components": {"cni": {"enabled": true}}}),
            "its feature thirdParty is disabled",
        ),
        (own("thirdParty", "cni"), "components.cni is enabled"),
    ];
    for feature in [
        "trafficManagement",
        "security",
        "configManagement",
        "autoInjection",
    ] {
        violations.push((pilot(feature), pilot_message));
        violations.push((own(feature, "pilot"), pilot_message));
    }
    for name in ["prometheus", "prometheusOperator", "grafana", "kiali", "tracing"] {
        violations.push((addon(name), "its feature telemetry is disabled"));
        violations.push((own("telemetry", name), "is enabled, but its feature is disabled"));
    }
    violations
}

fn valid_specs() -> Vec<Value> {
    vec![
        json!({"profile": "demo", "hub": "registry.example.com:5000/istio/release", "tag": "1.29.1-distroless"}),
        json!({"profile": "", "hub": "", "tag": 7}),
        json!({
            "components": {"ingressGateways": [{"name": "edge.one", "k8s": {"replicaCount": 2}}, {}], "egressGateways": null},
            "gateways": {"enabled": false, "components": {"egressGateway": {"enabled": false}}},
            "telemetry": {"enabled": false, "v2": {"enabled": true}},
            "addonComponents": {"grafana": {"enabled": false}, "istiocoredns": {"enabled": true}},
        }),
        json!({
            "security": {"enabled": false},
            "autoInjection": {"enabled": false},
            "components": {"pilot": {"enabled": false}, "cni": {"enabled": true}},
            "thirdParty": {"namespace": "kube-system"},
        }),
        json!({"security": {"enabled": true}, "autoInjection": {"enabled": true}}),
    ]
}
