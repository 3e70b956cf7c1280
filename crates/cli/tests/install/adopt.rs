//! `adopt`, `manifest migrate` and `rehearse` for meshes that the real Helm installed.

use mainstay_yaml::{Budget, parse, to_json};
use serde_json::{Value, json};

use super::helm::Helm;
use super::host::Host;

/// Rehearses the upgrade of a mesh from the dump of a cluster on which Helm installed it.
pub(crate) async fn a_dump_of_a_helm_installation_is_rehearsed(host: Host) {
    let helm = Helm::new(&host, "helm3", "1.28.2");
    helm.install("istio-base", "base", &[]).await;
    helm.install("istiod", "istiod", &["--set", "autoscaleMin=2"])
        .await;
    let shop = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"istio-injection": "enabled"}}});
    host.send("POST", "/api/v1/namespaces", Some(&shop)).await;
    let template = json!({"metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let cart = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "cart"}}, "template": template}});
    host.send("POST", "/apis/apps/v1/namespaces/shop/deployments", Some(&cart))
        .await;
    host.until("ready pods", async || {
        let path = "/apis/apps/v1/namespaces/shop/deployments/cart";
        host.send("GET", path, None).await["status"]["readyReplicas"] == 2
    })
    .await;
    let file = host.file("dump.json");
    std::fs::write(&file, dump(&host).await.to_string()).unwrap();
    let file = file.display().to_string();
    let command = [
        "rehearse",
        "--to",
        "v1.29.1",
        "--snapshot",
        &file,
        "--fail-on",
        "never",
    ];
    let rehearsed = host.ok(&command).await;
    let first = rehearsed.lines().next().unwrap_or_default();
    let expected = "Istio default from v1.28.2 to v1.29.1, 1 of 1 workload migrated";
    assert!(first.contains(expected), "{rehearsed}");
    let finding = "no operator manages the control plane default in namespace istio-system, installed by Helm release \
                   istio-system/istiod";
    assert!(rehearsed.contains(finding), "{rehearsed}");
}

/// Returns the objects of a cluster as `kubectl get -A -o json` does.
async fn dump(host: &Host) -> Value {
    const KINDS: [(&str, &str, &str); 8] = [
        ("/api/v1", "Namespace", "namespaces"),
        ("/api/v1", "ConfigMap", "configmaps"),
        ("/api/v1", "Service", "services"),
        ("/api/v1", "Pod", "pods"),
        ("/apis/apps/v1", "Deployment", "deployments"),
        ("/apis/apps/v1", "ReplicaSet", "replicasets"),
        ("/apis/policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        (
            "/apis/admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
    ];
    let mut items = Vec::new();
    for (root, kind, plural) in KINDS {
        let list = host.send("GET", &format!("{root}/{plural}"), None).await;
        for item in list["items"].as_array().unwrap() {
            let mut item = item.clone();
            item["apiVersion"] = list["apiVersion"].clone();
            item["kind"] = json!(kind);
            items.push(item);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
