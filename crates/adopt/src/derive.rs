//! Derives custom resources from the values of a chart. Pure.

use mainstay_api::{
    CniSpec, Istio, IstioCni, IstioRevisionTag, IstioSpec, ObjectMeta, TagSpec, TargetReference,
    UpdateStrategy, Values, ZTunnel, ZTunnelSpec, names,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::found::{Component, ComponentKind};

/// A value that the resource does not contain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Path of the value.
    pub path: String,
    /// Reason for dropping the value.
    pub reason: String,
}

/// The resources of one component.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// A control plane with its tags.
    Istio(Box<Istio>, Vec<IstioRevisionTag>),
    /// The CNI plugin.
    Cni(Box<IstioCni>),
    /// The node proxy.
    ZTunnel(Box<ZTunnel>),
}

impl Derived {
    /// Returns the user's values.
    pub(crate) fn values_mut(&mut self) -> &mut Values {
        match self {
            Self::Istio(istio, _) => istio.spec.values.get_or_insert_default(),
            Self::Cni(cni) => cni.spec.values.get_or_insert_default(),
            Self::ZTunnel(ztunnel) => ztunnel.spec.values.get_or_insert_default(),
        }
    }

    /// Returns the resources as JSON documents without `status`.
    #[must_use]
    pub fn documents(&self) -> Vec<Value> {
        let mut documents = match self {
            Self::Istio(istio, tags) => {
                let tags = tags.iter().map(serde_json::to_value);
                [serde_json::to_value(istio)].into_iter().chain(tags).collect()
            }
            Self::Cni(cni) => vec![serde_json::to_value(cni)],
            Self::ZTunnel(ztunnel) => vec![serde_json::to_value(ztunnel)],
        };
        documents
            .drain(..)
            .filter_map(Result::ok)
            .map(without_status)
            .collect()
    }
}

fn without_status(mut document: Value) -> Value {
    if let Some(map) = document.as_object_mut() {
        map.remove("status");
    }
    document
}

/// Result of deriving the resources of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Derivation {
    /// Derived resources.
    pub derived: Derived,
    /// Values that the resources do not contain.
    pub dropped: Vec<Dropped>,
}

/// Profiles that an `Istio` may refer to.
const PROFILES: [&str; 9] = [
    "ambient",
    "default",
    "demo",
    "empty",
    "openshift",
    "openshift-ambient",
    "preview",
    "remote",
    "stable",
];

/// Keys in the values of an `Istio`.
const ISTIO_KEYS: [&str; 10] = [
    "base",
    "compatibilityVersion",
    "experimental",
    "gatewayClasses",
    "global",
    "istiodRemote",
    "meshConfig",
    "pilot",
    "sidecarInjectorWebhook",
    "telemetry",
];

/// Keys that a field of the resource replaces or that the operator sets, with the reason for dropping
/// them.
const REPLACED: &[(&str, &str)] = &[
    ("revision", "the name of the Istio is the revision"),
    ("revisionTags", "each tag becomes an IstioRevisionTag"),
    ("defaultRevision", "the operator sets it"),
    ("ownerName", "a label of istioctl"),
];

/// Keys of other charts. istioctl passes the same values to all charts.
const OTHER_CHARTS: &[&str] = &[
    "cni",
    "istio_cni",
    "gateways",
    "ztunnel",
    "pilot",
    "base",
    "istiodRemote",
];

/// Derives the resources of a component. `version` has the form `v1.29.1`. Returns `None` for gateways,
/// which have no resource.
#[must_use]
pub fn derive(component: &Component, version: &str) -> Option<Derivation> {
    let mut dropped = Vec::new();
    let mut values = component.values.clone();
    let profile = take_profile(&mut values);
    let derived = match component.kind {
        ComponentKind::Istiod => {
            let values = istio_values(values, &mut dropped);
            let spec = IstioSpec {
                version: version.to_owned(),
                namespace: component.namespace.clone(),
                update_strategy: Some(UpdateStrategy::default()),
                profile,
                values: non_empty(values),
            };
            let istio = Istio {
                metadata: metadata_with_name(&component.revision),
                spec,
                ..Istio::default()
            };
            Derived::Istio(Box::new(istio), revision_tags(component))
        }
        ComponentKind::Cni => Derived::Cni(Box::new(IstioCni {
            metadata: metadata_with_name(names::SINGLETON),
            spec: CniSpec {
                version: version.to_owned(),
                namespace: component.namespace.clone(),
                profile,
                values: non_empty(node_values(values, "cni", &mut dropped)),
            },
            ..IstioCni::default()
        })),
        ComponentKind::Ztunnel => Derived::ZTunnel(Box::new(ZTunnel {
            metadata: metadata_with_name(names::SINGLETON),
            spec: ZTunnelSpec {
                version: version.to_owned(),
                namespace: component.namespace.clone(),
                values: non_empty(node_values(values, "ztunnel", &mut dropped)),
                ..ZTunnelSpec::default()
            },
            ..ZTunnel::default()
        })),
        ComponentKind::Gateway => return None,
    };
    Some(Derivation { derived, dropped })
}

fn metadata_with_name(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.to_owned(),
        ..ObjectMeta::default()
    }
}

fn non_empty(values: Values) -> Option<Values> {
    (!values.is_empty()).then_some(values)
}

fn revision_tags(component: &Component) -> Vec<IstioRevisionTag> {
    let tags = component.tags.iter().map(|tag| IstioRevisionTag {
        metadata: metadata_with_name(tag),
        spec: TagSpec {
            target_ref: TargetReference {
                kind: "Istio".to_owned(),
                name: component.revision.clone(),
            },
        },
        ..IstioRevisionTag::default()
    });
    tags.collect()
}

/// Removes and returns the profile if an `Istio` has a profile with this name; otherwise returns an empty
/// string.
fn take_profile(values: &mut Values) -> String {
    let profile = values
        .get("profile")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if PROFILES.contains(&profile.as_str()) {
        values.remove("profile");
        return profile;
    }
    String::new()
}

/// Returns the values of an `Istio`. Settings of istiod move below `pilot`: the chart reads them at the
/// top level or below `pilot`, which takes precedence.
fn istio_values(values: Values, dropped: &mut Vec<Dropped>) -> Values {
    let (mut kept, mut pilot) = (Values::new(), Values::new());
    let mut own = Values::new();
    for (key, value) in values {
        if key == "pilot" {
            own = value.as_object().cloned().unwrap_or_default();
        } else if let Some((_, reason)) = REPLACED.iter().find(|(name, _)| *name == key) {
            drop_value(dropped, &key, reason);
        } else if key == "profile" || ISTIO_KEYS.contains(&key.as_str()) {
            kept.insert(key, value);
        } else if OTHER_CHARTS.contains(&key.as_str()) {
            drop_value(dropped, &key, "a value of another component");
        } else {
            pilot.insert(key, value);
        }
    }
    merge(&mut pilot, own);
    convert_to_text(&mut pilot, "env");
    if !pilot.is_empty() {
        kept.insert("pilot".to_owned(), Value::Object(pilot));
    }
    kept
}

/// Returns the values of a node agent. Its settings move below `root`: its chart reads them at the top
/// level or below `root`.
fn node_values(values: Values, root: &str, dropped: &mut Vec<Dropped>) -> Values {
    let (mut kept, mut top, mut own) = (Values::new(), Values::new(), Values::new());
    for (key, value) in values {
        if key == root {
            own = value.as_object().cloned().unwrap_or_default();
        } else if key == "global" {
            kept.insert(key, value);
        } else if key == "profile" || key == "ownerName" {
            drop_value(dropped, &key, "the operator sets it");
        } else if OTHER_CHARTS.contains(&key.as_str()) {
            drop_value(dropped, &key, "a value of another component");
        } else {
            top.insert(key, value);
        }
    }
    merge(&mut top, own);
    convert_to_text(&mut top, "env");
    if !top.is_empty() {
        kept.insert(root.to_owned(), Value::Object(top));
    }
    kept
}

fn drop_value(dropped: &mut Vec<Dropped>, path: &str, reason: &str) {
    dropped.push(Dropped {
        path: path.to_owned(),
        reason: reason.to_owned(),
    });
}

/// Converts the scalars of a map to text: the custom resource definitions require text where charts
/// accept any scalar.
fn convert_to_text(values: &mut Values, key: &str) {
    let Some(Value::Object(map)) = values.get_mut(key) else {
        return;
    };
    for value in map.values_mut() {
        if let Value::Bool(_) | Value::Number(_) = value {
            *value = Value::String(value.to_string());
        }
    }
}

/// Merges maps recursively. Other values are replaced.
pub(crate) fn merge(base: &mut Values, over: Values) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Removes the values that equal the chart's defaults, and maps that become empty.
pub(crate) fn without_defaults(values: &mut Values, defaults: &Map<String, Value>) {
    values.retain(|key, value| match (value, defaults.get(key)) {
        (Value::Object(map), Some(Value::Object(defaults))) => {
            without_defaults(map, defaults);
            !map.is_empty()
        }
        (Value::Object(map), None) => !map.is_empty(),
        (value, Some(default)) => *value != *default,
        (_, None) => true,
    });
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "values of `json!` are written in place"
)]
mod tests {
    use super::*;
    use crate::found::Installer;
    use serde_json::json;

    fn component(kind: ComponentKind, values: Value) -> Component {
        Component {
            kind,
            namespace: "istio-system".to_owned(),
            workload: "istiod".to_owned(),
            revision: "default".to_owned(),
            versions: vec!["1.29.1".to_owned()],
            installer: Installer::Unknown,
            values: values.as_object().cloned().unwrap_or_default(),
            values_from: String::new(),
            tags: vec!["prod".to_owned()],
            instance: "istiod".to_owned(),
        }
    }

    fn check(kind: ComponentKind, values: Value, expected: Value, dropped: &[&str]) {
        let derivation = derive(&component(kind, values), "v1.29.1").unwrap();
        let spec = &derivation.derived.documents()[0]["spec"];
        let mut found = json!({"values": spec["values"], "profile": spec["profile"]});
        found.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(found, expected);
        let names: Vec<&str> = derivation.dropped.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(names, dropped);
    }

    #[test]
    fn values_of_istiod_move_below_pilot() {
        check(
            ComponentKind::Istiod,
            json!({"autoscaleEnabled": false, "pilot": {"env": {"A": 1, "B": true}}, "revision": "x", "profile": "ambient"}),
            json!({
                "profile": "ambient",
                "values": {"pilot": {"autoscaleEnabled": false, "env": {"A": "1", "B": "true"}}},
            }),
            &["revision"],
        );
    }

    #[test]
    fn values_of_other_charts_are_dropped() {
        check(
            ComponentKind::Istiod,
            json!({"gateways": {}, "ztunnel": {}, "global": {"network": "a"}}),
            json!({"values": {"global": {"network": "a"}}}),
            &["gateways", "ztunnel"],
        );
    }

    #[test]
    fn values_of_the_nodes_move_below_their_name() {
        check(
            ComponentKind::Cni,
            json!({"cniBinDir": "/opt", "cni": {"chained": false}, "profile": "ambient"}),
            json!({"profile": "ambient", "values": {"cni": {"cniBinDir": "/opt", "chained": false}}}),
            &[],
        );
        check(
            ComponentKind::Ztunnel,
            json!({"logLevel": "debug"}),
            json!({"values": {"ztunnel": {"logLevel": "debug"}}}),
            &[],
        );
    }

    #[test]
    fn tags_refer_to_the_istio() {
        let derivation = derive(&component(ComponentKind::Istiod, json!({})), "v1.29.1").unwrap();
        let tag = &derivation.derived.documents()[1];
        assert_eq!(
            tag["spec"]["targetRef"],
            json!({"kind": "Istio", "name": "default"})
        );
    }

    #[test]
    fn defaults_are_removed() {
        let mut values = json!({"a": {"b": 1, "c": 2}, "d": {"e": 1}})
            .as_object()
            .cloned()
            .unwrap();
        let defaults = json!({"a": {"b": 1, "c": 3}, "d": {"e": 1}})
            .as_object()
            .cloned()
            .unwrap();
        without_defaults(&mut values, &defaults);
        assert_eq!(json!(values), json!({"a": {"c": 2}}));
    }
}
