//! Converts `IstioOperator` configurations to custom resources, and compares what both render. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_api::{Values, names};
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::installer::text;
use mainstay_manifest::{ComponentName, ComponentObjects, Rendered};
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Renderer;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::AdoptError;
use crate::derive::{Derivation, Dropped, derive};
use crate::differences::{FieldDifference, describe_field};
use crate::found::{Component, ComponentKind, Installer, shared_values};
use crate::plan::{minimal, with_live_values};
use crate::releases::{Environment, Unknown};

/// The version of Kubernetes that templates see.
const KUBE_VERSION: &str = "v1.32.0";

/// Labels that name the installer: they differ between any two installers.
const INSTALLER_LABELS: [&str; 5] = [
    "release",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "install.operator.istio.io/owning-resource",
    "managed-by",
];

/// Values for the chart `gateway`, which replaces a gateway of an `IstioOperator`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayValues {
    /// Name of the release.
    pub release: String,
    /// Namespace of the release.
    pub namespace: String,
    /// The values.
    pub values: Values,
}

/// A converted configuration.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// The resources.
    pub resources: Vec<Value>,
    /// Values of gateways.
    pub gateways: Vec<GatewayValues>,
    /// Fields without a place, with the reason.
    pub not_carried: Vec<Dropped>,
    /// Number of objects that are rendered equally before and after.
    pub equal_objects: usize,
    /// Fields that are rendered differently.
    pub differences: Vec<FieldDifference>,
}

impl Migration {
    /// Whether both render the same mesh.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.iter().all(|one| one.harmless.is_some())
    }
}

/// Objects by kind, namespace and name.
type Objects = BTreeMap<String, Value>;

/// Converts a rendered `IstioOperator` of a version.
pub fn to_resources(
    rendered: &Rendered,
    catalog: &Arc<Catalog>,
    version: &Version,
) -> Result<Migration, AdoptError> {
    let (library, _) = Library::from_catalog(catalog);
    let settings = Settings::default();
    let converter = Converter {
        operator: crate::text::json(rendered.configuration.clone()),
        renderer: Renderer::for_version(catalog.clone(), KUBE_VERSION),
        environment: Environment {
            settings: &settings,
            library: &library,
        },
        catalog,
        version,
    };
    let mut migration = Migration::default();
    for component in &rendered.components {
        converter.convert(component, &mut migration)?;
    }
    converter.add_overlays(&mut migration);
    Ok(migration)
}

struct Converter<'a> {
    operator: Value,
    renderer: Renderer,
    environment: Environment<'a>,
    catalog: &'a Arc<Catalog>,
    version: &'a Version,
}

impl Converter<'_> {
    fn convert(&self, component: &ComponentObjects, migration: &mut Migration) -> Result<(), AdoptError> {
        let kind = match component.component {
            ComponentName::Pilot => ComponentKind::Istiod,
            ComponentName::Cni => ComponentKind::Cni,
            ComponentName::Ztunnel => ComponentKind::Ztunnel,
            ComponentName::Base => {
                not_carried(
                    migration,
                    "components.base",
                    "run `mainstay crds install` for the definitions",
                );
                return Ok(());
            }
            ComponentName::Addons => {
                not_carried(
                    migration,
                    "addonComponents",
                    "add-ons are not part of the operator",
                );
                return Ok(());
            }
            _ => {
                self.add_gateways(component, migration);
                return Ok(());
            }
        };
        let found = self.component(kind);
        let Some(derivation) = derive(&found, &self.version.name()) else {
            return Ok(());
        };
        let before = objects(
            component
                .objects
                .iter()
                .map(|object| crate::text::json(object.0.clone())),
        );
        let best = self.best(kind, derivation, &before)?;
        migration.resources.extend(best.derivation.derived.documents());
        migration.not_carried.extend(best.derivation.dropped);
        migration.equal_objects += best.equal;
        migration.differences.extend(best.differences);
        Ok(())
    }

    /// The component as if it were installed.
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
        Component {
            kind,
            namespace: namespace.to_owned(),
            workload: String::new(),
            revision: revision.to_owned(),
            versions: Vec::new(),
            installer: Installer::Unknown,
            values,
            values_from: String::new(),
            tags: Vec::new(),
            instance: String::new(),
        }
    }

    /// The shortest values with the fewest differences: without defaults, then with values of differing
    /// fields.
    fn best(&self, kind: ComponentKind, full: Derivation, before: &Objects) -> Result<Compared, AdoptError> {
        let chart = match kind {
            ComponentKind::Cni => names::CNI_CHART,
            ComponentKind::Ztunnel => names::ZTUNNEL_CHART,
            _ => names::ISTIOD_CHART,
        };
        let short = minimal(
            &full,
            kind,
            &crate::plan::defaults(self.catalog, self.version, chart),
        );
        let full = self.compare(kind, full, before)?;
        let best = match self.compare(kind, short, before) {
            Ok(short) if short.differences.len() <= full.differences.len() => short,
            _ => full,
        };
        let mut derivation = best.derivation.clone();
        let values = derivation.derived.values_mut();
        let Some(better) = with_live_values(values, &best.differences) else {
            return Ok(best);
        };
        *values = better;
        match self.compare(kind, derivation, before) {
            Ok(better) if better.differences.len() < best.differences.len() => Ok(better),
            _ => Ok(best),
        }
    }

    fn compare(
        &self,
        kind: ComponentKind,
        derivation: Derivation,
        before: &Objects,
    ) -> Result<Compared, AdoptError> {
        let mut after = Vec::new();
        for release in self.environment.releases(&derivation.derived, &Unknown)? {
            if release.chart == names::BASE_CHART {
                continue;
            }
            let rendered = self.renderer.render(&release);
            after.extend(rendered.map_err(|source| AdoptError::Render {
                component: release.key.name.clone(),
                source: Box::new(source),
            })?);
        }
        let after = objects(after.into_iter());
        let mut compared = Compared {
            derivation,
            equal: 0,
            differences: Vec::new(),
        };
        let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for id in all.into_iter().filter(|id| !is_informational(id)) {
            let mut found = Vec::new();
            let (old, new) = (before.get(id), after.get(id));
            diff(String::new(), old, new, &mut found);
            compared.equal += usize::from(found.is_empty());
            let described = found.into_iter().map(|one| describe_field(kind, id, one));
            compared.differences.extend(described);
        }
        Ok(compared)
    }

    /// Gateways become values of the gateway chart.
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
            not_carried(
                migration,
                &format!("components.{key}[name:{release}]"),
                "no resource manages gateways; install the chart gateway with the values, then move the traffic: \
                 selectors of a Deployment cannot change",
            );
        }
    }

    fn add_overlays(&self, migration: &mut Migration) {
        for key in ["pilot", "cni", "ztunnel", "base"] {
            let overlays = self
                .operator
                .pointer(&format!("/spec/components/{key}/k8s/overlays"));
            if overlays
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
            {
                let path = format!("components.{key}.k8s.overlays");
                not_carried(
                    migration,
                    &path,
                    "resources have no overlays; the differences show their effect",
                );
            }
        }
    }
}

/// Resources with what they render.
struct Compared {
    derivation: Derivation,
    equal: usize,
    differences: Vec<FieldDifference>,
}

/// Settings of a gateway with a place in the chart: setting, value.
const GATEWAY_SETTINGS: &[(&str, &str)] = &[
    ("/label", "/labels"),
    ("/k8s/replicaCount", "/replicaCount"),
    ("/k8s/resources", "/resources"),
    ("/k8s/service/type", "/service/type"),
    ("/k8s/service/ports", "/service/ports"),
    ("/k8s/serviceAnnotations", "/service/annotations"),
    ("/k8s/podAnnotations", "/podAnnotations"),
    ("/k8s/nodeSelector", "/nodeSelector"),
    ("/k8s/tolerations", "/tolerations"),
    ("/k8s/affinity", "/affinity"),
    ("/k8s/hpaSpec/minReplicas", "/autoscaling/minReplicas"),
    ("/k8s/hpaSpec/maxReplicas", "/autoscaling/maxReplicas"),
];

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

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == &json!({}) || value == &json!([])
}

fn not_carried(migration: &mut Migration, path: &str, reason: &str) {
    migration.not_carried.push(Dropped {
        path: path.to_owned(),
        reason: reason.to_owned(),
    });
}

/// The record of the chart's values always differs.
fn is_informational(id: &str) -> bool {
    id.starts_with("ConfigMap ")
        && id
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("values"))
}

fn objects(rendered: impl Iterator<Item = Value>) -> Objects {
    let normalized = rendered.map(|mut object| {
        for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(Value::Object(labels)) = object.pointer_mut(labels) {
                labels.retain(|key, _| !INSTALLER_LABELS.contains(&key.as_str()));
            }
        }
        let id = format!(
            "{} {}/{}",
            text(&object, "/kind"),
            text(&object, "/metadata/namespace"),
            text(&object, "/metadata/name")
        );
        (id, object)
    });
    normalized.collect()
}

/// One differing field: path, value before, value after.
pub(crate) type Field = (String, Option<Value>, Option<Value>);

/// Collects the differing fields of two values; lists of named items are compared by name.
fn diff(at: String, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Field>) {
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                diff(format!("{at}.{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if is_named(a) && is_named(b) => {
            let (a, b) = (by_name(a), by_name(b));
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let (old, new) = (a.get(name), b.get(name));
                diff(format!("{at}[name=\"{name}\"]"), old, new, found);
            }
        }
        // istioctl removes line breaks at the end of documents.
        (Some(Value::String(a)), Some(Value::String(b))) if a.trim_end() == b.trim_end() => {}
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (old, new)) in a.iter().zip(b).enumerate() {
                diff(format!("{at}[{index}]"), Some(old), Some(new), found);
            }
        }
        _ if old == new => {}
        _ => found.push((at, old.cloned(), new.cloned())),
    }
}

fn is_named(list: &[Value]) -> bool {
    !list.is_empty()
        && list
            .iter()
            .all(|item| item.get("name").is_some_and(Value::is_string))
}

fn by_name(list: &[Value]) -> Map<String, Value> {
    let named = list
        .iter()
        .map(|item| (text(item, "/name").to_owned(), item.clone()));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_named_items_are_compared_by_name() {
        let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x"]});
        let new = json!({"env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}], "args": ["x"]});
        let mut found = Vec::new();
        diff(String::new(), Some(&old), Some(&new), &mut found);
        let expected = (
            ".env[name=\"B\"].value".to_owned(),
            Some(json!("2")),
            Some(json!("3")),
        );
        assert_eq!(found, [expected]);
    }

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
}
