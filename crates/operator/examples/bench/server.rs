//! The API server of the benchmark, and the operator's calls from its audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_catalog::Catalog;
use mainstay_cluster::definitions;
use mainstay_testkit::cluster::{Audit, Cluster, Options, User};
use serde_json::{Value, json};

/// User of the operator.
pub(crate) const OPERATOR: &str = "operator";

/// A control plane without controllers, so that nothing else affects the measurement.
pub(crate) struct Server {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
}

/// Calls of the operator since a point in time.
pub(crate) struct Counter(Audit);

/// Number of requests by kind.
pub(crate) struct Counts {
    pub(crate) reads: usize,
    pub(crate) watches: usize,
    pub(crate) writes: usize,
    pub(crate) lines: Vec<String>,
}

#[allow(clippy::needless_pass_by_value, reason = "specs are made where they are used")]
pub(crate) fn custom(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "sailoperator.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

const OURS: &str = "/apis/sailoperator.io/v1";

/// Paths of the kinds that an installation creates objects of.
const INSTALLED: [&str; 12] = [
    "/api/v1/configmaps",
    "/api/v1/services",
    "/api/v1/serviceaccounts",
    "/apis/apps/v1/deployments",
    "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

impl Server {
    pub(crate) async fn start() -> Self {
        let options = Options {
            controllers: Vec::new(),
            users: ["admin", "tester", OPERATOR]
                .map(|name| User::new(name, "system:masters"))
                .to_vec(),
            audit: true,
            api_server_flags: vec![
                "--disable-admission-plugins=ServiceAccount,MutatingAdmissionWebhook,ValidatingAdmissionWebhook".into(),
            ],
        };
        let cluster = Cluster::start(options).await.unwrap();
        let client = cluster.client_with_agent("tester", "tester").unwrap();
        let server = Self { cluster, client };
        server.define().await;
        for name in ["istio-system", "sail-operator", "bench-use"] {
            server.namespace(name, "").await;
        }
        server
    }

    async fn define(&self) {
        let catalog = Catalog::embedded().unwrap();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in definitions::own_definitions(&catalog).unwrap() {
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap().to_owned();
            self.accepted("POST", path, Some(&definition)).await;
            while self.call("GET", &format!("{OURS}/{plural}"), None).await.0 != 200 {
                self.pass(Duration::from_millis(50)).await;
            }
        }
    }

    pub(crate) async fn namespace(&self, name: &str, labels: &str) {
        let labels: BTreeMap<&str, &str> = labels
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.accepted("POST", "/api/v1/namespaces", Some(&object)).await;
    }

    pub(crate) async fn label_namespace(&self, name: &str, revision: Option<&str>) {
        let patch = json!({"metadata": {"labels": {"istio.io/rev": revision}}});
        self.accepted("PATCH", &format!("/api/v1/namespaces/{name}"), Some(&patch))
            .await;
    }

    pub(crate) async fn create(&self, plural: &str, object: &Value) {
        self.accepted("POST", &format!("{OURS}/{plural}"), Some(object))
            .await;
    }

    /// Deletes an object and waits until it no longer exists.
    async fn delete(&self, plural: &str, name: &str) {
        let path = format!("{OURS}/{plural}/{name}");
        self.accepted("DELETE", &path, None).await;
        for _ in 0..3_000 {
            if self.call("GET", &path, None).await.0 == 404 {
                return;
            }
            self.pass(Duration::from_millis(20)).await;
        }
        panic!("{name} is not deleted");
    }

    /// Deletes an Istio and then its revisions, as the garbage collector would, and waits until the
    /// operator's finalizer has uninstalled them.
    pub(crate) async fn uninstall(&self, istio: &str) {
        self.delete("istios", istio).await;
        let path = format!("{OURS}/istiorevisions");
        let list = self.accepted("GET", &path, None).await;
        for revision in list["items"].as_array().into_iter().flatten() {
            let name = revision["metadata"]["name"].as_str().unwrap();
            self.delete("istiorevisions", name).await;
        }
    }

    pub(crate) async fn patch(&self, plural: &str, name: &str, patch: &Value) {
        self.accepted("PATCH", &format!("{OURS}/{plural}/{name}"), Some(patch))
            .await;
    }

    /// Reports Deployments as ready, as their controller would, until the object is healthy.
    pub(crate) async fn until_healthy(&self, plural: &str, name: &str) {
        for _ in 0..3_000 {
            self.make_ready().await;
            let (_, object) = self.call("GET", &format!("{OURS}/{plural}/{name}"), None).await;
            if object["status"]["state"] == "Healthy" {
                return;
            }
            self.pass(Duration::from_millis(20)).await;
        }
        let (_, object) = self.call("GET", &format!("{OURS}/{plural}/{name}"), None).await;
        panic!("{name} is not healthy: {}", object["status"]);
    }

    async fn make_ready(&self) {
        let base = "/apis/apps/v1/namespaces/istio-system/deployments";
        let (_, list) = self.call("GET", base, None).await;
        for object in list["items"].as_array().into_iter().flatten() {
            if object["status"]["readyReplicas"] != 1 {
                let name = object["metadata"]["name"].as_str().unwrap();
                let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1, "observedGeneration": object["metadata"]["generation"]}});
                self.accepted("PATCH", &format!("{base}/{name}/status"), Some(&status))
                    .await;
            }
        }
    }

    pub(crate) async fn until_in_use(&self, revision: &str, status: &str) {
        let path = format!("{OURS}/istiorevisions/{revision}");
        for _ in 0..5_000 {
            let (_, object) = self.call("GET", &path, None).await;
            let conditions = object["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if conditions
                .iter()
                .any(|one| one["type"] == "InUse" && one["status"] == status)
            {
                return;
            }
            self.pass(Duration::from_millis(1)).await;
        }
        panic!("{revision} never has InUse={status}");
    }

    /// Returns the number of objects with the operator's label.
    pub(crate) async fn installed(&self) -> usize {
        let mut count = 0;
        for path in INSTALLED {
            let (_, list) = self
                .call(
                    "GET",
                    &format!("{path}?labelSelector=managed-by%3Dsail-operator"),
                    None,
                )
                .await;
            count += list["items"].as_array().map_or(0, Vec::len);
        }
        count
    }

    /// Waits until the operator has sent no request for two seconds.
    pub(crate) async fn quiet(&self) {
        loop {
            let audit = self.audit();
            self.pass(Duration::from_secs(2)).await;
            if audit.counts().lines.is_empty() {
                return;
            }
        }
    }

    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    pub(crate) fn audit(&self) -> Counter {
        let mut audit = self.cluster.audit();
        audit.reset().unwrap();
        Counter(audit)
    }

    pub(crate) async fn accepted(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (code, response) = self.call(method, path, body).await;
        assert!(code < 300, "{method} {path}: {code} {response}");
        response
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let content = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(Body::from(bytes))
            .unwrap();
        let reply = self.client.send(request).await.unwrap();
        let code = reply.status().as_u16();
        let bytes = reply.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

impl Counter {
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts {
            reads: 0,
            watches: 0,
            writes: 0,
            lines: Vec::new(),
        };
        for entry in self.0.entries().unwrap() {
            if entry.user != OPERATOR || entry.uri.contains("/leases") {
                continue;
            }
            match entry.verb.as_str() {
                "watch" => counts.watches += 1,
                _ if entry.is_read() => counts.reads += 1,
                _ => counts.writes += 1,
            }
            if entry.verb != "watch" {
                counts
                    .lines
                    .push(format!("{} {} {}", entry.verb, entry.uri, entry.code));
            }
        }
        counts
    }

    /// Returns the number of writes of the object that was written most.
    pub(crate) fn most_writes_of_one<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
        let mut objects: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines {
            let mut words = line.split(' ');
            let (verb, uri) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if ["get", "list"].contains(&verb) {
                continue;
            }
            // A create does not name its object in the path: each counts as one object.
            if verb != "create" {
                *objects
                    .entry(uri.split('?').next().unwrap_or_default().to_owned())
                    .or_default() += 1;
            }
        }
        objects.values().copied().max().unwrap_or(0)
    }
}
