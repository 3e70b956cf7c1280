//! The `spec` of an `IstioOperator` that contains the values of several charts. Pure.

use mainstay_api::Values;
use mainstay_cluster::installer::text;
use serde_json::{Map, Value, json};

use crate::derive::Dropped;
use crate::migrate::comments::KeyPath;
use crate::migrate::helm_source::{HelmChart, HelmSource};
use crate::migrate::{GATEWAY_SETTINGS, is_empty};
use crate::plan::put;

/// Top-level values that all charts of an `IstioOperator` read at the same path.
const SHARED: [&str; 15] = [
    "base",
    "compatibilityVersion",
    "defaultRevision",
    "experimental",
    "gatewayClasses",
    "global",
    "istiodRemote",
    "meshConfig",
    "ownerName",
    "pilot",
    "profile",
    "revision",
    "revisionTags",
    "sidecarInjectorWebhook",
    "telemetry",
];

/// Values that are set by fields of `spec`: path of the value, path of the field.
const FIELDS: &[(&[&str], &[&str])] = &[
    (&["global", "hub"], &["hub"]),
    (&["global", "tag"], &["tag"]),
    (&["revision"], &["revision"]),
    (&["compatibilityVersion"], &["compatibilityVersion"]),
    (&["meshConfig"], &["meshConfig"]),
    (&["platform"], &["values", "global", "platform"]),
];

/// Returns the key of a chart's component below `spec.components`, and the root of its values.
pub(super) fn component_and_root(chart: HelmChart) -> (&'static str, &'static str) {
    match chart {
        HelmChart::Base => ("base", "base"),
        HelmChart::Istiod => ("pilot", "pilot"),
        HelmChart::Cni => ("cni", "cni"),
        HelmChart::Ztunnel => ("ztunnel", "ztunnel"),
        HelmChart::Gateway => ("ingressGateways", ""),
    }
}

/// Returns the path below `spec` that sets a chart value.
pub(super) fn spec_path(chart: HelmChart, path: &[String]) -> KeyPath {
    let Some(first) = path.first() else {
        return Vec::new();
    };
    let (_, root) = component_and_root(chart);
    let keys = |keys: &[&str]| -> KeyPath { keys.iter().map(|key| (*key).to_owned()).collect() };
    let mut field = FIELDS.iter().filter(|(value, _)| {
        path.len() >= value.len() && path.iter().zip(*value).all(|(have, want)| have == want)
    });
    if let Some((value, field)) = field.next()
        && !(chart == HelmChart::Ztunnel && OWN_OF_ZTUNNEL.contains(&first.as_str()))
    {
        let rest = path.get(value.len()..).unwrap_or_default();
        return keys(field).into_iter().chain(rest.iter().cloned()).collect();
    }
    let is_shared = SHARED.contains(&first.as_str())
        && !(chart == HelmChart::Ztunnel && OWN_OF_ZTUNNEL.contains(&first.as_str()));
    let top: &[&str] = if is_shared || first == root {
        &["values"]
    } else {
        &["values", root]
    };
    keys(top).into_iter().chain(path.iter().cloned()).collect()
}

/// Values that the chart of ztunnel also reads below its own root, with precedence.
const OWN_OF_ZTUNNEL: [&str; 2] = ["profile", "revision"];

/// A `spec` that is being built.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The fields.
    pub(super) spec: Map<String, Value>,
    /// Values that cannot be converted.
    pub(super) not_carried: Vec<Dropped>,
}

impl Draft {
    /// Creates a draft with the values of all sources. Those of the control plane take precedence.
    pub(super) fn from_sources(sources: &[&HelmSource]) -> Self {
        let mut draft = Self::default();
        let planes = sources.iter().filter(|source| source.chart == HelmChart::Istiod);
        let others = sources.iter().filter(|source| source.chart != HelmChart::Istiod);
        for source in planes.chain(others) {
            match source.chart {
                HelmChart::Gateway => draft.add_gateway(source),
                _ => draft.add(source),
            }
        }
        draft.add_release_values(sources);
        draft
    }

    fn add(&mut self, source: &HelmSource) {
        for (path, value) in leaves(&source.values) {
            let place = spec_path(source.chart, &path);
            let keys: Vec<&str> = place.iter().map(String::as_str).collect();
            match get(&self.spec, &keys) {
                Some(known) if *known != value => self.conflict(source, &path, value),
                _ => put(&mut self.spec, &keys, value),
            }
        }
    }

    /// Handles a shared value that two charts set differently. Only the hub and tag can be set per
    /// component; other values are dropped.
    fn conflict(&mut self, source: &HelmSource, path: &[String], value: Value) {
        let (component, _) = component_and_root(source.chart);
        match path {
            [global, key] if global == "global" && matches!(key.as_str(), "hub" | "tag") => {
                put(&mut self.spec, &["components", component, key], value);
            }
            _ => self.drop_value(
                source,
                path,
                "another chart sets it differently, and all components of an IstioOperator share it",
            ),
        }
    }

    fn drop_value(&mut self, source: &HelmSource, path: &[String], reason: &str) {
        self.not_carried.push(Dropped {
            path: format!("{}: {}", source.describe(), path.join(".")),
            reason: reason.to_owned(),
        });
    }

    /// Adds a gateway component with the settings that the chart `gateway` and `IstioOperator` have in
    /// common.
    fn add_gateway(&mut self, source: &HelmSource) {
        let name = match text(&Value::Object(source.values.clone()), "/name") {
            "" => source.release.clone(),
            name => name.to_owned(),
        };
        let label = json!({"app": name, "istio": name.strip_prefix("istio-").unwrap_or(&name)});
        let mut block = json!({
            "name": name,
            "enabled": true,
            "namespace": source.namespace,
            "label": label,
        });
        let mut rest = source.values.clone();
        for (setting, value) in GATEWAY_SETTINGS
            .iter()
            .filter(|(setting, _)| *setting != "/label")
        {
            let keys: Vec<&str> = value.split('/').skip(1).collect();
            let Some(found) = remove(&mut rest, &keys) else {
                continue;
            };
            let keys: Vec<&str> = setting.split('/').skip(1).collect();
            if let Value::Object(block) = &mut block {
                put(block, &keys, found);
            }
        }
        for (path, _) in leaves(&rest).into_iter().filter(|(path, _)| path != &["name"]) {
            self.drop_value(source, &path, "a gateway of an IstioOperator has no such setting");
        }
        let list = self.spec.entry("components").or_insert_with(|| json!({}));
        if let Value::Object(components) = list
            && let Value::Array(gateways) = components.entry("ingressGateways").or_insert_with(|| json!([]))
        {
            gateways.push(block);
        }
    }

    /// Sets values that Helm derives from the release, and values that the rendering of `IstioOperator`
    /// would otherwise set.
    fn add_release_values(&mut self, sources: &[&HelmSource]) {
        let find = |chart: HelmChart| sources.iter().find(|source| source.chart == chart);
        if let Some(plane) = find(HelmChart::Istiod) {
            self.set_default(
                &["values", "global", "istioNamespace"],
                plane.namespace.as_str().into(),
            );
        }
        for chart in [HelmChart::Cni, HelmChart::Ztunnel] {
            if let Some(source) = find(chart).filter(|source| source.namespace != self.namespace()) {
                let (component, _) = component_and_root(chart);
                put(
                    &mut self.spec,
                    &["components", component, "namespace"],
                    source.namespace.as_str().into(),
                );
            }
        }
        if let Some(ztunnel) = find(HelmChart::Ztunnel) {
            self.set_default(
                &["values", "ztunnel", "resourceName"],
                ztunnel.release.as_str().into(),
            );
            self.separate_from_shared("profile");
            self.separate_from_shared("revision");
        }
        if find(HelmChart::Cni).is_some() {
            self.set_default(&["values", "pilot", "cni", "enabled"], false.into());
        }
    }

    /// Sets an own value of ztunnel if it differs from the shared one. ztunnel reads the shared value
    /// unless it has its own, so a value that Helm does not set must be set to an empty string.
    fn separate_from_shared(&mut self, key: &str) {
        let shared = match key {
            "revision" => self.spec.get("revision"),
            _ => get(&self.spec, &["values", key]),
        };
        let shared = shared.cloned().unwrap_or_else(|| "".into());
        let own = ["values", "ztunnel", key];
        self.set_default(&own, "".into());
        if get(&self.spec, &own) == Some(&shared) {
            remove(&mut self.spec, &own);
        }
    }

    fn set_default(&mut self, keys: &[&str], value: Value) {
        if get(&self.spec, keys).is_none() {
            put(&mut self.spec, keys, value);
        }
    }

    /// Returns the value profile of the charts, `values.profile`.
    pub(super) fn profile(&self) -> String {
        let found = get(&self.spec, &["values", "profile"]).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    }

    /// Returns the namespace of the control plane.
    pub(super) fn namespace(&self) -> String {
        let keys = ["values", "global", "istioNamespace"];
        let found = get(&self.spec, &keys).and_then(Value::as_str);
        found.unwrap_or(mainstay_api::names::ISTIO_SYSTEM).to_owned()
    }
}

/// Returns all values with their paths. Empty maps are values too.
pub(super) fn leaves(values: &Values) -> Vec<(KeyPath, Value)> {
    let mut found = Vec::new();
    let mut open: Vec<(KeyPath, &Value)> = values
        .iter()
        .map(|(key, value)| (vec![key.clone()], value))
        .collect();
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(map) if !map.is_empty() => open.extend(map.iter().map(|(key, value)| {
                let mut path = path.clone();
                path.push(key.clone());
                (path, value)
            })),
            _ => found.push((path, value.clone())),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the value at a path of keys.
pub(super) fn get<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter()
        .try_fold(map.get(*first)?, |value, key| value.get(key))
}

/// Removes and returns the value at a path of keys. Also removes maps that become empty.
pub(super) fn remove(map: &mut Map<String, Value>, keys: &[&str]) -> Option<Value> {
    let (first, rest) = keys.split_first()?;
    if rest.is_empty() {
        return map.remove(*first);
    }
    let inner = map.get_mut(*first)?.as_object_mut()?;
    let found = remove(inner, rest);
    if found.is_some() && inner.is_empty() {
        map.remove(*first);
    }
    found.filter(|found| !is_empty(found) || found.is_array())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_catalog::Version;

    fn source(chart: HelmChart, values: &Value) -> HelmSource {
        let version: Version = "1.29.1".parse().unwrap();
        HelmSource::with_values(chart, &version, values.as_object().cloned().unwrap())
    }

    #[track_caller]
    fn check(sources: &[HelmSource], expected: &Value, not_carried: &[&str]) {
        let sources: Vec<&HelmSource> = sources.iter().collect();
        let draft = Draft::from_sources(&sources);
        assert_eq!(json!(draft.spec), *expected);
        let found: Vec<&str> = draft.not_carried.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(found, not_carried);
    }

    #[test]
    fn values_move_to_fields_and_roots() {
        let istiod = source(
            HelmChart::Istiod,
            &json!({
                "autoscaleMin": 2,
                "pilot": {"env": {"A": "b"}},
                "global": {"hub": "h", "logging": {"level": "all:debug"}},
                "meshConfig": {"accessLogFile": "/dev/stdout"},
                "revision": "canary",
            }),
        );
        let expected = json!({
            "hub": "h",
            "meshConfig": {"accessLogFile": "/dev/stdout"},
            "revision": "canary",
            "values": {
                "global": {"istioNamespace": "istio-system", "logging": {"level": "all:debug"}},
                "pilot": {"autoscaleMin": 2, "env": {"A": "b"}},
            },
        });
        check(&[istiod], &expected, &[]);
    }

    #[test]
    fn conflicting_values_of_charts() {
        let istiod = source(
            HelmChart::Istiod,
            &json!({"global": {"hub": "a", "variant": "debug"}}),
        );
        let cni = source(
            HelmChart::Cni,
            &json!({"global": {"hub": "b", "variant": "distroless"}}),
        );
        let expected = json!({
            "hub": "a",
            "components": {"cni": {"hub": "b"}},
            "values": {
                "global": {"istioNamespace": "istio-system", "variant": "debug"},
                "pilot": {"cni": {"enabled": false}},
            },
        });
        check(&[istiod, cni], &expected, &["chart cni (cni): global.variant"]);
    }

    #[test]
    fn settings_of_a_gateway_chart_become_a_component() {
        let gateway = source(
            HelmChart::Gateway,
            &json!({"service": {"type": "NodePort"}, "autoscaling": {"enabled": false, "minReplicas": 2}}),
        );
        let expected = json!({"components": {"ingressGateways": [{
            "name": "istio-ingress",
            "enabled": true,
            "namespace": "istio-ingress",
            "label": {"app": "istio-ingress", "istio": "ingress"},
            "k8s": {"service": {"type": "NodePort"}, "hpaSpec": {"minReplicas": 2}},
        }]}});
        check(
            &[gateway],
            &expected,
            &["chart gateway (gateway): autoscaling.enabled"],
        );
    }
}
