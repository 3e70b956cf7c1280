//! Objects that users create: the proposal's documents, applications and clusters.

use mainstay_rollout::documents::parse_documents;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const API: &str = "delivery.mainstay.dev/v1alpha1";

/// Documents of the proposal.
const PROPOSAL: &str = include_str!("../../../rollout/tests/documents/proposal.yaml");

/// Sets the namespace of an object.
pub(crate) fn in_namespace(mut object: Value) -> Value {
    object["metadata"]["namespace"] = NAMESPACE.into();
    object
}

/// Returns the proposal's deployment.
pub(crate) fn deployment() -> Value {
    in_namespace(parse_documents(PROPOSAL).unwrap()[0].object.clone())
}

/// Name of the proposal's deployment.
pub(crate) const DEPLOYMENT: &str = "example-app-deploy";

/// Returns a Cluster.
pub(crate) fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"usage": "production"}},
        "spec": {"kubeconfigSecretRef": {"name": format!("kubeconfig-{name}")}},
    })
}

/// Returns an Application that only records revisions.
pub(crate) fn application(image: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "Application",
        "metadata": {
            "name": "example-app", "namespace": NAMESPACE,
            "annotations": {"app.oam.dev/rollout-template": "true"},
        },
        "spec": {"components": [
            {"name": "testsvc", "type": "webservice", "properties": {"image": image, "port": 8080}},
        ]},
    })
}

/// Returns a deployment of revisions with replicas by cluster. An empty cluster name is the host.
pub(crate) fn deployment_of(revisions: &[(&str, &[(&str, u32)])]) -> Value {
    let placement = |(cluster, replicas): &(&str, u32)| {
        let mut placement = json!({"distribution": {"replicas": replicas}});
        if !cluster.is_empty() {
            placement["clusterSelector"] = json!({"name": cluster});
        }
        placement
    };
    let revisions: Vec<Value> = revisions
        .iter()
        .map(|(name, places)| {
            let places: Vec<Value> = places.iter().map(placement).collect();
            json!({"revisionName": name, "placement": places})
        })
        .collect();
    json!({
        "apiVersion": API, "kind": "ApplicationDeployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {"appRevisions": revisions},
    })
}

/// Adds traffic to a deployment, with a weight for each revision.
pub(crate) fn with_traffic(mut deployment: Value, provider: &str, weights: &[(&str, u32)]) -> Value {
    let target = |(revision, weight): &(&str, u32)| json!({"revisionName": revision, "componentName": "testsvc", "port": 80, "weight": weight});
    deployment["spec"]["traffic"] = json!({
        "provider": provider, "hosts": ["example-app.example.com"], "drainSeconds": 5,
        "http": [{
            "match": [{"uri": {"prefix": "/web"}}],
            "weightedTargets": weights.iter().map(target).collect::<Vec<_>>(),
        }],
    });
    deployment
}

/// Returns the path of one of our objects.
pub(crate) fn path(plural: &str, name: &str) -> String {
    format!("/apis/{API}/namespaces/{NAMESPACE}/{plural}/{name}")
}
