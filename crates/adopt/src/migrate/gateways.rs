//! Converts the gateways of an `IstioOperator` to values of the chart `gateway`, and compares the objects
//! that both render. Pure.

use std::error::Error as _;

use mainstay_api::{Values, names};
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::installer::text;
use mainstay_manifest::{ComponentName, ComponentObjects};
use serde_json::{Value, json};

use crate::AdoptError;
use crate::chart_release::ChartRelease;
use crate::found::ComponentKind;
use crate::migrate::compare::{compare, index_objects};
use crate::migrate::draft::leaves;
use crate::migrate::from_operator::index_component;
use crate::migrate::{GATEWAY_SETTINGS, GatewayValues, KUBE_VERSION, Migration, is_empty};
use crate::plan::put;

/// Chart of gateways.
const CHART: &str = "gateway";

/// The gateways of an `IstioOperator`.
pub(super) struct Gateways<'a> {
    /// Merged configuration.
    pub(super) operator: &'a Value,
    /// Configuration without the profile.
    pub(super) user: &'a Value,
    pub(super) catalog: &'a Catalog,
    pub(super) version: &'a Version,
}

/// A list of gateways: its key below `components`, and the name of its default gateway.
struct List {
    key: &'static str,
    default: &'static str,
}

const INGRESS: List = List {
    key: "ingressGateways",
    default: "istio-ingressgateway",
};
const EGRESS: List = List {
    key: "egressGateways",
    default: "istio-egressgateway",
};

impl Gateways<'_> {
    /// Converts the gateways of a component, reports the settings that cannot be converted, and compares the
    /// rendered objects.
    pub(super) fn convert(&self, component: &ComponentObjects, migration: &mut Migration) {
        let list = match component.component {
            ComponentName::EgressGateways => EGRESS,
            _ => INGRESS,
        };
        let mut after = Vec::new();
        for block in self.blocks(&list) {
            let gateway = self.gateway(&list, &block);
            let path = format!("components.{}[name:{}]", list.key, gateway.release);
            report_gateway(&path, &block, migration);
            match self.render(&gateway) {
                Ok(objects) => after.extend(objects),
                Err(error) => {
                    let cause = error.source().map(ToString::to_string).unwrap_or_default();
                    migration.drop_field(path, &format!("{error}: {cause}"));
                }
            }
            migration.gateways.push(gateway);
        }
        self.report_values(&list, migration);
        let (before, after) = (index_component(component), index_objects(after.into_iter()));
        migration.add(compare(ComponentKind::Gateway, &before, &after));
    }

    /// Returns the enabled gateways. A value of the chart can enable all, or the default one if the list does
    /// not exist.
    fn blocks(&self, list: &List) -> Vec<Value> {
        let switch = format!("/spec/values/gateways/{}/enabled", list.default);
        let is_forced = self.operator.pointer(&switch) == Some(&Value::Bool(true));
        let blocks = self.operator.pointer(&format!("/spec/components/{}", list.key));
        let Some(blocks) = blocks.and_then(Value::as_array) else {
            return vec![json!({})];
        };
        let is_enabled = |block: &&Value| is_forced || block.get("enabled") != Some(&Value::Bool(false));
        blocks.iter().filter(is_enabled).cloned().collect()
    }

    fn gateway(&self, list: &List, block: &Value) -> GatewayValues {
        let or_default = |text: &str, default: &str| match text {
            "" => default.to_owned(),
            text => text.to_owned(),
        };
        let shared = text(self.operator, "/spec/values/global/istioNamespace");
        let mut values = gateway_values(block);
        let revision = text(self.operator, "/spec/values/revision");
        if !matches!(revision, "" | names::DEFAULT_REVISION) {
            values.insert("revision".to_owned(), revision.into());
        }
        GatewayValues {
            release: or_default(text(block, "/name"), list.default),
            namespace: or_default(text(block, "/namespace"), shared),
            values,
        }
    }

    /// Renders the release of a gateway.
    fn render(&self, gateway: &GatewayValues) -> Result<Vec<Value>, AdoptError> {
        let files = self.catalog.chart(self.version, Flavour::Installer, CHART);
        let files = files.map_err(|_| AdoptError::NoVersion(self.version.name()))?;
        let release = ChartRelease {
            chart: CHART,
            name: &gateway.release,
            namespace: &gateway.namespace,
            values: &gateway.values,
            kube_version: KUBE_VERSION,
            is_upgrade: false,
        };
        let manifest = release.render(&files)?;
        crate::text::parse_documents(&manifest).map_err(|_| AdoptError::Release(gateway.release.clone()))
    }

    /// Reports the values of the charts with which an `IstioOperator` renders gateways.
    fn report_values(&self, list: &List, migration: &mut Migration) {
        let own = format!("/spec/values/gateways/{}", list.default);
        let own = self.user.pointer(&own).and_then(Value::as_object);
        for (path, _) in own.map(leaves).unwrap_or_default() {
            migration.drop_field(
                format!("values.gateways.{}.{}", list.default, path.join(".")),
                "a value of another chart; set the value of the chart gateway that has the same effect",
            );
        }
    }
}

/// Reports the settings of a gateway that cannot be converted.
fn report_gateway(path: &str, block: &Value, migration: &mut Migration) {
    migration.drop_field(
        path,
        "no resource manages gateways; install the chart gateway with the values, then move the traffic: \
         selectors of a Deployment cannot change",
    );
    for setting in unknown_settings(block) {
        migration.drop_field(format!("{path}.{setting}"), "the chart gateway has no such value");
    }
}

fn gateway_values(block: &Value) -> Values {
    let mut values = Values::new();
    for (setting, place) in GATEWAY_SETTINGS {
        if let Some(value) = block.pointer(setting).filter(|value| !is_empty(value)) {
            let keys: Vec<&str> = place.split('/').skip(1).collect();
            put(&mut values, &keys, value.clone());
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
