//! Compares `mainstay tag generate` with the real `istioctl tag generate`.

use std::process::Command;

use mainstay_manifest::{DiffOptions, Object, compare_object_sets, parse_manifest};
use mainstay_testkit::{CaseCounts, built_peer};
use mainstay_yaml::{Map, Value};

use super::host::{Host, outcome};

/// Revision and flags of each comparison.
const CASES: &[(&str, &[&str])] = &[
    ("default", &["generate", "prod"]),
    ("default", &["generate", "default", "--overwrite"]),
    (
        "default",
        &["generate", "default", "--overwrite", "--auto-inject-namespaces"],
    ),
    ("canary", &["generate", "prod"]),
    ("canary", &["generate", "default", "--overwrite"]),
    ("canary", &["generate", "stable", "--webhook-name", "mine"]),
    ("canary", &["generate", "stable", "--auto-inject-namespaces"]),
];

/// Compares object by object on a cluster to which the rendered manifests were applied.
pub(crate) async fn equal_to_istioctl(host: Host) {
    for revision in ["default", "canary"] {
        let flag = format!("--revision={revision}");
        let text = host
            .ok(&["manifest", "generate", "--profile=minimal", &flag])
            .await;
        apply_injector(&host, &text).await;
    }
    let istioctl = built_peer("istioctl").unwrap();
    let package = host.file("manifests");
    write_package(&package);
    let mut counts = CaseCounts::default();
    for (revision, arguments) in CASES {
        let revision = format!("--revision={revision}");
        let ours = host.ok(&[&["tag"], *arguments, &[&revision]].concat()).await;
        let mut command = Command::new(&istioctl);
        command
            .arg("tag")
            .args(*arguments)
            .arg(&revision)
            .arg("-y")
            .arg("--manifests")
            .arg(&package);
        command
            .env("KUBECONFIG", host.kubeconfig())
            .env("HOME", host.file("home"));
        let theirs = outcome(command).await;
        assert_eq!(theirs.code, 0, "{arguments:?}: {theirs:#?}");
        let found = compare_object_sets(
            &parse_manifest(ours.as_bytes()).unwrap(),
            &without_zero_values(parse_manifest(theirs.stdout.as_bytes()).unwrap()),
            &DiffOptions::default(),
        );
        counts.count(found.is_empty(), || {
            format!("{revision} {arguments:?}: {found:#?}")
        });
    }
    counts.assert_all_equal("tag generate and istioctl");
}

/// istioctl prints typed objects with the zero values of `status` and `targetPort`, which mean unset.
fn without_zero_values(mut objects: Vec<Object>) -> Vec<Object> {
    for map in objects.iter_mut().filter_map(|object| object.0.as_map_mut()) {
        let empty = Value::Map([("loadBalancer".to_owned(), Value::Map(Map::new()))].into());
        if map.get("status") == Some(&empty) {
            map.remove("status");
        }
        let ports = map
            .get_mut("spec")
            .and_then(|spec| spec.as_map_mut()?.get_mut("ports"));
        let Some(Value::List(ports)) = ports else { continue };
        for port in ports.iter_mut().filter_map(Value::as_map_mut) {
            if port.get("targetPort") == Some(&Value::Int(0)) {
                port.remove("targetPort");
            }
        }
    }
    objects
}

/// Creates the webhook configurations and Services of a manifest.
async fn apply_injector(host: &Host, text: &str) {
    for object in parse_manifest(text.as_bytes()).unwrap() {
        let json: serde_json::Value =
            serde_json::from_str(&mainstay_yaml::to_json(&object.0).unwrap()).unwrap();
        let path = match object.kind().as_str() {
            "MutatingWebhookConfiguration" => {
                "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            }
            "Service" => "/api/v1/namespaces/istio-system/services",
            _ => continue,
        };
        let made = host.send("POST", path, Some(&json)).await;
        assert_eq!(made["kind"], json["kind"], "{made}");
    }
}

/// Writes charts and profiles in the layout that istioctl expects.
fn write_package(directory: &std::path::Path) {
    use mainstay_catalog::{Catalog, Flavour};
    let catalog = Catalog::embedded().unwrap();
    let version = "1.29.1".parse().unwrap();
    let charts = [
        ("base", "base"),
        ("istiod", "istio-control/istio-discovery"),
        ("istio-ingress", "gateways/istio-ingress"),
        ("istio-egress", "gateways/istio-egress"),
        ("cni", "istio-cni"),
        ("ztunnel", "ztunnel"),
        ("default", "default"),
    ];
    for (chart, path) in charts {
        for (name, data) in catalog.chart(&version, Flavour::Installer, chart).unwrap() {
            let file = directory.join("charts").join(path).join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, data).unwrap();
        }
    }
    std::fs::create_dir_all(directory.join("profiles")).unwrap();
    for profile in catalog.profiles(&version, Flavour::Installer).unwrap() {
        let text = catalog.profile(&version, Flavour::Installer, &profile).unwrap();
        std::fs::write(directory.join(format!("profiles/{profile}.yaml")), text).unwrap();
    }
}
