//! Namespaces and pods of the benchmark cluster, divided by a divisor, and changes of their labels.

use std::ops::Range;

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::server::Server;

/// Size of the cluster.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) namespaces: usize,
    pub(crate) pods: usize,
    /// Environment variables per container: 65 for a pod of about 13 KB.
    pub(crate) variables: usize,
}

const CONCURRENT_REQUESTS: usize = 24;

/// Labels of namespaces, and the revisions that their pods were injected with. The revision `three` has no
/// referrer: its first use is measured.
const REFERENCES: [(&str, &str); 3] = [
    ("istio-injection=enabled", "one-v1-29-1"),
    ("istio.io/rev=stable", "one-v1-29-1"),
    ("istio.io/rev=two", "two"),
];

impl Load {
    /// 1,000 namespaces and 20,000 pods, divided by `divisor`.
    pub(crate) fn divided_by(divisor: usize) -> Self {
        Self {
            namespaces: 1_000 / divisor,
            pods: 20_000 / divisor,
            variables: 65,
        }
    }

    /// Creates the namespaces and pods.
    pub(crate) async fn fill(&self, server: &Server) {
        let namespaces = stream::iter(0..self.namespaces);
        namespaces
            .for_each_concurrent(CONCURRENT_REQUESTS, async |number| {
                server.namespace(&name(number), REFERENCES[number % 3].0).await;
            })
            .await;
        let pods = stream::iter(0..self.pods);
        pods.for_each_concurrent(CONCURRENT_REQUESTS, async |number| {
            let path = format!("/api/v1/namespaces/{}/pods", name(number % self.namespaces));
            server.accepted("POST", &path, Some(&self.pod(number))).await;
        })
        .await;
    }

    /// Returns the size of a stored pod in bytes.
    pub(crate) async fn size(&self, server: &Server) -> usize {
        let path = format!("/api/v1/namespaces/{}/pods/pod-0", name(0));
        server.call("GET", &path, None).await.1.to_string().len()
    }

    /// Makes the changes with these numbers: each sets a label, which no revision depends on, to a new value.
    pub(crate) async fn relabel(&self, server: &Server, changes: Range<usize>) {
        let numbers = stream::iter(changes);
        numbers
            .for_each_concurrent(8, async |number| {
                let pod = number % self.pods;
                let place = format!(
                    "/api/v1/namespaces/{}/pods/pod-{pod}",
                    name(pod % self.namespaces)
                );
                let change = json!({"metadata": {"labels": {"bench": format!("round-{number}")}}});
                server.accepted("PATCH", &place, Some(&change)).await;
            })
            .await;
    }

    /// An injected pod of a Deployment.
    fn pod(&self, number: usize) -> Value {
        let revision = REFERENCES[number % self.namespaces % 3].1;
        let variables = |prefix: &str, count: usize| -> Vec<Value> {
            (0..count)
                .map(|n| json!({"name": format!("{prefix}_{n}"), "value": "x".repeat(60)}))
                .collect()
        };
        let container = |name: &str, prefix: &str, count: usize| {
            json!({
                "name": name,
                "image": "registry.example/team/application:1.2.3",
                "env": variables(prefix, count),
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/var/lib/data"}],
            })
        };
        let status = "{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"workload-socket\",\"credential-socket\",\"workload-certs\",\"istio-envoy\",\"istio-data\",\"istio-podinfo\",\"istio-token\",\"istiod-ca-cert\"],\"imagePullSecrets\":null,\"revision\":\"default\"}";
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("pod-{number}"),
                "labels": {
                    "app": format!("app-{}", number % 50),
                    "version": "v1",
                    "pod-template-hash": "5d9c7f8b6c",
                    "security.istio.io/tlsMode": "istio",
                    "service.istio.io/canonical-name": format!("app-{}", number % 50),
                    "service.istio.io/canonical-revision": "v1",
                },
                "annotations": {
                    "istio.io/rev": revision,
                    "sidecar.istio.io/status": status,
                    "kubectl.kubernetes.io/default-container": "app",
                    "kubectl.kubernetes.io/default-logs-container": "app",
                    "prometheus.io/path": "/stats/prometheus",
                    "prometheus.io/port": "15020",
                    "prometheus.io/scrape": "true",
                },
            },
            "spec": {
                "containers": [
                    container("app", "APP", self.variables / 2),
                    container("istio-proxy", "PROXY", self.variables - self.variables / 2),
                ],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        })
    }
}

fn name(number: usize) -> String {
    format!("team-{number}")
}
