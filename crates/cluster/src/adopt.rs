//! API calls of an adoption: reads meshes of other installers, patches ownership, and writes resources.

use http::Method;
use kube::Client;
use mainstay_api::{ObjectKind, names};
use serde_json::{Value, json};

use crate::apply::ADOPTED_MANAGER;
use crate::desired::{Kind, Kinds, ObjectId};
use crate::survey::list::{ObjectContent, list};
use crate::write::{Body, WriteError, Writer};

/// Selector of the Deployments of control planes.
const ISTIOD: &str = "labelSelector=app%3Distiod";
/// Selector of the webhook configurations of injectors and tags.
const INJECTORS: &str = "labelSelector=app%3Dsidecar-injector";
/// Selector of the Secrets in which Helm stores its releases.
const HELM_RELEASES: &str = "labelSelector=owner%3Dhelm&fieldSelector=type%3Dhelm.sh%2Frelease.v1";
/// Selectors of the node agents: the CNI plugin and ztunnel.
const NODE_AGENTS: [&str; 2] = [
    "labelSelector=k8s-app%3Distio-cni-node",
    "labelSelector=app.kubernetes.io%2Fname%3Dztunnel",
];
/// API path of the resources of the in-cluster operator.
const OPERATORS: &str = "/apis/install.istio.io/v1alpha1/istiooperators";
/// Path of the label by which gateways are recognized. Only their pod templates have it, so a selector
/// cannot find them and all Deployments are read.
const GATEWAY_LABEL: &str = "/spec/template/metadata/labels/istio";

/// Objects of meshes in a cluster that other installers manage.
#[derive(Clone, Debug, Default)]
pub struct InstalledMesh {
    /// Secrets of Helm's releases; empty if they cannot be read.
    pub secrets: Vec<Value>,
    /// Deployments of istiod.
    pub deployments: Vec<Value>,
    /// `DaemonSets` of the CNI plugin and of ztunnel.
    pub daemon_sets: Vec<Value>,
    /// Webhook configurations of injectors and tags.
    pub webhooks: Vec<Value>,
    /// `ConfigMaps` in which charts record their values.
    pub values: Vec<Value>,
    /// Deployments of gateways.
    pub gateways: Vec<Value>,
    /// Error of reading Helm's releases; `None` if the Secrets could be read.
    pub secrets_error: Option<String>,
    /// `IstioOperator`s of the in-cluster operator, which Istio contained up to 1.23.
    pub operators: Vec<Value>,
}

/// Reads the control planes, node agents, gateways and Helm releases of a cluster.
pub async fn read_installed_mesh(client: &Client) -> Result<InstalledMesh, WriteError> {
    let deployments = list::<Value>(client, "/apis/apps/v1/deployments", "", ObjectContent::Full).await?;
    let is_istiod = |object: &Value| object.pointer("/metadata/labels/app") == Some(&json!("istiod"));
    let mut found = InstalledMesh {
        webhooks: read_injectors(client).await?,
        ..InstalledMesh::default()
    };
    for object in deployments.into_iter().map(deployment) {
        if is_istiod(&object) {
            found.deployments.push(object);
        } else if object.pointer(GATEWAY_LABEL).is_some() {
            found.gateways.push(object);
        }
    }
    for selector in NODE_AGENTS {
        let listed = list::<Value>(client, "/apis/apps/v1/daemonsets", selector, ObjectContent::Full).await?;
        found.daemon_sets.extend(
            listed
                .into_iter()
                .map(|object| with_kind(object, "apps/v1", "DaemonSet")),
        );
    }
    found.values = read_values(client, &found.deployments).await?;
    // The list fails if the definition does not exist; then there are no such resources.
    let operators = list::<Value>(client, OPERATORS, "", ObjectContent::Full).await;
    found.operators = operators.unwrap_or_default();
    match list::<Value>(client, "/api/v1/secrets", HELM_RELEASES, ObjectContent::Full).await {
        Ok(secrets) => found.secrets = secrets,
        Err(error) => found.secrets_error = Some(error.message),
    }
    Ok(found)
}

/// Reads the Deployments of control planes.
pub(crate) async fn read_planes(client: &Client) -> Result<Vec<Value>, WriteError> {
    list::<Value>(client, "/apis/apps/v1/deployments", ISTIOD, ObjectContent::Full).await
}

/// Reads the webhook configurations of injectors and tags.
pub(crate) async fn read_injectors(client: &Client) -> Result<Vec<Value>, WriteError> {
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    list::<Value>(client, path, INJECTORS, ObjectContent::Full).await
}

fn deployment(object: Value) -> Value {
    with_kind(object, "apps/v1", "Deployment")
}

/// Adds `apiVersion` and `kind`, which items of a list lack.
fn with_kind(mut object: Value, api_version: &str, kind: &str) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), api_version.into());
        map.insert("kind".into(), kind.into());
    }
    object
}

/// Reads the `ConfigMap`s in which the charts of control planes record their values.
async fn read_values(client: &Client, planes: &[Value]) -> Result<Vec<Value>, WriteError> {
    let mut values = Vec::new();
    for plane in planes {
        let text = |at: &str| plane.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let suffix = text("/metadata/name").trim_start_matches("istiod");
        let path = format!(
            "/api/v1/namespaces/{}/configmaps/values{suffix}",
            text("/metadata/namespace")
        );
        match Writer::new(client.clone()).call(Method::GET, &path, None).await {
            Ok(object) => values.push(object),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values)
}

/// Reads and writes single objects of the kinds in charts and of our kinds.
#[derive(Debug)]
pub struct Adopter {
    writer: Writer,
    kinds: Kinds,
}

impl Adopter {
    /// Creates an adopter that uses `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let mut kinds = Kinds::default();
        let definition = Kind {
            plural: "customresourcedefinitions".to_owned(),
            is_namespaced: false,
        };
        kinds.insert("apiextensions.k8s.io", "CustomResourceDefinition", definition);
        Self {
            writer: Writer::new(client),
            kinds,
        }
    }

    /// Returns the known kinds.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the version of the server, such as `v1.36.4`.
    pub async fn server_version(&self) -> Result<String, WriteError> {
        let version = self.writer.call(Method::GET, "/version", None).await?;
        let text = version.get("gitVersion").and_then(Value::as_str);
        Ok(text.unwrap_or_default().to_owned())
    }

    /// Reads an object of one of our kinds; `None` if it or its definition does not exist.
    pub async fn resource(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, WriteError> {
        self.writer.get(kind, name).await
    }

    /// Removes the namespace of a cluster-scoped object. For a namespaced object without a namespace, sets
    /// that of the release.
    pub fn set_namespace(&self, id: &mut ObjectId, release_namespace: &str) {
        match self.kinds.get(&id.group, &id.kind) {
            Some(kind) if !kind.is_namespaced => id.namespace.clear(),
            Some(_) if id.namespace.is_empty() => release_namespace.clone_into(&mut id.namespace),
            _ => {}
        }
    }

    /// Reads an object; `None` if it does not exist.
    pub async fn get(&self, id: &ObjectId) -> Result<Option<Value>, WriteError> {
        let Some(path) = self.path(id) else {
            return Ok(None);
        };
        match self.writer.call(Method::GET, &path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a JSON patch.
    pub async fn patch(&self, id: &ObjectId, changes: &Value) -> Result<Value, WriteError> {
        let place = self.path(id).unwrap_or_default();
        let place = format!("{place}?fieldManager={ADOPTED_MANAGER}");
        let body = Body::Patch(changes.clone());
        self.writer.call(Method::PATCH, &place, Some(body)).await
    }

    /// Creates an object of one of our kinds, or reads the existing one. Returns whether the object was
    /// created, and the object.
    pub async fn ensure(&self, kind: ObjectKind, object: &Value) -> Result<(bool, Value), WriteError> {
        let collection = format!("/apis/{}/{}", names::API_VERSION, kind.plural());
        let path = format!("{collection}?fieldManager={ADOPTED_MANAGER}");
        match self
            .writer
            .call(Method::POST, &path, Some(Body::Json(object.clone())))
            .await
        {
            Ok(made) => Ok((true, made)),
            Err(error) if error.code == 409 => {
                let name = object
                    .pointer("/metadata/name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let path = format!("{collection}/{name}");
                Ok((false, self.writer.call(Method::GET, &path, None).await?))
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an object of one of our kinds and removes its finalizers. A missing object counts as
    /// deleted.
    pub async fn delete(&self, kind: ObjectKind, name: &str) -> Result<(), WriteError> {
        let path = format!("/apis/{}/{}/{name}", names::API_VERSION, kind.plural());
        let without = Body::Merge(json!({"metadata": {"finalizers": null}}));
        let ignore_not_found = |response: Result<Value, WriteError>| match response {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        };
        ignore_not_found(self.writer.call(Method::DELETE, &path, None).await)?;
        ignore_not_found(self.writer.call(Method::PATCH, &path, Some(without)).await)
    }

    /// Creates or replaces an object.
    pub async fn put(&self, id: &ObjectId, object: &Value) -> Result<Value, WriteError> {
        let path = self.path(id).unwrap_or_default();
        let collection = path
            .rsplit_once('/')
            .map_or(path.as_str(), |(collection, _)| collection);
        let place = format!("{collection}?fieldManager={ADOPTED_MANAGER}");
        match self
            .writer
            .call(Method::POST, &place, Some(Body::Json(object.clone())))
            .await
        {
            Err(error) if error.code == 409 => {
                let place = format!("{path}?fieldManager={ADOPTED_MANAGER}");
                self.writer
                    .call(Method::PUT, &place, Some(Body::Json(object.clone())))
                    .await
            }
            response => response,
        }
    }

    /// Deletes an object. A missing object counts as deleted.
    pub async fn remove(&self, id: &ObjectId) -> Result<(), WriteError> {
        let path = self.path(id).unwrap_or_default();
        match self.writer.call(Method::DELETE, &path, None).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, id: &ObjectId) -> Option<String> {
        let plural = match (id.group.as_str(), id.kind.as_str()) {
            ("", "Secret") => "secrets",
            (group, kind) => &self.kinds.get(group, kind)?.plural,
        };
        let root = if id.group.is_empty() { "api" } else { "apis" };
        let base = format!("/{root}/{}", id.api_version());
        Some(if id.namespace.is_empty() {
            format!("{base}/{plural}/{}", id.name)
        } else {
            format!("{base}/namespaces/{}/{plural}/{}", id.namespace, id.name)
        })
    }
}
