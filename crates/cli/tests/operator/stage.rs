//! A simulated cluster served over HTTPS, with the custom resource definitions of Mainstay.

use std::path::PathBuf;

use kube::api::{DynamicObject, GroupVersionKind, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_sim::{Cluster, Options};
use serde_json::{Value, json};

/// A served cluster.
pub(crate) struct Stage {
    pub(crate) admin: Client,
    directory: tempfile::TempDir,
    _server: Server,
}

impl Stage {
    /// Starts a cluster without our definitions.
    pub(crate) async fn bare() -> Self {
        let cluster = Cluster::new(Options::default());
        cluster.run_workloads(1);
        let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let text = server.kubeconfig(User::admin()).unwrap();
        std::fs::write(directory.path().join("kubeconfig"), text).unwrap();
        Self {
            admin: Client::new(cluster.connect("admin"), "default"),
            directory,
            _server: server,
        }
    }

    /// Starts a cluster with our definitions and the namespaces of the mesh and the operator.
    pub(crate) async fn new() -> Self {
        let stage = Self::bare().await;
        for definition in definitions() {
            stage
                .create(
                    "apiextensions.k8s.io/v1",
                    "CustomResourceDefinition",
                    None,
                    definition,
                )
                .await;
        }
        for name in ["istio-system", "sail-operator"] {
            stage
                .create("v1", "Namespace", None, json!({"metadata": {"name": name}}))
                .await;
        }
        stage
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) async fn create(&self, version: &str, kind: &str, namespace: Option<&str>, mut body: Value) {
        body["apiVersion"] = version.into();
        body["kind"] = kind.into();
        let object: DynamicObject = serde_json::from_value(body).unwrap();
        let api = self.api(version, kind, namespace);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        }
    }

    pub(crate) async fn state(&self, kind: &str, name: &str) -> String {
        let object = self
            .api("sailoperator.io/v1", kind, None)
            .get_opt(name)
            .await
            .unwrap();
        let state = object.and_then(|object| object.data["status"]["state"].as_str().map(str::to_owned));
        state.unwrap_or_default()
    }
}

fn definitions() -> Vec<Value> {
    let catalog = mainstay_catalog::Catalog::embedded().unwrap();
    mainstay_cluster::definitions::own_definitions(&catalog).unwrap()
}
