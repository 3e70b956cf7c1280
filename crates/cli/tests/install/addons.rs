//! Add-ons on a cluster: installed and uninstalled as a component, and without the definitions they need.

use serde_json::{Value, json};

use super::host::Host;

/// Installs four add-ons, verifies and uninstalls them; no object is left.
pub(crate) async fn life_cycle(host: Host) {
    let before = host.inventory().await;
    let addons = ["grafana", "kiali", "prometheus", "tracing"];
    let sets = addons.map(|addon| format!("--set=addonComponents.{addon}.enabled=true"));
    let mut install = vec!["install", "--profile=minimal", "-y"];
    install.extend(sets.iter().map(String::as_str));
    let installed = host.ok(&install).await;
    assert!(installed.contains("Add-ons: ready ("), "{installed}");
    for deployment in ["grafana", "jaeger", "kiali", "prometheus"] {
        let path = format!("/apis/apps/v1/namespaces/istio-system/deployments/{deployment}");
        let live = host.send("GET", &path, None).await;
        assert_eq!(live["status"]["readyReplicas"], 1, "{live}");
    }
    let verified = host.ok(&["verify"]).await;
    assert!(verified.starts_with("No problems found: "), "{verified}");
    let again = host.ok(&install).await;
    assert!(again.contains(" objects, 0 written, 0 pruned"), "{again}");
    host.ok(&["uninstall", "--purge", "-y"]).await;
    host.until_inventory(&before).await;
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a definition of the Prometheus Operator that accepts any spec.
fn definition(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// The telemetry feature enables the resources of the Prometheus Operator. Without their definitions the
/// add-ons fail with a message that names the definition, and the other components are installed.
pub(crate) async fn missing_definitions(host: Host) {
    let before = host.inventory().await;
    let install = [
        "install",
        "--profile=minimal",
        "--set=telemetry.enabled=true",
        "-y",
    ];
    let failed = host.run(&install).await;
    assert_eq!(failed.code, 1, "{failed:#?}");
    let message = "Add-ons: PodMonitor istio-system/envoy-stats-monitor: the cluster does not serve PodMonitor in \
                   monitoring.coreos.com/v1; install its definition, or disable the component or add-on that contains it";
    assert!(failed.stdout.contains(message), "{failed:#?}");
    assert!(failed.stdout.contains("Istiod: ready ("), "{failed:#?}");
    assert!(failed.stderr.contains("1 of 3 components failed"), "{failed:#?}");
    let without = "--set=telemetry.components.prometheusOperator.enabled=false";
    let installed = host.ok(&[&install[..], &[without]].concat()).await;
    assert!(installed.contains("Add-ons: ready ("), "{installed}");
    for (plural, kind) in [
        ("podmonitors", "PodMonitor"),
        ("servicemonitors", "ServiceMonitor"),
    ] {
        let created = host
            .send("POST", DEFINITIONS, Some(&definition(plural, kind)))
            .await;
        assert_eq!(created["kind"], "CustomResourceDefinition", "{created}");
    }
    host.ok(&install).await;
    let monitor = "/apis/monitoring.coreos.com/v1/namespaces/istio-system/podmonitors/envoy-stats-monitor";
    let live = host.send("GET", monitor, None).await;
    assert_eq!(live["kind"], "PodMonitor", "{live}");
    host.ok(&["uninstall", "--purge", "-y"]).await;
    for plural in ["podmonitors", "servicemonitors"] {
        let path = format!("{DEFINITIONS}/{plural}.monitoring.coreos.com");
        host.send("DELETE", &path, None).await;
    }
    host.until_inventory(&before).await;
}
