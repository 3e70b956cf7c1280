//! Finds control planes that no operator manages by their Deployments and webhooks.

use kube::Client;
use serde_json::Value;

use crate::adopt::{read_injectors, read_planes};
use crate::installer::{Installer, revision, tags, text, versions};
use crate::write::WriteError;

/// A control plane that no operator manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmanagedPlane {
    /// Revision; `default` if the control plane has none.
    pub revision: String,
    /// Namespace of the Deployment.
    pub namespace: String,
    /// Name of the Deployment.
    pub deployment: String,
    /// Istio version; `None` if it cannot be determined.
    pub version: Option<String>,
    /// Tool that installed the control plane.
    pub installer: Installer,
    /// Number of replicas.
    pub replicas: i32,
    /// Number of ready replicas.
    pub ready: i32,
    /// Revision tags of the control plane, sorted.
    pub tags: Vec<String>,
}

/// Returns the unmanaged control planes, sorted by namespace and revision.
pub(super) async fn read_unmanaged_planes(client: &Client) -> Result<Vec<UnmanagedPlane>, WriteError> {
    let planes = read_planes(client).await?;
    let is_managed = |object: &Value| matches!(Installer::from_object(object), Installer::Operator { .. });
    let planes: Vec<Value> = planes.into_iter().filter(|object| !is_managed(object)).collect();
    if planes.is_empty() {
        return Ok(Vec::new());
    }
    let webhooks = read_injectors(client).await.unwrap_or_default();
    let mut planes: Vec<UnmanagedPlane> = planes
        .iter()
        .map(|object| parse_plane(object, &webhooks))
        .collect();
    planes.sort_by(|a, b| (&a.namespace, &a.revision).cmp(&(&b.namespace, &b.revision)));
    Ok(planes)
}

fn parse_plane(object: &Value, webhooks: &[Value]) -> UnmanagedPlane {
    let (namespace, revision) = (text(object, "/metadata/namespace"), revision(object));
    UnmanagedPlane {
        revision: revision.to_owned(),
        namespace: namespace.to_owned(),
        deployment: text(object, "/metadata/name").to_owned(),
        version: versions(object).into_iter().next(),
        installer: Installer::from_object(object),
        replicas: super::status_count(object, "replicas"),
        ready: super::status_count(object, "readyReplicas"),
        tags: tags(webhooks, namespace, revision),
    }
}
