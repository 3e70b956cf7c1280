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

/// Returns a deployment of revisions with weights in the host cluster. Its route is an `HTTPRoute` for
/// requests in the mesh: without a Gateway, its parent is a Service.
pub(crate) fn gateway_deployment(namespace: &str, weights: &[(&str, u32)]) -> Value {
    let places: &[(&str, u32)] = &[("", 2)];
    let revisions: Vec<(&str, &[(&str, u32)])> =
        weights.iter().map(|(revision, _)| (*revision, places)).collect();
    let mut deployment = with_traffic(deployment_of(&revisions), "GatewayAPI", weights);
    deployment["metadata"]["namespace"] = namespace.into();
    deployment["spec"]["traffic"]["drainSeconds"] = 1.into();
    deployment
}

/// Returns a deployment in the host cluster whose requests an Ingress distributes by replicas. Without a
/// match, each revision has its own path, as in the proposal.
pub(crate) fn ingress_deployment(namespace: &str, replicas: &[(&str, u32)], has_match: bool) -> Value {
    let places: Vec<[(&str, u32); 1]> = replicas.iter().map(|(_, count)| [("", *count)]).collect();
    let rows: Vec<(&str, &[(&str, u32)])> = replicas
        .iter()
        .zip(&places)
        .map(|((revision, _), places)| (*revision, places.as_slice()))
        .collect();
    let weights: Vec<(&str, u32)> = replicas.iter().map(|(revision, _)| (*revision, 0)).collect();
    let mut deployment = with_traffic(deployment_of(&rows), "Ingress", &weights);
    deployment["metadata"]["namespace"] = namespace.into();
    let traffic = &mut deployment["spec"]["traffic"];
    traffic["drainSeconds"] = 1.into();
    traffic["ingressClassName"] = "public".into();
    let rule = traffic["http"][0].as_object_mut().unwrap();
    if !has_match {
        rule.remove("match");
    }
    for target in rule["weightedTargets"].as_array_mut().unwrap() {
        target.as_object_mut().unwrap().remove("weight");
    }
    deployment
}

/// Service for all revisions, to which an Ingress with a match sends requests.
pub(crate) const APEX_SERVICE: &str = "example-app-deploy-testsvc";

/// Name of the golden file, replicas by revision, and whether there is a match.
type IngressStep = (&'static str, &'static [(&'static str, u32)], bool);

/// Steps of a rollout with an Ingress.
pub(crate) const INGRESS_STEPS: [IngressStep; 3] = [
    (
        "ingress-paths",
        &[("example-app-v1", 1), ("example-app-v2", 1)],
        false,
    ),
    (
        "ingress-replicas",
        &[("example-app-v1", 3), ("example-app-v2", 1)],
        true,
    ),
    ("ingress-replaced", &[("example-app-v2", 2)], true),
];

/// Returns the path of one of our objects.
pub(crate) fn path(plural: &str, name: &str) -> String {
    format!("/apis/{API}/namespaces/{NAMESPACE}/{plural}/{name}")
}
