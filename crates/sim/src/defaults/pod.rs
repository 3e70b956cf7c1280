//! Defaults of pods, and of the pod templates in workloads.

use serde_json::{Value, json};

use crate::tree;

/// A Pod object.
pub fn pod(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        requests_from_limits(spec);
        tree::set_default(spec, &["enableServiceLinks"], true);
        if tree::flag(spec, &["hostNetwork"]) {
            host_ports(spec);
        }
        pod_spec(spec);
    }
}

/// The spec of a pod or a pod template.
pub fn pod_spec(spec: &mut Value) {
    tree::set_default_text(spec, &["dnsPolicy"], "ClusterFirst");
    tree::set_default_text(spec, &["restartPolicy"], "Always");
    tree::set_default(spec, &["securityContext"], json!({}));
    tree::set_default(spec, &["terminationGracePeriodSeconds"], 30);
    tree::set_default_text(spec, &["schedulerName"], "default-scheduler");
    // The deprecated alias always mirrors the name.
    let account = tree::text(spec, &["serviceAccountName"]).to_owned();
    if account.is_empty() {
        let alias = tree::text(spec, &["serviceAccount"]).to_owned();
        if !alias.is_empty() {
            tree::set(spec, &["serviceAccountName"], alias);
        }
    } else {
        tree::set(spec, &["serviceAccount"], account);
    }
    for volume in tree::list_mut(spec, &["volumes"]).into_iter().flatten() {
        default_volume(volume);
    }
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for container in tree::list_mut(spec, &[kind]).into_iter().flatten() {
            default_container(container);
        }
    }
}

fn default_container(container: &mut Value) {
    let policy = if is_latest(tree::text(container, &["image"])) {
        "Always"
    } else {
        "IfNotPresent"
    };
    tree::set_default_text(container, &["imagePullPolicy"], policy);
    tree::set_default_text(container, &["terminationMessagePath"], "/dev/termination-log");
    tree::set_default_text(container, &["terminationMessagePolicy"], "File");
    for port in tree::list_mut(container, &["ports"]).into_iter().flatten() {
        tree::set_default_text(port, &["protocol"], "TCP");
    }
    for env in tree::list_mut(container, &["env"]).into_iter().flatten() {
        field_ref(env, &["valueFrom", "fieldRef"]);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get_mut(name).filter(|found| found.is_object()) {
            default_probe(found);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(action) = tree::get_mut(container, &["lifecycle", hook, "httpGet"]) {
            http_get(action);
        }
    }
}

fn default_probe(probe: &mut Value) {
    for (field, number) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if tree::int(probe, &[field]).unwrap_or(0) == 0 {
            tree::set(probe, &[field], number);
        }
    }
    if let Some(action) = probe.get_mut("httpGet") {
        http_get(action);
    }
    if probe.get("grpc").is_some() {
        tree::set_default(probe, &["grpc", "service"], "");
    }
}

fn http_get(action: &mut Value) {
    tree::set_default_text(action, &["path"], "/");
    tree::set_default_text(action, &["scheme"], "HTTP");
}

fn field_ref(value: &mut Value, path: &[&str]) {
    if let Some(selector) = tree::get_mut(value, path).filter(|there| there.is_object()) {
        tree::set_default_text(selector, &["apiVersion"], "v1");
    }
}

const FILE_MODE: i64 = 0o644;

fn default_volume(volume: &mut Value) {
    let sources = volume
        .as_object()
        .map_or(0, |map| map.keys().filter(|key| *key != "name").count());
    if sources == 0 {
        tree::set(volume, &["emptyDir"], json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if volume.get(source).is_some() {
            tree::set_default(volume, &[source, "defaultMode"], FILE_MODE);
        }
    }
    if volume.get("hostPath").is_some() {
        tree::set_default(volume, &["hostPath", "type"], "");
    }
    for item in tree::list_mut(volume, &["downwardAPI", "items"])
        .into_iter()
        .flatten()
    {
        field_ref(item, &["fieldRef"]);
    }
    for source in tree::list_mut(volume, &["projected", "sources"])
        .into_iter()
        .flatten()
    {
        if source.get("serviceAccountToken").is_some() {
            tree::set_default(source, &["serviceAccountToken", "expirationSeconds"], 3600);
        }
        for item in tree::list_mut(source, &["downwardAPI", "items"])
            .into_iter()
            .flatten()
        {
            field_ref(item, &["fieldRef"]);
        }
    }
    ephemeral_claim(volume);
}

fn ephemeral_claim(volume: &mut Value) {
    if tree::get(volume, &["ephemeral", "volumeClaimTemplate", "spec"]).is_some() {
        tree::set_default(
            volume,
            &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"],
            "Filesystem",
        );
    }
}

fn requests_from_limits(spec: &mut Value) {
    for kind in ["containers", "initContainers"] {
        for container in tree::list_mut(spec, &[kind]).into_iter().flatten() {
            let limits = tree::map(container, &["resources", "limits"])
                .cloned()
                .unwrap_or_default();
            for (name, amount) in limits {
                tree::set_default(container, &["resources", "requests", &name], amount);
            }
        }
    }
}

fn host_ports(spec: &mut Value) {
    for kind in ["containers", "initContainers"] {
        for container in tree::list_mut(spec, &[kind]).into_iter().flatten() {
            for port in tree::list_mut(container, &["ports"]).into_iter().flatten() {
                if tree::int(port, &["hostPort"]).unwrap_or(0) == 0 {
                    tree::copy(&port.clone(), port, &["containerPort"]);
                    let number = tree::int(port, &["containerPort"]).unwrap_or(0);
                    tree::set(port, &["hostPort"], number);
                }
            }
        }
    }
}

/// Returns whether an image's tag is `latest`, explicitly or by default; a digest without a tag is not.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !digest,
    }
}
