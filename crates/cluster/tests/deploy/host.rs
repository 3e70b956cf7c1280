//! A simulated or real cluster that provides clients for any account.

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_cluster::kinds::installed_kinds;
use mainstay_sim::auth::User;
use mainstay_testkit::cluster::{Cluster, Options};
use serde_json::{Value, json};

/// A simulated or real cluster.
pub(crate) enum Host {
    Simulated(mainstay_sim::Cluster),
    Real(Box<Cluster>),
}

impl Host {
    pub(crate) fn simulated() -> Self {
        Self::Simulated(mainstay_sim::Cluster::default())
    }

    pub(crate) async fn real() -> Self {
        Self::Real(Box::new(Cluster::start(Options::default()).await.unwrap()))
    }

    /// Returns a client for an account; `None` is the administrator.
    pub(crate) async fn client(&self, account: Option<&str>) -> Client {
        let groups = [
            "system:authenticated",
            "system:serviceaccounts",
            "system:serviceaccounts:sail-operator",
        ];
        match (self, account) {
            (Self::Simulated(cluster), None) => Client::new(cluster.connect("test"), "default"),
            (Self::Simulated(cluster), Some(name)) => {
                Client::new(cluster.connect_as("test", User::named(name, &groups)), "default")
            }
            (Self::Real(cluster), None) => cluster.client("admin").unwrap(),
            (Self::Real(cluster), Some(name)) => {
                let mut config = cluster_config(cluster).await;
                config.auth_info.impersonate = Some(name.to_owned());
                config.auth_info.impersonate_groups = Some(groups.map(ToOwned::to_owned).to_vec());
                mainstay_cluster::connect::connect(config).unwrap()
            }
        }
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.apply(None, &object).await.unwrap();
    }

    /// Applies an object. Returns the server's message if the object is rejected.
    pub(crate) async fn apply(&self, account: Option<&str>, object: &Value) -> Result<(), String> {
        let path = format!("{}?fieldManager=mainstay&force=true", path(object));
        let request = Request::patch(path)
            .header("content-type", "application/apply-patch+yaml")
            .body(Body::from(object.to_string().into_bytes()))
            .unwrap();
        let response = self.client(account).await.send(request).await.unwrap();
        let success = response.status().is_success();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if success {
            Ok(())
        } else {
            Err(body["message"].as_str().unwrap_or_default().to_owned())
        }
    }

    /// Creates an object at `path`. Returns the server's response.
    pub(crate) async fn create(&self, account: Option<&str>, path: &str, object: &Value) -> Value {
        self.send(account, "POST", path, object).await
    }

    /// Sends a request. Returns the server's response.
    pub(crate) async fn send(
        &self,
        account: Option<&str>,
        method: &str,
        path: &str,
        object: &Value,
    ) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(object.to_string().into_bytes()))
            .unwrap();
        let response = self.client(account).await.send(request).await.unwrap();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Creates an object at `path` in a dry run. Returns the server's warnings.
    pub(crate) async fn warnings(&self, path: &str, object: &Value) -> Vec<String> {
        let request = Request::post(format!("{path}?dryRun=All"))
            .header("content-type", "application/json")
            .body(Body::from(object.to_string().into_bytes()))
            .unwrap();
        let response = self.client(None).await.send(request).await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        let warnings = response.headers().get_all("warning").iter();
        warnings
            .map(|warning| warning.to_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn delete_object(&self, object: &Value) {
        self.delete(&path(object)).await;
    }

    pub(crate) async fn delete(&self, path: &str) {
        let request = Request::delete(path).body(Body::empty()).unwrap();
        let response = self.client(None).await.send(request).await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
    }
}

async fn cluster_config(cluster: &Cluster) -> kube::Config {
    let text = std::fs::read_to_string(cluster.kubeconfig("admin")).unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap()
}

/// Kinds besides those that Istio's charts install: ours, and those of our chart. Kind, plural, and
/// whether it is namespaced.
const OTHERS: &[(&str, &str, bool)] = &[
    ("Namespace", "namespaces", false),
    ("Pod", "pods", true),
    ("Job", "jobs", true),
    ("Secret", "secrets", true),
    ("StatefulSet", "statefulsets", true),
    ("CustomResourceDefinition", "customresourcedefinitions", false),
    ("Istio", "istios", false),
    ("IstioRevisionTag", "istiorevisiontags", false),
    ("IstioCNI", "istiocnis", false),
    ("ZTunnel", "ztunnels", false),
];

fn path(object: &Value) -> String {
    let (api_version, kind) = (
        object["apiVersion"].as_str().unwrap(),
        object["kind"].as_str().unwrap(),
    );
    let installed = installed_kinds()
        .find(|known| known.kind == kind)
        .map(|known| (known.plural, known.namespaced));
    let other = || {
        OTHERS
            .iter()
            .find(|(known, ..)| *known == kind)
            .map(|(_, plural, namespaced)| (*plural, *namespaced))
    };
    let (plural, namespaced) = installed
        .or_else(other)
        .unwrap_or_else(|| panic!("unknown kind {kind}"));
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let name = object["metadata"]["name"].as_str().unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("istio-system");
    if namespaced {
        format!("/{root}/{api_version}/namespaces/{namespace}/{plural}/{name}")
    } else {
        format!("/{root}/{api_version}/{plural}/{name}")
    }
}
