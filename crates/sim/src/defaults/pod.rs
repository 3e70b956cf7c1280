//! Defaults of pods and of pod templates.

use serde_json::{Value, json};

use crate::tree;

/// Applies the defaults of a Pod.
pub fn pod(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        default_requests(spec);
        tree::set_default(spec, &["enableServiceLinks"], true);
        if tree::flag(spec, &["hostNetwork"]) {
            default_host_ports(spec);
        }
        pod_spec(spec);
    }
}

/// Applies the defaults of the spec of a pod or pod template.
pub fn pod_spec(spec: &mut Value) {
    tree::set_default_text(spec, &["dnsPolicy"], "ClusterFirst");
    tree::set_default_text(spec, &["restartPolicy"], "Always");
    tree::set_default(spec, &["securityContext"], json!({}));
    tree::set_default(spec, &["terminationGracePeriodSeconds"], 30);
    tree::set_default_text(spec, &["schedulerName"], "default-scheduler");
    // `serviceAccount` is a deprecated alias of `serviceAccountName`.
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
        default_field_ref(env, &["valueFrom", "fieldRef"]);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) {
            default_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(action) = tree::get_mut(container, &["lifecycle", hook, "httpGet"]) {
            default_http_get(action);
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
        default_http_get(action);
    }
    if probe.get("grpc").is_some() {
        tree::set_default(probe, &["grpc", "service"], "");
    }
}

fn default_http_get(action: &mut Value) {
    tree::set_default_text(action, &["path"], "/");
    tree::set_default_text(action, &["scheme"], "HTTP");
}

fn default_field_ref(value: &mut Value, path: &[&str]) {
    if let Some(selector) = tree::get_mut(value, path).filter(|selector| selector.is_object()) {
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
        default_field_ref(item, &["fieldRef"]);
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
            default_field_ref(item, &["fieldRef"]);
        }
    }
    default_ephemeral_claim(volume);
}

fn default_ephemeral_claim(volume: &mut Value) {
    if tree::get(volume, &["ephemeral", "volumeClaimTemplate", "spec"]).is_some() {
        tree::set_default(
            volume,
            &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"],
            "Filesystem",
        );
    }
}

fn default_requests(spec: &mut Value) {
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

fn default_host_ports(spec: &mut Value) {
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

/// Returns whether the tag of an image is `latest`. This is the default if there is neither a tag nor a
/// digest.
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
