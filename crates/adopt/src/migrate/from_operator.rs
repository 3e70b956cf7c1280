//! Converts a rendered `IstioOperator` to custom resources and values of gateways. Pure.

use std::sync::Arc;

use mainstay_api::{Values, names};
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::installer::text;
use mainstay_manifest::{ComponentName, ComponentObjects, Rendered};
use serde_json::Value;

use crate::AdoptError;
use crate::found::{Component, ComponentKind, Installer, shared_values};
use crate::migrate::comments::KeyPath;
use crate::migrate::compare::index_objects;
use crate::migrate::draft::leaves;
use crate::migrate::resources::{OperatorCharts, Resources};
use crate::migrate::{Comments, GATEWAY_SETTINGS, GatewayValues, Migration, is_empty, revision_tags};

/// Converts a rendered `IstioOperator`. `version` is its Istio version, `files` the texts from which it
/// was read.
pub fn to_resources(
    rendered: &Rendered,
    catalog: &Arc<Catalog>,
    version: &Version,
    files: &[String],
) -> Result<Migration, AdoptError> {
    let charts = OperatorCharts::new(catalog);
    let converter = Converter {
        operator: rendered.configuration.clone().into(),
        user: rendered.user_configuration.clone().into(),
        resources: Resources {
            charts: &charts,
            catalog,
            version,
        },
    };
    let mut migration = Migration::default();
    for component in &rendered.components {
        converter.convert(component, &mut migration)?;
    }
    converter.report_overlays(&mut migration);
    for file in files {
        move_comments(&Comments::read(file), &mut migration);
    }
    Ok(migration)
}

/// Fields of `spec`, and their paths in resources.
const PLACES: &[(&str, &[&str])] = &[
    ("profile", &["spec", "profile"]),
    ("hub", &["spec", "values", "global", "hub"]),
    ("tag", &["spec", "values", "global", "tag"]),
    ("meshConfig", &["spec", "values", "meshConfig"]),
    ("values", &["spec", "values"]),
    ("unvalidatedValues", &["spec", "values"]),
];

/// Adds each comment to the first resource that contains its entry.
fn move_comments(comments: &Comments, migration: &mut Migration) {
    let mut rest = comments.clone();
    for (resource, own) in migration.resources.iter().zip(&mut migration.comments) {
        let new_path = |path: &[String]| resource_path(path).filter(|place| is_present(resource, place));
        let (taken, left) = rest.split(new_path);
        own.extend(taken);
        rest = left;
    }
}

fn resource_path(path: &[String]) -> Option<KeyPath> {
    let (spec, rest) = path.split_first()?;
    let (field, rest) = rest.split_first()?;
    let (_, place) = PLACES
        .iter()
        .find(|(known, _)| spec == "spec" && known == field)?;
    let place = place.iter().map(|key| (*key).to_owned());
    Some(place.chain(rest.iter().cloned()).collect())
}

/// Whether a document contains an entry.
pub(super) fn is_present(document: &Value, path: &[String]) -> bool {
    let step = |value: &'_ Value, key: &String| -> Option<Value> {
        match value {
            Value::Array(items) => {
                let index = key.trim_start_matches('[').trim_end_matches(']');
                items.get(index.parse::<usize>().ok()?).cloned()
            }
            _ => value.get(key).cloned(),
        }
    };
    let mut value = document.clone();
    path.iter().all(|key| match step(&value, key) {
        Some(next) => {
            value = next;
            true
        }
        None => false,
    })
}

struct Converter<'a> {
    operator: Value,
    user: Value,
    resources: Resources<'a>,
}

impl Converter<'_> {
    fn convert(&self, component: &ComponentObjects, migration: &mut Migration) -> Result<(), AdoptError> {
        let kind = match component.component {
            ComponentName::Pilot => ComponentKind::Istiod,
            ComponentName::Cni => ComponentKind::Cni,
            ComponentName::Ztunnel => ComponentKind::Ztunnel,
            ComponentName::Base => {
                migration.drop_field(
                    "components.base",
                    "run `mainstay crds install` for the definitions",
                );
                return Ok(());
            }
            ComponentName::Addons => {
                migration.drop_field("addonComponents", "add-ons are not part of the operator");
                return Ok(());
            }
            _ => {
                self.add_gateways(component, migration);
                return Ok(());
            }
        };
        let rendered = component.objects.iter();
        let before = index_objects(rendered.map(|object| Value::from(object.0.clone())));
        self.resources.add(&self.component(kind), &before, migration)
    }

    /// Returns the component in the form in which it would be detected in a cluster.
    fn component(&self, kind: ComponentKind) -> Component {
        let operator = &self.operator;
        let values = operator.pointer("/spec/values").and_then(Value::as_object);
        let values = values.cloned().unwrap_or_default();
        let namespace = |key: &str| match text(operator, &format!("/spec/components/{key}/namespace")) {
            "" => text(operator, "/spec/values/global/istioNamespace"),
            namespace => namespace,
        };
        let (namespace, values) = match kind {
            ComponentKind::Cni => (namespace("cni"), shared_values(&values, kind)),
            ComponentKind::Ztunnel => (namespace("ztunnel"), shared_values(&values, kind)),
            _ => (namespace("pilot"), values),
        };
        let revision = match text(operator, "/spec/values/revision") {
            "" => names::DEFAULT_REVISION,
            revision => revision,
        };
        let tags = match kind {
            ComponentKind::Istiod => revision_tags(&values),
            _ => Vec::new(),
        };
        Component {
            kind,
            namespace: namespace.to_owned(),
            workload: String::new(),
            revision: revision.to_owned(),
            versions: Vec::new(),
            installer: Installer::Unknown,
            values,
            values_from: String::new(),
            tags,
            instance: String::new(),
        }
    }

    /// Converts gateways to values of the chart `gateway`, and reports the settings that cannot be
    /// converted.
    fn add_gateways(&self, component: &ComponentObjects, migration: &mut Migration) {
        let key = if component.component == ComponentName::IngressGateways {
            "ingressGateways"
        } else {
            "egressGateways"
        };
        let blocks = self.operator.pointer(&format!("/spec/components/{key}"));
        let blocks = blocks.and_then(Value::as_array).into_iter().flatten();
        for block in blocks.filter(|block| block.get("enabled") != Some(&Value::Bool(false))) {
            let release = text(block, "/name").to_owned();
            let namespace = match text(block, "/namespace") {
                "" => text(&self.operator, "/spec/values/global/istioNamespace"),
                namespace => namespace,
            };
            migration.gateways.push(GatewayValues {
                values: gateway_values(block),
                namespace: namespace.to_owned(),
                release: release.clone(),
            });
            migration.drop_field(
                format!("components.{key}[name:{release}]"),
                "no resource manages gateways; install the chart gateway with the values, then move the traffic: \
                 selectors of a Deployment cannot change",
            );
            for path in unknown_settings(block) {
                migration.drop_field(
                    format!("components.{key}[name:{release}].{path}"),
                    "the chart gateway has no such value",
                );
            }
        }
        self.report_gateway_values(key, migration);
    }

    /// Reports the values of the charts with which an `IstioOperator` renders gateways.
    fn report_gateway_values(&self, key: &str, migration: &mut Migration) {
        let name = match key {
            "ingressGateways" => "istio-ingressgateway",
            _ => "istio-egressgateway",
        };
        let own = self.user.pointer(&format!("/spec/values/gateways/{name}"));
        for (path, _) in own.and_then(Value::as_object).map(leaves).unwrap_or_default() {
            migration.drop_field(
                format!("values.gateways.{name}.{}", path.join(".")),
                "a value of another chart; set the value of the chart gateway that has the same effect",
            );
        }
    }

    fn report_overlays(&self, migration: &mut Migration) {
        for key in ["pilot", "cni", "ztunnel", "base"] {
            let overlays = self
                .operator
                .pointer(&format!("/spec/components/{key}/k8s/overlays"));
            if overlays
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
            {
                migration.drop_field(
                    format!("components.{key}.k8s.overlays"),
                    "resources have no overlays; the differences show their effect",
                );
            }
        }
    }
}

fn gateway_values(block: &Value) -> Values {
    let mut values = Values::new();
    for (setting, place) in GATEWAY_SETTINGS {
        if let Some(value) = block.pointer(setting).filter(|value| !is_empty(value)) {
            let keys: Vec<&str> = place.split('/').skip(1).collect();
            crate::plan::put(&mut values, &keys, value.clone());
        }
    }
    values
}

/// Returns the settings of a gateway that the chart `gateway` does not have.
fn unknown_settings(block: &Value) -> Vec<String> {
    let Some(block) = block.as_object() else {
        return Vec::new();
    };
    let is_known = |path: &str| {
        let mut known = GATEWAY_SETTINGS.iter().map(|(setting, _)| *setting);
        matches!(path, "/name" | "/enabled" | "/namespace")
            || known.any(|setting| path == setting || path.starts_with(&format!("{setting}/")))
    };
    let set = leaves(block).into_iter().filter(|(_, value)| !is_empty(value));
    let unknown = set.filter(|(path, _)| !is_known(&format!("/{}", path.join("/"))));
    unknown.map(|(path, _)| path.join(".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_of_a_gateway_become_values() {
        let block = json!({
            "name": "istio-ingressgateway",
            "label": {"istio": "ingress"},
            "k8s": {"service": {"type": "NodePort"}, "hpaSpec": {"minReplicas": 2}, "tolerations": []},
        });
        let expected = json!({
            "labels": {"istio": "ingress"},
            "service": {"type": "NodePort"},
            "autoscaling": {"minReplicas": 2},
        });
        assert_eq!(json!(gateway_values(&block)), expected);
    }

    #[test]
    fn settings_without_a_value_are_returned() {
        let block = json!({"name": "g", "k8s": {"strategy": {"type": "Recreate"}, "resources": {"limits": {"cpu": 1}}}});
        assert_eq!(unknown_settings(&block), ["k8s.strategy.type"]);
    }
}
