//! Detects the components of a live mesh and their installers. Pure.

use std::collections::BTreeMap;

use mainstay_api::{Values, names};
use mainstay_catalog::Catalog;
pub use mainstay_cluster::installer::Installer;
use mainstay_cluster::installer::{self, label, text};
use serde::Serialize;
use serde_json::Value;

use crate::helm::HelmRelease;
use crate::stored_operator::{describe, find_operator, operator_values};

/// Objects of a mesh that were read from a cluster.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Newest version of each Helm release.
    pub releases: Vec<HelmRelease>,
    /// Deployments of istiod.
    pub deployments: Vec<Value>,
    /// `DaemonSets` of the CNI plugin and of ztunnel.
    pub daemon_sets: Vec<Value>,
    /// Webhook configurations of injectors and tags.
    pub webhooks: Vec<Value>,
    /// `ConfigMaps` in which charts record their values.
    pub values: Vec<Value>,
    /// Deployments of gateways.
    pub gateways: Vec<Value>,
    /// Stored `IstioOperators`: those of the in-cluster operator, and records of istioctl.
    pub operators: Vec<Value>,
}

/// Kinds of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ComponentKind {
    /// A control plane.
    Istiod,
    /// The CNI plugin.
    Cni,
    /// The node proxy of ambient mode.
    Ztunnel,
    /// A gateway.
    Gateway,
}

/// A component of a live mesh.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Kind of the component.
    pub kind: ComponentKind,
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the workload.
    pub workload: String,
    /// Revision of a control plane; `default` if it has none.
    pub revision: String,
    /// Possible versions, such as `1.29.1`, the most reliable first.
    pub versions: Vec<String>,
    /// Program that manages the component, such as Helm, istioctl or an operator.
    pub installer: Installer,
    /// Values of the chart that the user set.
    pub values: Values,
    /// Object that contains the values; empty if there is none.
    pub values_from: String,
    /// Revision tags of a control plane.
    pub tags: Vec<String>,
    /// Release name with which the chart was rendered.
    pub instance: String,
}

impl Component {
    /// Returns a description of the component for users.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.kind {
            ComponentKind::Istiod => {
                format!("control plane {} in namespace {}", self.revision, self.namespace)
            }
            ComponentKind::Cni => format!("CNI plugin in namespace {}", self.namespace),
            ComponentKind::Ztunnel => format!("ztunnel in namespace {}", self.namespace),
            ComponentKind::Gateway => format!("gateway {} in namespace {}", self.workload, self.namespace),
        }
    }

    /// Whether an operator manages the component already.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        matches!(self.installer, Installer::Operator { .. })
    }
}

/// Returns the components of a mesh, sorted by kind: control planes first. The catalog contains the profiles
/// to which stored `IstioOperator`s refer.
#[must_use]
pub fn components(observed: &Observed, catalog: &Catalog) -> Vec<Component> {
    let detect = |object, kind| detect_component(observed, catalog, object, kind);
    let planes = observed.deployments.iter();
    let mut found: Vec<Component> = planes
        .map(|object| detect(object, ComponentKind::Istiod))
        .collect();
    let shared = found
        .first()
        .map(|plane| (plane.values.clone(), plane.values_from.clone()));
    for object in &observed.daemon_sets {
        let kind = match label(object, "k8s-app") {
            "istio-cni-node" => ComponentKind::Cni,
            _ => ComponentKind::Ztunnel,
        };
        let mut node = detect(object, kind);
        if node.values_from.is_empty()
            && let Some((values, from)) = &shared
        {
            node.values = shared_values(values, kind);
            node.values_from.clone_from(from);
        }
        found.push(node);
    }
    let gateways = observed.gateways.iter();
    found.extend(gateways.map(|object| detect(object, ComponentKind::Gateway)));
    found.sort_by(|a, b| (a.kind, &a.namespace, &a.workload).cmp(&(b.kind, &b.namespace, &b.workload)));
    found
}

/// Returns the values of a node agent from the values common to all charts. istioctl renders all charts with
/// the same values, in which those of a component are below its name.
pub(crate) fn shared_values(values: &Values, kind: ComponentKind) -> Values {
    let root = if kind == ComponentKind::Cni {
        "cni"
    } else {
        "ztunnel"
    };
    let kept = values
        .iter()
        .filter(|(key, _)| [root, "global", "profile"].contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn detect_component(
    observed: &Observed,
    catalog: &Catalog,
    object: &Value,
    kind: ComponentKind,
) -> Component {
    let revision = installer::revision(object);
    let (namespace, workload) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    let installer = match find_release_with(observed, object) {
        Some(release) => Installer::Helm {
            release: release.name.clone(),
            namespace: release.namespace.clone(),
        },
        None => Installer::from_object(object),
    };
    let release = find_release(observed, &installer);
    let versions = versions(object, release);
    let ValuesSource { values, from } = match (release, kind) {
        (Some(release), _) => ValuesSource::from_release(release),
        (None, ComponentKind::Istiod) => plane_values(observed, catalog, object, &versions),
        _ => ValuesSource::default(),
    };
    Component {
        kind,
        revision: revision.to_owned(),
        versions,
        tags: tags(observed, kind, namespace, revision),
        instance: instance(object).to_owned(),
        namespace: namespace.to_owned(),
        workload: workload.to_owned(),
        installer,
        values,
        values_from: from,
    }
}

/// Returns the release that contains an object in its manifest; `None` if an operator manages the object.
/// Annotations are not sufficient: a Deployment that was transferred to Helm has none until the next
/// upgrade.
fn find_release_with<'a>(observed: &'a Observed, object: &Value) -> Option<&'a HelmRelease> {
    if matches!(Installer::from_object(object), Installer::Operator { .. }) {
        return None;
    }
    let same = |other: &Value| {
        ["/kind", "/metadata/name"]
            .iter()
            .all(|at| text(other, at) == text(object, at))
            && matches!(text(other, "/metadata/namespace"), namespace
                if namespace.is_empty() || namespace == text(object, "/metadata/namespace"))
    };
    let mut deployed = observed
        .releases
        .iter()
        .filter(|release| release.status == "deployed");
    deployed.find(|release| release.objects().unwrap_or_default().iter().any(same))
}

/// Returns the release name in the labels of the pod template, which must not change.
fn instance(object: &Value) -> &str {
    let labels = object.pointer("/spec/template/metadata/labels");
    let found = labels.and_then(|labels| labels.get("app.kubernetes.io/instance"));
    found.and_then(Value::as_str).unwrap_or_default()
}

fn find_release<'a>(observed: &'a Observed, installer: &Installer) -> Option<&'a HelmRelease> {
    let Installer::Helm { release, namespace } = installer else {
        return None;
    };
    let mut releases = observed.releases.iter();
    releases.find(|known| known.name == *release && known.namespace == *namespace)
}

/// Values of a chart, and the object that contains them.
#[derive(Debug, Default)]
struct ValuesSource {
    values: Values,
    from: String,
}

impl ValuesSource {
    fn from_release(release: &HelmRelease) -> Self {
        Self {
            values: release.values(),
            from: format!("Secret {}", release.secret),
        }
    }
}

/// Returns the values of a control plane without a release: those in its `ConfigMap`, or else those of the
/// stored `IstioOperator` from which it was rendered.
fn plane_values(observed: &Observed, catalog: &Catalog, plane: &Value, versions: &[String]) -> ValuesSource {
    let (namespace, revision) = (text(plane, "/metadata/namespace"), installer::revision(plane));
    let recorded = recorded_values(observed, namespace, revision);
    recorded
        .or_else(|| stored_values(observed, catalog, plane, versions))
        .unwrap_or_default()
}

fn recorded_values(observed: &Observed, namespace: &str, revision: &str) -> Option<ValuesSource> {
    let name = match revision {
        names::DEFAULT_REVISION => "values".to_owned(),
        revision => format!("values-{revision}"),
    };
    let is_it = |object: &&Value| {
        text(object, "/metadata/namespace") == namespace && text(object, "/metadata/name") == name
    };
    let recorded = observed.values.iter().find(is_it)?;
    match serde_json::from_str(text(recorded, "/data/original-values")) {
        Ok(Value::Object(values)) => Some(ValuesSource {
            values,
            from: format!("ConfigMap {name}"),
        }),
        _ => None,
    }
}

fn stored_values(
    observed: &Observed,
    catalog: &Catalog,
    plane: &Value,
    versions: &[String],
) -> Option<ValuesSource> {
    let operator = find_operator(&observed.operators, plane, installer::revision(plane))?;
    let version = versions.iter().find_map(|name| catalog.resolve(name).ok())?;
    Some(ValuesSource {
        values: operator_values(operator, catalog, &version)?,
        from: describe(operator),
    })
}

/// Returns the possible versions: that of the chart, then those of the workload.
fn versions(object: &Value, release: Option<&HelmRelease>) -> Vec<String> {
    let chart = release.map(HelmRelease::chart_version).unwrap_or_default();
    let mut versions = installer::versions(object);
    if !chart.is_empty() && chart != "1.0.0" {
        versions.retain(|known| known != chart);
        versions.insert(0, chart.to_owned());
    }
    versions
}

fn tags(observed: &Observed, kind: ComponentKind, namespace: &str, revision: &str) -> Vec<String> {
    if kind != ComponentKind::Istiod {
        return Vec::new();
    }
    installer::tags(&observed.webhooks, namespace, revision)
}

/// Returns the number of objects of a release that are not adopted, by kind.
pub(crate) fn count_unadopted_objects(
    release: &HelmRelease,
    is_adopted: impl Fn(&Value) -> bool,
) -> BTreeMap<String, usize> {
    let mut left = BTreeMap::new();
    for object in release.objects().unwrap_or_default() {
        if !is_adopted(&object) {
            *left.entry(text(&object, "/kind").to_owned()).or_default() += 1;
        }
    }
    left
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "values of `json!` are written in place"
)]
mod tests {
    use super::*;
    use serde_json::json;

    fn istiod(labels: Value, annotations: Value) -> Value {
        json!({
            "metadata": {"name": "istiod", "namespace": "istio-system", "labels": labels, "annotations": annotations},
            "spec": {"template": {
                "metadata": {"labels": {"app.kubernetes.io/instance": "istiod"}},
                "spec": {"containers": [{"image": "registry/pilot:1.29.1-distroless"}]},
            }},
        })
    }

    fn found(deployment: Value, values: Vec<Value>) -> Component {
        let operator = json!({
            "metadata": {"name": "installed-state-canary", "namespace": "istio-system"},
            "spec": {"profile": "minimal", "revision": "canary", "values": {"global": {"logAsJson": true}}},
        });
        let observed = Observed {
            deployments: vec![deployment],
            values,
            operators: vec![operator],
            ..Observed::default()
        };
        components(&observed, &Catalog::embedded().unwrap()).remove(0)
    }

    #[test]
    fn version_and_values_come_from_the_objects_without_a_release() {
        let config = json!({
            "metadata": {"name": "values-canary", "namespace": "istio-system"},
            "data": {"original-values": r#"{"pilot":{"env":{"A":"b"}}}"#},
        });
        let component = found(istiod(json!({"istio.io/rev": "canary"}), json!({})), vec![config]);
        assert_eq!(component.revision, "canary");
        assert_eq!(component.versions, ["1.29.1"]);
        assert_eq!(component.values_from, "ConfigMap values-canary");
        assert_eq!(json!(component.values), json!({"pilot": {"env": {"A": "b"}}}));
    }
    #[test]
    fn values_of_the_stored_operator_replace_a_blank_record() {
        let config = json!({"metadata": {"name": "values-canary", "namespace": "istio-system"}});
        let component = found(istiod(json!({"istio.io/rev": "canary"}), json!({})), vec![config]);
        let from = "IstioOperator istio-system/installed-state-canary";
        assert_eq!(component.values_from, from);
        assert_eq!(component.values["global"]["logAsJson"], true);
        assert_eq!(component.values["revision"], "canary");
    }
}
