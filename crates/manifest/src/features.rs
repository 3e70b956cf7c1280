//! The feature form of the API: feature blocks group components and set enablement and namespaces on three
//! levels. They are translated to `spec.components` before layers are merged.

mod enablement;

use mainstay_chart::merge_maps;
use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::{put, text_at, value_at};
use crate::path::Path;

pub(crate) use enablement::DisabledFeatures;

/// A feature and its components.
#[derive(Debug)]
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

/// Replaces the feature blocks of a user's configuration by components, add-ons and values. Returns the
/// disabled features, the components of which must also be disabled in the profile.
pub(crate) fn translate_features(operator: &mut Map) -> (DisabledFeatures, Diagnostics) {
    let mut found = Diagnostics::default();
    let Some(spec) = operator.get_mut("spec").and_then(Value::as_map_mut) else {
        return (DisabledFeatures::default(), found);
    };
    let disabled = DisabledFeatures::from_spec(spec);
    set_global_namespace(spec);
    check_removed_components(spec, &mut found);
    check_pilot_conflict(spec, &mut found);
    disabled.report(spec, &mut found);
    for feature in FEATURES {
        let Some(Value::Map(block)) = spec.get(feature.key).cloned() else {
            continue;
        };
        translate_feature(spec, feature, &block);
        // If there are errors in the block, it is not removed, so that strict decoding reports unknown
        // fields, too.
        spec.remove(feature.key);
    }
    disabled.disable_components(operator);
    (disabled, found)
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

fn translate_feature(spec: &mut Map, feature: &Feature, block: &Map) {
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
    let settings = FeatureSettings {
        enabled,
        namespace: &namespace,
    };
    for name in feature.components {
        if REMOVED.iter().any(|(removed, _)| removed == name) {
            continue;
        }
        let component = value_at(block, &["components", name]);
        if let (Some(Value::List(items)), Some((_, list, _))) =
            (component, GATEWAYS.iter().find(|(_, list, _)| list == name))
        {
            for item in items {
                let item = settings.apply(item.as_map().cloned().unwrap_or_default());
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
        let map = component.and_then(Value::as_map).cloned().unwrap_or_default();
        insert_component(spec, name, settings.apply(map));
    }
}

/// Settings of a feature that its components inherit.
struct FeatureSettings<'a> {
    enabled: Option<bool>,
    namespace: &'a str,
}

impl FeatureSettings<'_> {
    fn apply(&self, mut component: Map) -> Map {
        if let Some(enabled) = self.enabled {
            component
                .entry("enabled".into())
                .or_insert_with(|| enabled.into());
        }
        if !self.namespace.is_empty() && text_at(&component, &["namespace"]).is_empty() {
            component.insert("namespace".into(), self.namespace.into());
        }
        component
    }
}

/// Inserts a component at its path in `spec`.
fn insert_component(spec: &mut Map, name: &str, component: Map) {
    if let Some((_, list, default)) = GATEWAYS.iter().find(|(key, ..)| *key == name) {
        let mut component = component;
        component
            .entry("name".into())
            .or_insert_with(|| (*default).into());
        append_gateway(spec, list, component);
    } else if ADDONS.contains(&name) {
        insert_merged(spec, &["addonComponents", name], component);
    } else {
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
mod tests;
