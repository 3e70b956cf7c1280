//! Cleanup between scenarios: deletes the cluster-scoped objects that were created since the start.

use std::collections::BTreeSet;

use http::Request;
use kube::Client;
use serde_json::Value;

/// Collections of cluster-scoped objects that scenarios create.
const COLLECTIONS: [&str; 15] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/networking.k8s.io/v1/ingressclasses",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/api/v1/persistentvolumes",
    "/api/v1/nodes",
    "/api/v1/namespaces",
];

pub(crate) struct Cleanup {
    client: Client,
    known: BTreeSet<String>,
}

impl Cleanup {
    pub(crate) async fn prepare(client: Client) -> Self {
        let known = list_paths(&client).await;
        Self { client, known }
    }

    pub(crate) async fn run(&self) {
        for path in list_paths(&self.client).await.difference(&self.known) {
            let request = Request::delete(path).body(Vec::new()).unwrap();
            // Errors are ignored: an object that is being deleted may no longer exist.
            let _ = self.client.request_text(request).await;
        }
    }
}

async fn list_paths(client: &Client) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for collection in COLLECTIONS {
        let request = Request::get(collection).body(Vec::new()).unwrap();
        let list: Value = client.request(request).await.unwrap();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let alive = items
            .iter()
            .filter(|item| item["metadata"]["deletionTimestamp"].is_null());
        paths
            .extend(alive.map(|item| format!("{collection}/{}", item["metadata"]["name"].as_str().unwrap())));
    }
    paths
}
