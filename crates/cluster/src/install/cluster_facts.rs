//! Facts about a cluster that decisions about installations and upgrades depend on.

use std::collections::BTreeMap;

use http::Method;
use kube::Client;
use mainstay_catalog::Version;
use mainstay_manifest::{ControlPlane, InstallationPlan, NetworkSettings, Object};
use mainstay_yaml::{Budget, Numbers, parse_json};
use serde_json::{Value, json};

use super::error::InstallError;
use super::{Installer, api, member};
use crate::apply::Preview;
use crate::desired::ObjectId;
use crate::write::Body;

/// Field manager for comparisons. It owns no fields, so its applies remove none.
const COMPARING_MANAGER: &str = "mainstay-diff";

/// Facts about a cluster.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// Version of Kubernetes, such as `v1.36.4`.
    pub kube_version: String,
    /// Minor version of Kubernetes, such as 36; 0 if it is unknown.
    pub kube_minor: u64,
    /// Control planes of any installer.
    pub control_planes: Vec<ControlPlane>,
    /// Settings of network plugins.
    pub network: NetworkSettings,
}

/// Reads the facts from the cluster.
pub async fn read_cluster_facts(client: &Client) -> Result<ClusterFacts, InstallError> {
    let version = api::get(client, "/version").await?.unwrap_or_default();
    let text = |name: &str| version.get(name).and_then(Value::as_str).unwrap_or_default();
    // Some providers append a plus sign.
    let minor: String = text("minor").chars().take_while(char::is_ascii_digit).collect();
    let deployments = api::list(client, "/apis/apps/v1/deployments", "app=istiod").await?;
    Ok(ClusterFacts {
        kube_version: text("gitVersion").to_owned(),
        kube_minor: minor.parse().unwrap_or_default(),
        control_planes: deployments.iter().map(parse_control_plane).collect(),
        network: NetworkSettings {
            calico: read_scalars(client, CALICO, "spec").await,
            cilium: read_scalars(client, CILIUM, "data").await,
        },
    })
}

/// API path of Calico's configuration of its nodes.
const CALICO: &str = "/apis/projectcalico.org/v3/felixconfigurations/default";
/// API path of Cilium's configuration.
const CILIUM: &str = "/api/v1/namespaces/kube-system/configmaps/cilium-config";

/// Returns the strings and booleans of a map in an object as text; empty if the object does not exist or
/// cannot be read.
async fn read_scalars(client: &Client, path: &str, map: &str) -> BTreeMap<String, String> {
    let object = api::get(client, path).await.ok().flatten().unwrap_or_default();
    let entries = object.get(map).and_then(Value::as_object).into_iter().flatten();
    let scalars = entries.filter_map(|(key, value)| match value {
        Value::String(text) => Some((key.clone(), text.clone())),
        Value::Bool(flag) => Some((key.clone(), flag.to_string())),
        _ => None,
    });
    scalars.collect()
}

fn parse_control_plane(deployment: &Value) -> ControlPlane {
    let label = |name: &str| {
        deployment
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(name)?.as_str())
    };
    let revision = label("istio.io/rev").unwrap_or("default");
    let containers = deployment
        .pointer("/spec/template/spec/containers")
        .and_then(Value::as_array);
    let image = containers
        .and_then(|all| all.first()?.get("image")?.as_str())
        .unwrap_or_default();
    let versions = [
        label("operator.istio.io/version"),
        label("app.kubernetes.io/version"),
        image_tag(image),
    ];
    ControlPlane {
        revision: revision.to_owned(),
        version: versions
            .into_iter()
            .flatten()
            .find_map(|text| text.parse::<Version>().ok()),
    }
}

/// Returns the tag of an image without its variant: `1.29.1` for `registry/pilot:1.29.1-distroless`.
fn image_tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    Some(tag.trim_end_matches("-distroless").trim_end_matches("-debug"))
}

impl Installer {
    /// Returns the live mutating webhook configurations.
    pub async fn webhooks(&self) -> Result<Vec<mainstay_yaml::Value>, InstallError> {
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let found = api::list(&self.client, path, "").await?;
        Ok(found.iter().filter_map(to_yaml).collect())
    }

    /// Returns the missing permissions to create and patch the resources of a plan, with the server's
    /// reasons.
    pub async fn denied_permissions(
        &self,
        plan: &InstallationPlan,
    ) -> Result<Vec<(String, String)>, InstallError> {
        let mut resources = std::collections::BTreeSet::from([("", "namespaces".to_owned(), String::new())]);
        let mut others = std::collections::BTreeSet::new();
        for planned in &plan.components {
            for id in member::to_json(&planned.objects)?
                .iter()
                .filter_map(|it| ObjectId::from_object(it).ok())
            {
                others.insert((id.group_kind(), id.namespace));
            }
        }
        let kinds = others.iter().map(|(kind, _)| kind.clone()).collect();
        let served = api::discover(&self.client, &kinds).await?;
        for kind in &served {
            let name = if kind.group.is_empty() {
                kind.kind.clone()
            } else {
                format!("{}.{}", kind.kind, kind.group)
            };
            let used = others.iter().filter(|(one, _)| *one == name);
            resources.extend(
                used.map(|(_, namespace)| (kind.group.as_str(), kind.plural.clone(), namespace.clone())),
            );
        }
        let mut denied = Vec::new();
        for (group, resource, namespace) in resources {
            for verb in ["create", "patch"] {
                let reason = self.review_access(verb, group, &resource, &namespace).await?;
                denied.extend(
                    reason.map(|reason| (format!("{verb} {}", qualified_resource(&resource, group)), reason)),
                );
            }
        }
        Ok(denied)
    }

    /// Reviews whether the user is allowed to make a call. Returns the reason if not.
    async fn review_access(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<Option<String>, InstallError> {
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace});
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let sent = api::send(&self.client, Method::POST, path, Body::Json(body)).await;
        let reviewed = sent.map_err(|error| InstallError::read("permissions", error))?;
        let is_allowed = reviewed.pointer("/status/allowed") == Some(&Value::Bool(true));
        let reason = reviewed
            .pointer("/status/reason")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let reason = if reason.is_empty() {
            "permission denied"
        } else {
            reason
        };
        Ok((!is_allowed).then(|| reason.to_owned()))
    }

    /// Returns the kinds of the Gateway API with their served versions.
    pub async fn gateway_definitions(&self) -> Result<Vec<(String, Vec<String>)>, InstallError> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let found = api::list(&self.client, path, "").await?;
        let ours = found
            .iter()
            .filter(|it| it.pointer("/spec/group") == Some(&json!("gateway.networking.k8s.io")));
        let served = |definition: &Value| {
            let kind = definition.pointer("/spec/names/kind")?.as_str()?.to_owned();
            let versions = definition.pointer("/spec/versions")?.as_array()?.iter();
            let served = versions.filter(|version| version.get("served") == Some(&Value::Bool(true)));
            Some((
                kind,
                served
                    .filter_map(|version| Some(version.get("name")?.as_str()?.to_owned()))
                    .collect(),
            ))
        };
        Ok(ours.filter_map(served).collect())
    }

    /// Returns previews of applying these objects without the ownership marks of an installation.
    pub async fn compare_with_live(&self, objects: &[Object]) -> Result<Vec<Preview>, InstallError> {
        let mut previews = Vec::new();
        for body in member::to_json(objects)? {
            let Ok(id) = ObjectId::from_object(&body) else {
                continue;
            };
            let failed = |error| set_error(&id, error);
            let (served, unserved) = self.engine.split_served(vec![body]).await.map_err(failed)?;
            for body in served {
                previews.push(
                    self.engine
                        .preview_as(&body, COMPARING_MANAGER)
                        .await
                        .map_err(failed)?,
                );
            }
            previews.extend(unserved.into_iter().filter_map(super::unserved_preview));
        }
        Ok(previews)
    }
}

fn set_error(id: &ObjectId, error: crate::apply::ApplyError) -> InstallError {
    InstallError::Set {
        set: super::error::label(id),
        error: Box::new(error),
    }
}

fn qualified_resource(resource: &str, group: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

fn to_yaml(object: &Value) -> Option<mainstay_yaml::Value> {
    parse_json(object.to_string(), Numbers::Exact, &Budget::default()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_labels_or_the_image() {
        let plane = |labels: Value, image: &str| {
            let deployment = json!({"metadata": {"labels": labels},
                "spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
            let found = parse_control_plane(&deployment);
            format!(
                "{} {}",
                found.revision,
                found.version.map(|it| it.to_string()).unwrap_or_default()
            )
        };
        assert_eq!(
            plane(json!({"operator.istio.io/version": "1.28.2"}), "x:1.29.1"),
            "default 1.28.2"
        );
        assert_eq!(
            plane(json!({"istio.io/rev": "a"}), "r:5000/pilot:1.29.1-distroless"),
            "a 1.29.1"
        );
        assert_eq!(plane(json!({}), "r:5000/pilot"), "default ");
        assert_eq!(plane(json!({}), "r/pilot@sha256:00"), "default ");
    }
}
