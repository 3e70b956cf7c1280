//! Validates pods and pod templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{meta, names};
use crate::field::{FieldErrors, Path};
use crate::tree;

/// Fields of the spec of a pod that may be changed, in addition to the images of containers.
const MUTABLE_FIELDS: [&str; 4] = [
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
];

/// Validates a pod after a write to `ephemeralcontainers` or `resize`. Existing ephemeral containers must not
/// change.
pub(super) fn validate_subresource(new: &Value, old: &Value, errors: &mut FieldErrors) {
    validate_spec(new.get("spec"), &Path::new("spec"), errors);
    let path = Path::new("spec").child("ephemeralContainers");
    let containers = tree::list(new, &["spec", "ephemeralContainers"]);
    for known in tree::list(old, &["spec", "ephemeralContainers"]) {
        let name = tree::text(known, &["name"]);
        let same = containers.iter().find(|one| tree::text(one, &["name"]) == name);
        let change = match same {
            Some(same) if same == known => continue,
            Some(_) => "changed",
            None => "removed",
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {change}\n");
        errors.forbidden(&path, &detail);
    }
}

/// Validates a pod.
pub(super) fn pod(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    validate_spec(new.get("spec"), &Path::new("spec"), errors);
    if old.is_some_and(|old| {
        new.get("spec") != old.get("spec") && immutable_fields(new) != immutable_fields(old)
    }) {
        errors.forbidden(
            &Path::new("spec"),
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
}

fn immutable_fields(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for field in MUTABLE_FIELDS {
        tree::remove(&mut spec, &[field]);
    }
    for kind in ["containers", "initContainers"] {
        for container in tree::list_mut(&mut spec, &[kind]).into_iter().flatten() {
            tree::remove(container, &["image"]);
        }
    }
    spec
}

/// Validates the pod template of a workload.
pub(super) fn template(template: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    let Some(template) = template else { return };
    meta::labels(
        tree::get(template, &["metadata", "labels"]),
        &path.child("metadata").child("labels"),
        errors,
    );
    validate_spec(template.get("spec"), &path.child("spec"), errors);
}

fn validate_spec(pod_spec: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    let Some(pod_spec) = pod_spec else { return };
    let volumes = volume_names(pod_spec, &path.child("volumes"), errors);
    let containers = tree::list(pod_spec, &["containers"]);
    if containers.is_empty() {
        errors.required(&path.child("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        for (at, container) in tree::list(pod_spec, &[kind]).iter().enumerate() {
            let path = path.child(kind).index(at);
            validate_container(container, &volumes, &path, errors);
            let name = tree::text(container, &["name"]);
            if !seen.insert(name.to_owned()) {
                errors.duplicate(&path.child("name"), name);
            }
        }
    }
    check_one_of(
        pod_spec,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
        path,
        errors,
    );
    check_one_of(
        pod_spec,
        "dnsPolicy",
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        path,
        errors,
    );
    meta::labels(pod_spec.get("nodeSelector"), &path.child("nodeSelector"), errors);
    for field in ["serviceAccountName", "nodeName"] {
        let text = tree::text(pod_spec, &[field]);
        if !text.is_empty() {
            for wrong in names::subdomain(text, false) {
                errors.invalid(&path.child(field), text, wrong);
            }
        }
    }
    if let Some(seconds) = tree::int(pod_spec, &["activeDeadlineSeconds"]).filter(|seconds| *seconds < 1) {
        errors.invalid(
            &path.child("activeDeadlineSeconds"),
            seconds,
            "must be between 1 and 2147483647, inclusive",
        );
    }
}

fn check_one_of(value: &Value, field: &str, allowed: &[&str], path: &Path, errors: &mut FieldErrors) {
    let text = tree::text(value, &[field]);
    if !allowed.contains(&text) {
        errors.not_supported(&path.child(field), text, allowed);
    }
}

fn volume_names(pod_spec: &Value, path: &Path, errors: &mut FieldErrors) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (at, volume) in tree::list(pod_spec, &["volumes"]).iter().enumerate() {
        let (name, path) = (tree::text(volume, &["name"]), path.index(at).child("name"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        let wrong = names::label(name, false);
        for one in &wrong {
            errors.invalid(&path, name, one.as_str());
        }
        if wrong.is_empty() && !seen.insert(name.to_owned()) {
            errors.duplicate(&path, name);
        }
    }
    seen
}

fn validate_container(container: &Value, volumes: &BTreeSet<String>, path: &Path, errors: &mut FieldErrors) {
    let name = tree::text(container, &["name"]);
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    } else {
        for wrong in names::label(name, false) {
            errors.invalid(&path.child("name"), name, wrong);
        }
    }
    if tree::text(container, &["image"]).is_empty() {
        errors.required(&path.child("image"), "");
    }
    check_one_of(
        container,
        "terminationMessagePolicy",
        &["File", "FallbackToLogsOnError"],
        path,
        errors,
    );
    validate_ports(container, &path.child("ports"), errors);
    for (at, variable) in tree::list(container, &["env"]).iter().enumerate() {
        let path = path.child("env").index(at);
        if tree::text(variable, &["name"]).is_empty() {
            errors.required(&path.child("name"), "");
        }
        let from = variable.get("valueFrom").filter(|from| !from.is_null());
        if from.is_some() && !tree::text(variable, &["value"]).is_empty() {
            let detail = "may not be specified when `value` is not empty";
            errors.invalid(&path.child("valueFrom"), "", detail);
        }
    }
    validate_mounts(container, volumes, &path.child("volumeMounts"), errors);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        validate_probe(container.get(probe), &path.child(probe), errors);
    }
    check_one_of(
        container,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
        path,
        errors,
    );
    validate_resources(container, &path.child("resources"), errors);
}

fn validate_probe(probe: Option<&Value>, path: &Path, errors: &mut FieldErrors) {
    let Some(probe) = probe else { return };
    if let Some(port) = tree::int(probe, &["httpGet", "port"]) {
        for wrong in names::port_number(port) {
            errors.invalid(&path.child("httpGet").child("port"), port, wrong);
        }
    }
    let counts = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    for field in counts {
        if let Some(number) = tree::int(probe, &[field]).filter(|number| *number < 0) {
            errors.invalid(&path.child(field), number, "must be greater than or equal to 0");
        }
    }
}

fn validate_ports(container: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (at, port) in tree::list(container, &["ports"]).iter().enumerate() {
        let path = path.index(at);
        let name = tree::text(port, &["name"]);
        if !name.is_empty() {
            let wrong = names::port_name(name);
            for one in &wrong {
                errors.invalid(&path.child("name"), name, one.as_str());
            }
            if wrong.is_empty() && !seen.insert(name.to_owned()) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        match tree::int(port, &["containerPort"]).unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number => {
                for wrong in names::port_number(number) {
                    errors.invalid(&path.child("containerPort"), number, wrong);
                }
            }
        }
        check_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
    }
}

fn validate_mounts(container: &Value, volumes: &BTreeSet<String>, path: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (at, mount) in tree::list(container, &["volumeMounts"]).iter().enumerate() {
        let (path, name, location) = (
            path.index(at),
            tree::text(mount, &["name"]),
            tree::text(mount, &["mountPath"]),
        );
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&path.child("name"), name);
        }
        if location.is_empty() {
            errors.required(&path.child("mountPath"), "");
        }
        if !seen.insert(location.to_owned()) {
            errors.invalid(&path.child("mountPath"), location, "must be unique");
        }
    }
}

fn validate_resources(container: &Value, path: &Path, errors: &mut FieldErrors) {
    for (name, request) in tree::map(container, &["resources", "requests"])
        .into_iter()
        .flatten()
    {
        let limit = tree::text(container, &["resources", "limits", name]);
        let millis = |text: &str| crate::schema::quantity_millis(text);
        let request = request.as_str().unwrap_or("");
        if let (Some(requested), Some(max)) = (millis(request), millis(limit).filter(|_| !limit.is_empty()))
            && requested > max
        {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&path.child("requests"), request, detail);
        }
    }
}
