//! Applies the `k8s` block of a component or an add-on to its objects.

use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::limits::Steps;
use crate::merge::{put, value_at};
use crate::object::Object;
use crate::path::Path;
use crate::source::whole_numbers;
use crate::strategic::apply_patch;

/// A `k8s` block, and the objects that it changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Customization<'a> {
    /// Path of the component.
    pub(crate) path: &'a Path,
    /// The `k8s` block.
    pub(crate) settings: &'a Map,
    pub(crate) workload: Workload<'a>,
    /// Whether the ports of the Service are values of the chart.
    pub(crate) is_gateway: bool,
}

/// The workload of a component. Its autoscaler and its disruption budget have the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload<'a> {
    /// Kind; empty if there is no workload.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    /// Name of the main container.
    pub(crate) container: &'a str,
    /// Name of the Service.
    pub(crate) service: &'a str,
}

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
    /// Returns kind and name of the object to change.
    fn object(self, workload: Workload<'_>) -> (&str, &str) {
        match self {
            Self::Workload => (workload.kind, workload.name),
            Self::Service => ("Service", workload.service),
            Self::Autoscaler => ("HorizontalPodAutoscaler", workload.name),
            Self::DisruptionBudget => ("PodDisruptionBudget", workload.name),
        }
    }
}

/// Applies all settings of a block. If there is no object to change, a warning is added.
pub(crate) fn apply_settings(
    customization: &Customization<'_>,
    objects: &mut [Object],
    steps: &mut Steps,
) -> Diagnostics {
    let mut run = Run {
        customization,
        objects,
        steps,
        found: Diagnostics::default(),
    };
    for setting in SETTINGS {
        let value = customization.settings.get(setting.field);
        if let Some(value) = value.and_then(|value| value_to_apply(setting, customization, value)) {
            run.apply(setting, value);
        }
    }
    run.found
}

/// State of applying a block.
struct Run<'a> {
    customization: &'a Customization<'a>,
    objects: &'a mut [Object],
    steps: &'a mut Steps,
    found: Diagnostics,
}

impl Run<'_> {
    fn apply(&mut self, setting: &Setting, value: Value) {
        let path = self.customization.path.key("k8s").key(setting.field);
        let workload = self.customization.workload;
        let (kind, name) = setting.target.object(workload);
        let reason = match (workload.kind, setting.field) {
            ("", _) => Some("no workload is rendered"),
            ("DaemonSet", "replicaCount") => Some("a DaemonSet has no replicas"),
            _ => None,
        };
        if let Some(reason) = reason {
            let message = format!("has no effect: {reason}");
            return self.found.push(Diagnostic::warning(path, message));
        }
        let patch = build_patch(setting, workload, value);
        let mut is_found = false;
        let is_target = |object: &&mut Object| object.kind() == kind && object.name() == name;
        for object in self.objects.iter_mut().filter(is_target) {
            is_found = true;
            let Value::Map(map) = &mut object.0 else { continue };
            if let Err(error) = apply_patch(map, &patch, self.steps) {
                self.found
                    .push(Diagnostic::error(path.clone(), error.to_string()));
            }
            if setting.target == Target::DisruptionBudget {
                keep_one_limit(map);
            }
        }
        if !is_found {
            let message = format!("has no effect: no {kind} {name:?} is rendered");
            self.found.push(Diagnostic::warning(path, message));
        }
    }
}

/// Returns the value to apply, or `None` if there is nothing to apply. The ports of a gateway's Service are
/// not applied, because they are values of its chart.
fn value_to_apply(setting: &Setting, customization: &Customization<'_>, value: &Value) -> Option<Value> {
    let mut value = whole_numbers(value.clone());
    if value.is_null() {
        return None;
    }
    if setting.field == "service" && customization.is_gateway {
        let map = value.as_map_mut()?;
        map.remove("ports");
        if map.is_empty() {
            return None;
        }
    }
    Some(value)
}

fn build_patch(setting: &Setting, workload: Workload<'_>, value: Value) -> Map {
    let mut patch = Map::new();
    if setting.in_container {
        let mut container = Map::from([("name".to_owned(), workload.container.into())]);
        put(&mut container, setting.path, value);
        let containers = Value::List(vec![Value::Map(container)]);
        put(
            &mut patch,
            &["spec", "template", "spec", "containers"],
            containers,
        );
    } else if workload.kind == "DaemonSet" && setting.field == "strategy" {
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

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, parse, to_json};

    use super::*;
    use crate::component::COMPONENTS;
    use crate::diagnostic::Severity;

    /// Every setting and a value for it.
    const VALUES: &[(&str, &str)] = &[
        ("affinity", "{nodeAffinity: {}}"),
        ("env", "[{name: ADDED, value: x}]"),
        ("hpaSpec", "{minReplicas: 4}"),
        ("imagePullPolicy", "Never"),
        ("nodeSelector", "{pool: mesh}"),
        ("podDisruptionBudget", "{minAvailable: 3}"),
        ("podAnnotations", "{a: b}"),
        ("priorityClassName", "high"),
        ("readinessProbe", "{periodSeconds: 7}"),
        ("replicaCount", "5"),
        ("resources", "{limits: {cpu: 1}}"),
        ("strategy", "{rollingUpdate: {maxUnavailable: 2}}"),
        ("tolerations", "[{operator: Exists}]"),
        ("serviceAnnotations", "{c: d}"),
        ("service", "{type: NodePort}"),
        ("securityContext", "{runAsUser: 1337}"),
        ("volumes", "[{name: extra, emptyDir: {}}]"),
        ("volumeMounts", "[{name: extra, mountPath: /extra}]"),
    ];

    fn read(text: &str) -> Value {
        whole_numbers(parse(text, &Budget::default()).unwrap())
    }

    /// Returns a workload and the objects with its name that settings change.
    fn all_objects(workload: Workload<'_>) -> Vec<Object> {
        if workload.kind.is_empty() {
            return Vec::new();
        }
        let kinds = [
            workload.kind,
            "Service",
            "HorizontalPodAutoscaler",
            "PodDisruptionBudget",
        ];
        let object = |kind: &&str| {
            let name = workload.name;
            let spec = format!(
                "{{template: {{spec: {{containers: [{{name: {}}}]}}}}}}",
                workload.container
            );
            Object(read(&format!(
                "{{kind: {kind}, metadata: {{name: {name}}}, spec: {spec}}}"
            )))
        };
        kinds.iter().map(object).collect()
    }

    /// Applies one setting to `objects` and returns the diagnostics.
    fn apply(field: &str, value: &str, workload: Workload<'_>, objects: &mut [Object]) -> Diagnostics {
        let customization = Customization {
            path: &Path::from_keys(&["component"]),
            settings: &Map::from([(field.to_owned(), read(value))]),
            workload,
            is_gateway: false,
        };
        apply_settings(&customization, objects, &mut Steps::default())
    }

    fn is_warning(found: &Diagnostics, field: &str) -> bool {
        let path = Path::from_keys(&["component", "k8s", field]);
        let is_expected = |one: &Diagnostic| {
            one.severity == Severity::Warning && one.path == path && one.message.starts_with("has no effect")
        };
        matches!(found.list(), [one] if is_expected(one))
    }

    #[test]
    fn every_setting_of_every_component_is_applied_or_reported() {
        let fields: Vec<&str> = SETTINGS.iter().map(|setting| setting.field).collect();
        let values: Vec<&str> = VALUES.iter().map(|row| row.0).collect();
        assert_eq!(fields, values);
        let mut reported = Vec::new();
        for component in COMPONENTS {
            let workload = Workload {
                kind: component.workload_kind,
                name: component.workload,
                container: component.container,
                service: component.workload,
            };
            for (field, value) in VALUES {
                let mut objects = all_objects(workload);
                let before = objects.clone();
                let found = apply(field, value, workload, &mut objects);
                if is_warning(&found, field) {
                    assert_eq!(objects, before);
                    reported.push(format!("{}.{field}", component.key));
                } else {
                    assert_eq!(found, Diagnostics::default());
                    assert_applied(field, value, workload, &objects);
                }
                let found = apply(field, value, workload, &mut []);
                assert!(is_warning(&found, field), "{}.{field}: {found}", component.key);
            }
        }
        let base = values.iter().map(|field| format!("base.{field}"));
        let replicas = ["cni.replicaCount", "ztunnel.replicaCount"].map(str::to_owned);
        assert_eq!(reported, base.chain(replicas).collect::<Vec<_>>());
    }

    /// Checks that exactly one object has the value at the path of the setting.
    fn assert_applied(field: &str, value: &str, workload: Workload<'_>, objects: &[Object]) {
        let setting = SETTINGS.iter().find(|setting| setting.field == field).unwrap();
        let (kind, _) = setting.target.object(workload);
        let object = objects.iter().find(|object| object.kind() == kind).unwrap();
        let found = if setting.in_container {
            let containers = object.0.at(&["spec", "template", "spec", "containers"]);
            let [container] = containers.and_then(Value::as_list).unwrap() else {
                panic!("{field}: another container was added");
            };
            assert_eq!(
                container.get("name").and_then(Value::as_str),
                Some(workload.container)
            );
            container.at(setting.path)
        } else if (workload.kind, field) == ("DaemonSet", "strategy") {
            object.0.at(&["spec", "updateStrategy"])
        } else {
            object.0.at(setting.path)
        };
        let (found, expected) = (found.unwrap(), read(value));
        match (found, &expected) {
            (Value::Map(found), Value::Map(expected)) => {
                assert!(
                    expected.iter().all(|(key, value)| found.get(key) == Some(value)),
                    "{field}"
                );
            }
            _ => assert_eq!(to_json(found).unwrap(), to_json(&expected).unwrap(), "{field}"),
        }
        let all = all_objects(workload);
        let changed = objects.iter().zip(&all).filter(|(now, before)| now != before);
        assert_eq!(changed.count(), 1, "{field}");
    }
}
