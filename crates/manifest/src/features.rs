//! The feature form of the API: feature blocks group components and set enablement and namespaces on three
//! levels. They are translated to `spec.components` before layers are merged.

use mainstay_chart::merge_maps;
use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::{put, text_at, value_at};
use crate::path::Path;

/// A feature and its components.
struct Feature {
    key: &'static str,
    components: &'static [&'static str],
}

/// All features. The component `pilot` belongs to several features.
const FEATURES: &[Feature] = &[
    Feature {
        key: "trafficManagement",
        components: &["pilot"],
    },
    Feature {
        key: "security",
        components: &["pilot"],
    },
    Feature {
        key: "configManagement",
        components: &["pilot"],
    },
    Feature {
        key: "autoInjection",
        components: &["pilot"],
    },
    Feature {
        key: "gateways",
        components: &[
            "ingressGateway",
            "egressGateway",
            "ingressGateways",
            "egressGateways",
        ],
    },
    Feature {
        key: "policy",
        components: &["policy"],
    },
    Feature {
        key: "telemetry",
        components: &[
            "telemetry",
            "prometheus",
            "prometheusOperator",
            "grafana",
            "kiali",
            "tracing",
        ],
    },
    Feature {
        key: "thirdParty",
        components: &["cni"],
    },
];

/// Components that Istio removed, and their replacements.
const REMOVED: &[(&str, &str)] = &[
    (
        "policy",
        "AuthorizationPolicy and external authorization providers",
    ),
    ("telemetry", "the Telemetry API; metrics come from the proxies"),
];

/// Components of the telemetry feature that are add-ons.
pub(crate) const ADDONS: &[&str] = &["prometheus", "prometheusOperator", "grafana", "kiali", "tracing"];

/// Gateways in the feature form: key of a single gateway, list in `spec.components`, default name.
const GATEWAYS: &[(&str, &str, &str)] = &[
    ("ingressGateway", "ingressGateways", "istio-ingressgateway"),
    ("egressGateway", "egressGateways", "istio-egressgateway"),
];

/// Replaces the feature blocks of a user's configuration by components, add-ons and values.
pub(crate) fn translate_features(operator: &mut Map) -> Diagnostics {
    let mut found = Diagnostics::default();
    let Some(spec) = operator.get_mut("spec").and_then(Value::as_map_mut) else {
        return found;
    };
    set_global_namespace(spec);
    check_removed_components(spec, &mut found);
    check_pilot_conflict(spec, &mut found);
    for feature in FEATURES {
        let Some(Value::Map(block)) = spec.get(feature.key).cloned() else {
            continue;
        };
        translate_feature(spec, feature, &block, &mut found);
        // If there are errors in the block, it is not removed, so that strict decoding reports unknown
        // fields, too.
        spec.remove(feature.key);
    }
    found
}

fn spec_path(keys: &[&str]) -> Path {
    let mut path = vec!["spec"];
    path.extend(keys);
    Path::from_keys(&path)
}

fn bool_at(map: &Map, keys: &[&str]) -> Option<bool> {
    value_at(map, keys).and_then(Value::as_bool)
}

/// Sets the namespace of all components to `defaultNamespace` or `namespace`, unless values set it.
fn set_global_namespace(spec: &mut Map) {
    let own = [
        text_at(spec, &["defaultNamespace"]),
        text_at(spec, &["namespace"]),
    ];
    let Some(namespace) = own.into_iter().find(|namespace| !namespace.is_empty()) else {
        return;
    };
    let keys = ["values", "global", "istioNamespace"];
    if value_at(spec, &keys).is_none() {
        put(spec, &keys, namespace.into());
    }
}

fn check_removed_components(spec: &Map, found: &mut Diagnostics) {
    for (name, replacement) in REMOVED {
        let path = spec_path(&[name]);
        // The telemetry feature still has add-ons, but its component no longer exists.
        let component = bool_at(spec, &[name, "components", name, "enabled"]);
        let feature = bool_at(spec, &[name, "enabled"]).filter(|_| *name == "policy");
        if component == Some(true) || feature == Some(true) {
            let message = format!("component {name:?} was removed in Istio 1.8 and cannot be enabled");
            found.push(Diagnostic::error(path, message).hint(format!("use {replacement}")));
        } else if component.is_some() || feature.is_some() {
            let message = format!("component {name:?} was removed in Istio 1.8; this has no effect");
            found.push(Diagnostic::warning(path, message).hint("remove it"));
        }
    }
}

/// Reports an error if `pilot` belongs to both an enabled and a disabled feature.
fn check_pilot_conflict(spec: &Map, found: &mut Diagnostics) {
    let with_pilot = || {
        FEATURES
            .iter()
            .filter(|feature| feature.components.contains(&"pilot"))
    };
    let find = |wanted: bool| with_pilot().find(|one| bool_at(spec, &[one.key, "enabled"]) == Some(wanted));
    if let (Some(on), Some(off)) = (find(true), find(false)) {
        let message = format!(
            "pilot implements {:?}, which is disabled, and {:?}, which is enabled",
            off.key, on.key
        );
        let path = spec_path(&[off.key, "enabled"]);
        found.push(Diagnostic::error(path, message).hint("enable or disable both features"));
    }
}

fn translate_feature(spec: &mut Map, feature: &Feature, block: &Map, found: &mut Diagnostics) {
    let enabled = bool_at(block, &["enabled"]);
    let own = text_at(block, &["namespace"]);
    let namespace = if own.is_empty() {
        text_at(block, &["components", "namespace"])
    } else {
        own
    };
    if let Some(v2) = bool_at(block, &["v2", "enabled"]) {
        put(spec, &["values", "telemetry", "v2", "enabled"], v2.into());
    }
    for name in feature.components {
        if REMOVED.iter().any(|(removed, _)| removed == name) {
            continue;
        }
        let component = value_at(block, &["components", name]);
        if let (Some(Value::List(items)), Some((_, list, _))) =
            (component, GATEWAYS.iter().find(|(_, list, _)| list == name))
        {
            for (index, item) in items.iter().enumerate() {
                let path = spec_path(&[feature.key, "components", list]).index(index);
                let settings = FeatureSettings {
                    enabled,
                    namespace: &namespace,
                    path,
                };
                let item = settings.apply(item.as_map().cloned().unwrap_or_default(), feature, found);
                append_gateway(spec, list, item);
            }
            continue;
        }
        let is_list = GATEWAYS.iter().any(|(_, list, _)| list == name);
        let is_mentioned = component.is_some() || (enabled.is_some() && !ADDONS.contains(name) && !is_list);
        let is_optional_addon = ADDONS.contains(name) && component.is_none() && enabled != Some(true);
        if !is_mentioned && (is_optional_addon || !ADDONS.contains(name)) {
            continue;
        }
        let path = spec_path(&[feature.key, "components", name]);
        let settings = FeatureSettings {
            enabled,
            namespace: &namespace,
            path,
        };
        let map = component.and_then(Value::as_map).cloned().unwrap_or_default();
        let map = settings.apply(map, feature, found);
        insert_component(spec, name, map, found);
    }
}

/// Settings of a feature that its components inherit.
struct FeatureSettings<'a> {
    enabled: Option<bool>,
    namespace: &'a str,
    path: Path,
}

impl FeatureSettings<'_> {
    fn apply(&self, mut component: Map, feature: &Feature, found: &mut Diagnostics) -> Map {
        let own = component.get("enabled").and_then(Value::as_bool);
        match (self.enabled, own) {
            (Some(false), Some(true)) => {
                let message = format!("is enabled, but its feature {:?} is disabled", feature.key);
                let path = self.path.key("enabled");
                let hint = format!("set spec.{}.enabled to true, or remove this", feature.key);
                found.push(Diagnostic::error(path, message).hint(hint));
            }
            (Some(enabled), None) => {
                component.insert("enabled".into(), enabled.into());
            }
            (Some(_) | None, _) => {}
        }
        if !self.namespace.is_empty() && text_at(&component, &["namespace"]).is_empty() {
            component.insert("namespace".into(), self.namespace.into());
        }
        component
    }
}

/// Inserts a component at its path in `spec`.
fn insert_component(spec: &mut Map, name: &str, component: Map, found: &mut Diagnostics) {
    if let Some((_, list, default)) = GATEWAYS.iter().find(|(key, ..)| *key == name) {
        let mut component = component;
        component
            .entry("name".into())
            .or_insert_with(|| (*default).into());
        append_gateway(spec, list, component);
    } else if ADDONS.contains(&name) {
        insert_merged(spec, &["addonComponents", name], component);
    } else {
        let explicit = bool_at(spec, &["components", name, "enabled"]);
        let feature = component.get("enabled").and_then(Value::as_bool);
        if let (Some(true), Some(false)) = (explicit, feature) {
            let message = "is enabled, but a feature it belongs to is disabled";
            let path = spec_path(&["components", name, "enabled"]);
            found.push(Diagnostic::error(path, message).hint("enable the feature, or remove this"));
        }
        insert_merged(spec, &["components", name], component);
    }
}

fn append_gateway(spec: &mut Map, list: &str, gateway: Map) {
    let keys = ["components", list];
    let mut items = value_at(spec, &keys)
        .and_then(Value::as_list)
        .unwrap_or_default()
        .to_vec();
    let name = gateway.get("name").cloned();
    let same = items.iter_mut().find(|item| item.get("name") == name.as_ref());
    match same {
        // Settings in `spec.components` take precedence over those of a feature.
        Some(Value::Map(existing)) => {
            let mut merged = gateway;
            merge_maps(&mut merged, std::mem::take(existing));
            *existing = merged;
        }
        _ => items.push(Value::Map(gateway)),
    }
    put(spec, &keys, Value::List(items));
}

/// Inserts a component. Existing settings at the path take precedence.
fn insert_merged(spec: &mut Map, keys: &[&str], component: Map) {
    let mut merged = component;
    if let Some(existing) = value_at(spec, keys).and_then(Value::as_map) {
        merge_maps(&mut merged, existing.clone());
    }
    put(spec, keys, Value::Map(merged));
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, parse_map, to_json};

    use super::*;

    /// Translates `spec` and compares the result and the messages.
    fn check(spec: &str, expected: &str, messages: &[&str]) {
        let spec = parse_map(spec, &Budget::default()).unwrap();
        let mut operator = Map::from([("spec".to_owned(), Value::Map(spec))]);
        let found = translate_features(&mut operator);
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
            r#"{"components":{"cni":{"enabled":true}}}"#,
            &[
                "error: spec.thirdParty.components.cni.enabled: is enabled, but its feature \"thirdParty\" is disabled\n  hint: set spec.thirdParty.enabled to true, or remove this",
            ],
        );
        check(
            "{security: {enabled: false}, components: {pilot: {enabled: true}}}",
            r#"{"components":{"pilot":{"enabled":true}}}"#,
            &[
                "error: spec.components.pilot.enabled: is enabled, but a feature it belongs to is disabled\n  hint: enable the feature, or remove this",
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
}
