//! Differences between live and desired objects, with the chart value that sets the field. Pure.

mod unavoidable;

use mainstay_cluster::compare::Difference;
use mainstay_cluster::desired::ObjectId;
use serde::Serialize;
use serde_json::Value;

use crate::found::ComponentKind;

/// A field that the operator would change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldDifference {
    /// Kind, namespace and name of the object: `Deployment istio-system/istiod`.
    pub object: String,
    /// Path of the field: `.spec.replicas`; empty for the whole object.
    pub field: String,
    /// Live value; `None` if the live object does not contain the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// Value that the operator would write; `None` if the desired object does not contain the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<Value>,
    /// Path of the value in `spec.values` that sets the field: `pilot.replicaCount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Reason why the difference has no effect on the mesh; `None` if it has an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harmless: Option<&'static str>,
    /// Reason why no value makes the field equal; `None` if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

impl FieldDifference {
    /// Whether writing the field would restart pods.
    #[must_use]
    pub fn is_restart(&self) -> bool {
        self.field.starts_with(".spec.template")
    }
}

/// Differences without an effect on the mesh: kind, prefix of the name, prefix of the field, reason.
const HARMLESS: &[(&str, &str, &str, &str)] = &[
    (
        "ConfigMap",
        "values",
        ".data",
        "a record of the chart's values that nothing reads",
    ),
    (
        "ClusterRole",
        "istio-cni",
        ".rules",
        "the operator's chart adds a permission for OpenShift",
    ),
];

/// A field that a chart value sets.
struct Setting {
    component: ComponentKind,
    kind: &'static str,
    field: &'static str,
    value: &'static str,
}

const fn setting(
    component: ComponentKind,
    kind: &'static str,
    field: &'static str,
    value: &'static str,
) -> Setting {
    Setting {
        component,
        kind,
        field,
        value,
    }
}

use ComponentKind::{Cni, Istiod, Ztunnel};

/// Fields that chart values set.
const SETTINGS: &[Setting] = &[
    setting(Istiod, "Deployment", ".spec.replicas", "pilot.replicaCount"),
    setting(
        Istiod,
        "Deployment",
        ".spec.strategy.rollingUpdate.maxSurge",
        "pilot.rollingMaxSurge",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.strategy.rollingUpdate.maxUnavailable",
        "pilot.rollingMaxUnavailable",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.nodeSelector",
        "pilot.nodeSelector",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.affinity",
        "pilot.affinity",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.priorityClassName",
        "global.priorityClassName",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.containers[name=\"discovery\"].resources",
        "pilot.resources",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.containers[name=\"discovery\"].image",
        "pilot.image",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.spec.containers[name=\"discovery\"].imagePullPolicy",
        "global.imagePullPolicy",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.metadata.annotations",
        "pilot.podAnnotations",
    ),
    setting(
        Istiod,
        "Deployment",
        ".spec.template.metadata.labels",
        "pilot.podLabels",
    ),
    setting(
        Istiod,
        "HorizontalPodAutoscaler",
        ".spec.minReplicas",
        "pilot.autoscaleMin",
    ),
    setting(
        Istiod,
        "HorizontalPodAutoscaler",
        ".spec.maxReplicas",
        "pilot.autoscaleMax",
    ),
    setting(
        Istiod,
        "Service",
        ".metadata.annotations",
        "pilot.serviceAnnotations",
    ),
    setting(Istiod, "ConfigMap", ".data.mesh", "meshConfig"),
    setting(
        Cni,
        "DaemonSet",
        ".spec.template.spec.containers[name=\"install-cni\"].resources",
        "cni.resources",
    ),
    setting(Cni, "DaemonSet", ".spec.template.spec.affinity", "cni.affinity"),
    setting(
        Cni,
        "DaemonSet",
        ".spec.template.metadata.annotations",
        "cni.podAnnotations",
    ),
    setting(
        Ztunnel,
        "DaemonSet",
        ".spec.template.spec.containers[name=\"istio-proxy\"].resources",
        "ztunnel.resources",
    ),
    setting(
        Ztunnel,
        "DaemonSet",
        ".spec.template.spec.nodeSelector",
        "ztunnel.nodeSelector",
    ),
    setting(
        Ztunnel,
        "DaemonSet",
        ".spec.template.metadata.annotations",
        "ztunnel.podAnnotations",
    ),
];

/// Path prefix of the environment variables of istiod.
const ENVIRONMENT: &str = ".spec.template.spec.containers[name=\"discovery\"].env[name=\"";

/// A live object and the desired one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectPair<'a> {
    pub(crate) live: &'a Value,
    pub(crate) desired: &'a Value,
}

/// A field in which two renderings differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldChange {
    /// Path of the field; empty for the whole object.
    pub(crate) path: String,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

/// Describes a difference of an object.
#[must_use]
pub(crate) fn describe(
    component: ComponentKind,
    id: &ObjectId,
    difference: &Difference,
    pair: ObjectPair<'_>,
) -> FieldDifference {
    let field = difference.path().map(ToString::to_string).unwrap_or_default();
    let value_at = |object: &Value| difference.path().and_then(|path| path.find(object)).cloned();
    let (live, desired) = (value_at(pair.live), value_at(pair.desired));
    FieldDifference {
        object: object_name(id),
        harmless: harmless_reason(&id.kind, &id.name, &field)
            .or_else(|| equal_as_text(live.clone(), desired.clone())),
        reason: None,
        live,
        desired,
        set: value_path(component, &id.kind, &field),
        field,
    }
}

/// Describes a field in which two renderings differ.
pub(crate) fn describe_field(component: ComponentKind, object: &str, change: FieldChange) -> FieldDifference {
    let FieldChange {
        path: field,
        before: old,
        after: new,
    } = change;
    let (kind, name) = object.split_once(' ').unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    FieldDifference {
        object: object.to_owned(),
        set: value_path(component, kind, &field),
        harmless: harmless_reason(kind, name, &field)
            .or_else(|| equal_as_text(old.clone(), new.clone()))
            .or_else(|| equal_injection(name, old.as_ref(), new.as_ref()))
            .or_else(|| added_validator(object, &field, old.as_ref())),
        reason: unavoidable::unavoidable_reason(component, kind, name, &field),
        live: old,
        desired: new,
        field,
    }
}

/// Formats kind, namespace and name of an object.
#[must_use]
pub(crate) fn object_name(id: &ObjectId) -> String {
    if id.namespace.is_empty() {
        format!("{} {}", id.kind, id.name)
    } else {
        format!("{} {}/{}", id.kind, id.namespace, id.name)
    }
}

/// Returns a reason if both values are JSON text and differ only in the type of scalars. The custom
/// resource definitions require text where charts accept any scalar.
fn equal_as_text(live: Option<Value>, desired: Option<Value>) -> Option<&'static str> {
    let parse = |value: Option<Value>| serde_json::from_str::<Value>(value?.as_str()?).ok();
    let (live, desired) = (parse(live)?, parse(desired)?);
    (scalars_to_text(live) == scalars_to_text(desired)).then_some("the same values with scalars as text")
}

/// Validator of the default revision.
const DEFAULT_VALIDATOR: &str = "ValidatingWebhookConfiguration /istiod-default-validator";

/// Settings of the CNI plugin that injection templates read.
const INJECTED_CNI: [&str; 2] = ["enabled", "provider"];

/// Returns a reason if both values are injector values and differ only in settings of the CNI plugin's
/// chart. An `IstioOperator` passes the values of all charts to istiod.
fn equal_injection(name: &str, old: Option<&Value>, new: Option<&Value>) -> Option<&'static str> {
    let parse = |value: Option<&Value>| {
        let mut values = serde_json::from_str::<Value>(value?.as_str()?).ok()?;
        if let Some(Value::Object(cni)) = values.pointer_mut("/pilot/cni") {
            cni.retain(|key, _| INJECTED_CNI.contains(&key.as_str()));
        }
        Some(values)
    };
    let (old, new) = (parse(old)?, parse(new)?);
    let is_same = name.starts_with("istio-sidecar-injector") && old == new;
    is_same.then_some("values of the CNI plugin's chart, which injection does not read")
}

/// Returns a reason if the object is the validator of the default revision, and only the operator renders it.
fn added_validator(object: &str, field: &str, old: Option<&Value>) -> Option<&'static str> {
    let is_added = object == DEFAULT_VALIDATOR && field.is_empty() && old.is_none();
    is_added.then_some("`istioctl install` and `mainstay install` create it, too")
}

fn scalars_to_text(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(scalars_to_text).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, scalars_to_text(value)))
            .collect(),
        Value::Bool(_) | Value::Number(_) => value.to_string().into(),
        other => other,
    }
}

fn harmless_reason(kind: &str, name: &str, field: &str) -> Option<&'static str> {
    let row = HARMLESS
        .iter()
        .find(|row| row.0 == kind && name.starts_with(row.1) && field.starts_with(row.2));
    row.map(|row| row.3)
}

/// Returns the path of the value that sets a field, including the keys below the field in the table.
fn value_path(component: ComponentKind, kind: &str, field: &str) -> Option<String> {
    if component == Istiod
        && kind == "Deployment"
        && let Some(rest) = field.strip_prefix(ENVIRONMENT)
    {
        let name = rest.split('"').next()?;
        return Some(format!("pilot.env.{name}"));
    }
    let row = SETTINGS.iter().find(|row| {
        let rest = field.strip_prefix(row.field);
        row.component == component
            && row.kind == kind
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })?;
    Some(format!(
        "{}{}",
        row.value,
        field.get(row.field.len()..).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(component: ComponentKind, kind: &str, field: &str, expected: Option<&str>) {
        assert_eq!(value_path(component, kind, field).as_deref(), expected, "{field}");
    }

    #[test]
    fn text_that_differs_only_in_scalar_types_has_no_effect() {
        let text = |text: &str| Some(Value::String(text.to_owned()));
        assert!(equal_as_text(text(r#"{"env":{"A":true}}"#), text(r#"{"env":{"A":"true"}}"#)).is_some());
        assert!(equal_as_text(text(r#"{"env":{"A":true}}"#), text(r#"{"env":{"A":"false"}}"#)).is_none());
        assert!(equal_as_text(text("A"), text("B")).is_none());
    }

    #[test]
    fn values_of_the_cni_chart_have_no_effect_on_injection() {
        let text = |text: &str| Value::String(text.to_owned());
        let old = text(r#"{"pilot":{"cni":{"enabled":false}}}"#);
        let more = text(r#"{"pilot":{"cni":{"enabled":false,"logging":{"level":"debug"}}}}"#);
        let other = text(r#"{"pilot":{"cni":{"enabled":true}}}"#);
        let name = "istio-sidecar-injector-canary";
        assert!(equal_injection(name, Some(&old), Some(&more)).is_some());
        assert!(equal_injection(name, Some(&old), Some(&other)).is_none());
        assert!(equal_injection("values", Some(&old), Some(&more)).is_none());
    }

    #[test]
    fn fields_name_the_value_that_sets_them() {
        let container = ".spec.template.spec.containers[name=\"discovery\"]";
        check(
            Istiod,
            "Deployment",
            &format!("{container}.resources.requests.cpu"),
            Some("pilot.resources.requests.cpu"),
        );
        check(
            Istiod,
            "Deployment",
            &format!("{container}.env[name=\"A\"].value"),
            Some("pilot.env.A"),
        );
        check(Istiod, "Deployment", ".spec.replicas", Some("pilot.replicaCount"));
        check(Istiod, "Deployment", ".spec.replicasets", None);
        check(Cni, "Deployment", ".spec.replicas", None);
    }
}
