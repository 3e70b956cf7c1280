//! Objects of the rollout demo.

use mainstay_api::delivery::API_VERSION;
use mainstay_cluster::deploy::document;
use serde_json::{Value, json};

use crate::error::{CliError, Kind};

pub(super) const NAMESPACE: &str = "shop";
pub(super) const DEPLOYMENT: &str = "shop";
pub(super) const V1: &str = "shop-v1";
pub(super) const V2: &str = "shop-v2";

/// Clusters with their replicas; the host has the empty name.
pub(super) const CLUSTERS: [(&str, u32); 3] = [("", 2), ("east", 4), ("west", 4)];

/// Returns the Application with this image. A change only records a revision.
pub(super) fn application(image: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Application",
        "metadata": {
            "name": "shop", "namespace": NAMESPACE,
            "annotations": {"app.oam.dev/rollout-template": "true"},
        },
        "spec": {"components": [
            {"name": "web", "type": "webservice", "properties": {"image": image, "port": 8080}},
        ]},
    })
}

/// Returns the analysis of every canary.
pub(super) fn analysis() -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "AnalysisTemplate",
        "metadata": {"name": "success-rate", "namespace": NAMESPACE},
        "spec": {"metrics": [{
            "name": "success-rate", "intervalSeconds": 10, "count": 3, "failureLimit": 1,
            "success": {"min": 0.99},
            "prometheus": {
                "address": "http://prometheus.monitoring:9090",
                "query": "sum(rate(requests_total{revision=\"{{revision}}\",code!~\"5..\"}[1m])) / sum(rate(requests_total{revision=\"{{revision}}\"}[1m]))",
            },
        }]},
    })
}

/// Returns the deployment of one revision to all clusters.
pub(super) fn deployment(revision: &str) -> Value {
    let placement = CLUSTERS.map(|(cluster, replicas)| match cluster {
        "" => json!({"distribution": {"replicas": replicas}}),
        name => json!({"clusterSelector": {"name": name}, "distribution": {"replicas": replicas}}),
    });
    json!({
        "apiVersion": API_VERSION, "kind": "ApplicationDeployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "appRevisions": [{"revisionName": revision, "placement": placement}],
            "traffic": {
                "hosts": ["shop.example.com"], "provider": "Istio", "drainSeconds": 5,
                "http": [{"weightedTargets": [
                    {"revisionName": revision, "componentName": "web", "port": 8080, "weight": 100},
                ]}],
            },
            "strategy": {
                "type": "Canary", "onFailure": "Rollback",
                "steps": [
                    {"setWeight": 20}, {"analysis": {"templateName": "success-rate"}},
                    {"setWeight": 50}, {"pause": {}}, {"setWeight": 100},
                ],
            },
        },
    })
}

/// Returns all objects as YAML, to apply them to other clusters.
pub(super) fn manifests() -> Result<String, CliError> {
    let objects = [
        application("registry.example.com/shop:1"),
        analysis(),
        deployment(V1),
    ];
    let mut text = String::new();
    for object in &objects {
        text.push_str("---\n");
        text.push_str(&yaml(object)?);
    }
    Ok(text)
}

/// Formats an object as YAML.
pub(super) fn yaml(object: &Value) -> Result<String, CliError> {
    document(object).map_err(|error| CliError::new(Kind::Io, error.to_string()))
}
