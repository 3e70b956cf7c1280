//! Control planes that no operator manages. The rehearsal assumes that they are adopted.

use mainstay_adopt::{Installer, Observed, assume_adoptions};
use mainstay_api::names;
use mainstay_catalog::Catalog;
use serde_json::{Value, json};

use crate::input::{Input, at, text};

/// A control plane that was rehearsed as if it were adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdoptedPlane {
    /// Revision of the control plane, which is the name of the assumed Istio.
    pub(crate) revision: String,
    /// Description of the control plane and its installer.
    pub(crate) what: String,
}

/// An input in which every control plane belongs to an Istio.
pub(crate) struct AdoptedInput {
    pub(crate) input: Input,
    pub(crate) planes: Vec<AdoptedPlane>,
}

/// Returns the input with the Istios that an adoption would create, if it contains no Istio or lacks the
/// requested one. The objects of these control planes are removed, because the operator installs equal
/// ones.
pub(crate) fn adopt_planes(input: Input, requested: Option<&str>, catalog: &Catalog) -> AdoptedInput {
    let is_complete = input
        .of_kind("Istio")
        .any(|istio| requested.is_none_or(|name| text(&istio, "/metadata/name") == name));
    let mut adopted = AdoptedInput {
        input,
        planes: Vec::new(),
    };
    if is_complete {
        return adopted;
    }
    for assumed in assume_adoptions(&observe(&adopted.input), catalog) {
        let plane = &assumed.plane;
        let input = &mut adopted.input;
        input.remove_in(&plane.namespace, |object| {
            belongs_to(object, &plane.namespace, &plane.revision)
        });
        input.add(&assumed.documents());
        adopted.planes.push(AdoptedPlane {
            what: assumed.describe(),
            revision: plane.revision.clone(),
        });
    }
    adopted
}

/// Whether the cluster has a control plane that no operator manages.
pub(crate) fn has_planes(input: &Input) -> bool {
    let is_managed = |plane: &Value| matches!(Installer::from_object(plane), Installer::Operator { .. });
    !observe(input).deployments.iter().all(is_managed)
}

fn observe(input: &Input) -> Observed {
    let has = |object: &Value, label: &str, value: &str| {
        at(object, "/metadata/labels").and_then(|labels| labels.get(label)) == Some(&json!(value))
    };
    let all = |kind: &str| input.of_kind(kind);
    Observed {
        deployments: all("Deployment")
            .filter(|one| has(one, "app", "istiod"))
            .collect(),
        webhooks: all("MutatingWebhookConfiguration").collect(),
        values: all("ConfigMap").collect(),
        ..Observed::default()
    }
}

/// Whether an object belongs to a control plane: its workload, Services, configuration or webhooks.
fn belongs_to(object: &Value, namespace: &str, revision: &str) -> bool {
    let label = |name: &str| {
        let labels = at(object, "/metadata/labels").and_then(|labels| labels.get(name));
        labels.and_then(Value::as_str).unwrap_or_default()
    };
    let own = match label(names::REVISION_LABEL) {
        "" => names::DEFAULT_REVISION,
        revision => revision,
    };
    let kind = text(object, "/kind");
    if kind == "MutatingWebhookConfiguration" {
        return own == revision && label("app") == "sidecar-injector";
    }
    let is_here = text(object, "/metadata/namespace") == namespace && own == revision;
    let is_part = match kind {
        "Deployment" | "ReplicaSet" | "Pod" | "Service" | "PodDisruptionBudget" => {
            label("app") == "istiod" || label("istio") == "pilot"
        }
        "ConfigMap" => {
            let name = text(object, "/metadata/name");
            ["istio", "istio-sidecar-injector", "values"].iter().any(|start| {
                let rest = name.strip_prefix(start);
                rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-') == Some(revision))
            })
        }
        _ => false,
    };
    is_here && is_part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(labels: &Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "istiod", "namespace": "istio-system", "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": "istiod"}}, "template": {
                "metadata": {"labels": {"app": "istiod"}},
                "spec": {"containers": [{"name": "discovery", "image": "hub/pilot:1.28.2"}]},
            }},
        })
    }

    fn adopted(objects: Vec<Value>) -> (Vec<String>, Vec<String>) {
        let catalog = Catalog::embedded().unwrap();
        let input = Input::from_objects("test".to_owned(), objects).unwrap();
        let adopted = adopt_planes(input, None, &catalog);
        let objects = adopted.input.all();
        let names = objects.map(|one| format!("{} {}", text(&one, "/kind"), text(&one, "/metadata/name")));
        (
            names.collect(),
            adopted.planes.into_iter().map(|plane| plane.what).collect(),
        )
    }

    #[test]
    fn an_unmanaged_control_plane_becomes_an_istio() {
        let labels =
            json!({"app": "istiod", "istio.io/rev": "default", "operator.istio.io/managed": "Reconcile"});
        let tag = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "istio-revision-tag-prod", "labels": {
                "app": "sidecar-injector", "istio.io/rev": "default", "istio.io/tag": "prod"}},
            "webhooks": [{"name": "a", "clientConfig": {"service": {"name": "istiod", "namespace": "istio-system"}}}],
        });
        let (objects, planes) = adopted(vec![plane(&labels), tag]);
        assert_eq!(objects, ["Istio default", "IstioRevisionTag prod"]);
        assert_eq!(
            planes,
            ["control plane default in namespace istio-system, installed by istioctl"]
        );
    }

    #[test]
    fn an_input_with_an_istio_is_unchanged() {
        let istio =
            json!({"apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "prod"}});
        let (objects, planes) = adopted(vec![istio, plane(&json!({"app": "istiod"}))]);
        assert_eq!(objects, ["Istio prod", "Deployment istiod"]);
        assert!(planes.is_empty());
    }
}
