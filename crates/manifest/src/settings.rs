//! Applies the `k8s` block of a component to its rendered objects.

use mainstay_yaml::{Map, Value};

use crate::component::Instance;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::limits::Steps;
use crate::merge::{put, value_at};
use crate::object::Object;
use crate::source::whole_numbers;
use crate::strategic::apply_patch;

/// Kind of object that a setting changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Workload,
    Service,
    Autoscaler,
    DisruptionBudget,
}

/// A row in the table of settings.
#[derive(Debug)]
struct Setting {
    field: &'static str,
    target: Target,
    /// Path of the field in the object, or in the main container if `in_container`.
    path: &'static [&'static str],
    in_container: bool,
}

const fn in_object(field: &'static str, target: Target, path: &'static [&'static str]) -> Setting {
    Setting {
        field,
        target,
        path,
        in_container: false,
    }
}

const fn in_container(field: &'static str, path: &'static [&'static str]) -> Setting {
    Setting {
        field,
        target: Target::Workload,
        path,
        in_container: true,
    }
}

const fn in_pod(field: &'static str, path: &'static [&'static str]) -> Setting {
    in_object(field, Target::Workload, path)
}

/// All fields of a `k8s` block except `overlays`.
const SETTINGS: &[Setting] = &[
    in_pod("affinity", &["spec", "template", "spec", "affinity"]),
    in_container("env", &["env"]),
    in_object("hpaSpec", Target::Autoscaler, &["spec"]),
    in_container("imagePullPolicy", &["imagePullPolicy"]),
    in_pod("nodeSelector", &["spec", "template", "spec", "nodeSelector"]),
    in_object("podDisruptionBudget", Target::DisruptionBudget, &["spec"]),
    in_pod("podAnnotations", &["spec", "template", "metadata", "annotations"]),
    in_pod(
        "priorityClassName",
        &["spec", "template", "spec", "priorityClassName"],
    ),
    in_container("readinessProbe", &["readinessProbe"]),
    in_pod("replicaCount", &["spec", "replicas"]),
    in_container("resources", &["resources"]),
    in_pod("strategy", &["spec", "strategy"]),
    in_pod("tolerations", &["spec", "template", "spec", "tolerations"]),
    in_object(
        "serviceAnnotations",
        Target::Service,
        &["metadata", "annotations"],
    ),
    in_object("service", Target::Service, &["spec"]),
    in_pod(
        "securityContext",
        &["spec", "template", "spec", "securityContext"],
    ),
    in_pod("volumes", &["spec", "template", "spec", "volumes"]),
    in_container("volumeMounts", &["volumeMounts"]),
];

impl Target {
    fn kind(self, instance: &Instance) -> &'static str {
        match self {
            Self::Workload => instance.component.workload_kind,
            Self::Service => "Service",
            Self::Autoscaler => "HorizontalPodAutoscaler",
            Self::DisruptionBudget => "PodDisruptionBudget",
        }
    }
}

/// Applies all settings of an instance. If there is no object to change, a warning is added.
pub(crate) fn apply_settings(
    instance: &Instance,
    workload: &str,
    objects: &mut [Object],
    steps: &mut Steps,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let Some(settings) = instance.settings() else {
        return diagnostics;
    };
    for setting in SETTINGS {
        let Some(value) = settings.get(setting.field) else {
            continue;
        };
        let Some(value) = value_to_apply(setting, instance, value) else {
            continue;
        };
        let path = instance.path.key("k8s").key(setting.field);
        let kind = setting.target.kind(instance);
        if kind == "DaemonSet" && setting.field == "replicaCount" {
            let message = "has no effect: a DaemonSet has no replicas";
            diagnostics.push(Diagnostic::warning(path, message));
            continue;
        }
        let patch = build_patch(setting, instance, kind, value);
        let mut is_found = false;
        for object in objects.iter_mut() {
            if object.kind() != kind || object.name() != workload {
                continue;
            }
            is_found = true;
            let Value::Map(map) = &mut object.0 else { continue };
            if let Err(error) = apply_patch(map, &patch, steps) {
                diagnostics.push(Diagnostic::error(path.clone(), error.to_string()));
            }
            if setting.target == Target::DisruptionBudget {
                keep_one_limit(map);
            }
        }
        if !is_found {
            diagnostics.push(no_effect(path, kind, workload));
        }
    }
    diagnostics
}

fn no_effect(path: crate::path::Path, kind: &str, name: &str) -> Diagnostic {
    let message = if kind.is_empty() {
        "has no effect: the component has no workload".to_owned()
    } else {
        format!("has no effect: no {kind} {name:?} is rendered")
    };
    Diagnostic::warning(path, message)
}

/// Returns the value to apply, or `None` if there is nothing to apply. The ports of a gateway's Service are
/// not applied, because they are values of its chart.
fn value_to_apply(setting: &Setting, instance: &Instance, value: &Value) -> Option<Value> {
    let mut value = whole_numbers(value.clone());
    if value.is_null() {
        return None;
    }
    if setting.field == "service" && instance.component.is_gateway {
        let map = value.as_map_mut()?;
        map.remove("ports");
        if map.is_empty() {
            return None;
        }
    }
    Some(value)
}

fn build_patch(setting: &Setting, instance: &Instance, kind: &str, value: Value) -> Map {
    let mut patch = Map::new();
    if setting.in_container {
        let mut container = Map::from([("name".to_owned(), instance.component.container.into())]);
        put(&mut container, setting.path, value);
        let containers = Value::List(vec![Value::Map(container)]);
        put(
            &mut patch,
            &["spec", "template", "spec", "containers"],
            containers,
        );
    } else if kind == "DaemonSet" && setting.field == "strategy" {
        put(&mut patch, &["spec", "updateStrategy"], value);
    } else {
        put(&mut patch, setting.path, value);
    }
    patch
}

/// Removes the minimum, which charts set, if the user has set a maximum: a budget may have only one of these
/// limits.
fn keep_one_limit(budget: &mut Map) {
    if value_at(budget, &["spec", "maxUnavailable"]).is_none() {
        return;
    }
    if let Some(spec) = budget.get_mut("spec").and_then(Value::as_map_mut) {
        spec.remove("minAvailable");
    }
}
