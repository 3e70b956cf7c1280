//! Determines the installer, revision and version of the workload of a control plane or node agent. Pure.

use mainstay_api::names;
use serde::Serialize;
use serde_json::Value;

use crate::desired::{HELM_NAME, HELM_NAMESPACE};

/// Label that istioctl adds to the labels of the charts.
const ISTIOCTL_MANAGED: &str = "operator.istio.io/managed";
/// Field manager of istioctl.
pub(crate) const ISTIOCTL_MANAGER: &str = "istio-operator";

/// Installer of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum Installer {
    /// A Helm release.
    Helm {
        /// Name of the release.
        release: String,
        /// Namespace of the release.
        namespace: String,
    },
    /// `istioctl install`.
    Istioctl,
    /// This operator or the Sail Operator.
    Operator {
        /// Kind and name of the owner.
        owner: String,
    },
    /// `kubectl apply` or another tool.
    Unknown,
}

impl std::fmt::Display for Installer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Helm { release, namespace } => write!(f, "Helm release {namespace}/{release}"),
            Self::Istioctl => f.write_str("istioctl"),
            Self::Operator { owner } => f.write_str(owner),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl Installer {
    /// Determines the installer of an object by its labels, annotations, owner and field managers.
    #[must_use]
    pub fn from_object(object: &Value) -> Self {
        let owner = object.pointer("/metadata/ownerReferences/0");
        if label(object, names::MANAGED_BY_LABEL) == names::MANAGED_BY
            && let Some(owner) = owner
        {
            return Self::Operator {
                owner: format!("{} {}", text(owner, "/kind"), text(owner, "/name")),
            };
        }
        if !label(object, ISTIOCTL_MANAGED).is_empty() || has_manager(object, ISTIOCTL_MANAGER) {
            return Self::Istioctl;
        }
        match annotation(object, HELM_NAME) {
            "" => Self::Unknown,
            release => Self::Helm {
                release: release.to_owned(),
                namespace: annotation(object, HELM_NAMESPACE).to_owned(),
            },
        }
    }
}

/// Returns the revision of a control plane's object; `default` if it has none.
#[must_use]
pub fn revision(object: &Value) -> &str {
    match label(object, names::REVISION_LABEL) {
        "" => names::DEFAULT_REVISION,
        revision => revision,
    }
}

/// Returns the possible versions of a workload: that of its label, then the tag of its image.
#[must_use]
pub fn versions(object: &Value) -> Vec<String> {
    let image = text(object, "/spec/template/spec/containers/0/image");
    let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
    let tag = tag.trim_end_matches("-distroless").trim_end_matches("-debug");
    let mut versions: Vec<String> = Vec::new();
    for version in [label(object, "app.kubernetes.io/version"), tag] {
        // Charts without a release version have the version 1.0.0.
        if !version.is_empty() && version != "1.0.0" && !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// Returns the revision tags of a control plane, sorted.
#[must_use]
pub fn tags(webhooks: &[Value], namespace: &str, revision: &str) -> Vec<String> {
    let own = webhooks.iter().filter(|webhook| {
        let service = text(webhook, "/webhooks/0/clientConfig/service/namespace");
        label(webhook, names::REVISION_LABEL) == revision && (service.is_empty() || service == namespace)
    });
    let mut tags: Vec<String> = own
        .map(|webhook| label(webhook, "istio.io/tag").to_owned())
        .filter(|tag| !tag.is_empty())
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

fn has_manager(object: &Value, name: &str) -> bool {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let mut entries = entries.into_iter().flatten();
    entries.any(|entry| text(entry, "/manager") == name)
}

/// Returns a label; empty if it is absent.
#[must_use]
pub fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    let labels = object.pointer("/metadata/labels");
    let found = labels.and_then(|labels| labels.get(name));
    found.and_then(Value::as_str).unwrap_or_default()
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = object.pointer("/metadata/annotations");
    let found = annotations.and_then(|map| map.get(name));
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the text at a JSON pointer; empty if it is absent.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn installers_are_recognized() {
        let check = |labels: Value, annotations: Value, expected: &str| {
            let object = json!({"metadata": {"labels": labels, "annotations": annotations}});
            assert_eq!(Installer::from_object(&object).to_string(), expected);
        };
        let helm = json!({HELM_NAME: "istiod", HELM_NAMESPACE: "istio-system"});
        check(json!({}), helm, "Helm release istio-system/istiod");
        check(
            json!({"operator.istio.io/managed": "Reconcile"}),
            json!({}),
            "istioctl",
        );
        check(json!({}), json!({}), "unknown");
        let owned = json!({"metadata": {
            "labels": {"managed-by": "sail-operator"},
            "ownerReferences": [{"kind": "IstioRevision", "name": "default"}],
        }});
        assert_eq!(
            Installer::from_object(&owned).to_string(),
            "IstioRevision default"
        );
    }

    #[test]
    fn the_version_of_the_label_comes_first() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/version": "1.29.1"}},
            "spec": {"template": {"spec": {"containers": [{"image": "hub/pilot:1.28.2-distroless"}]}}},
        });
        assert_eq!(versions(&object), ["1.29.1", "1.28.2"]);
    }

    #[test]
    fn tags_belong_to_their_revision() {
        let tag = |name: &str, revision: &str| json!({"metadata": {"labels": {"istio.io/tag": name, "istio.io/rev": revision}}});
        let webhooks = [tag("prod", "default"), tag("test", "canary"), tag("", "default")];
        assert_eq!(tags(&webhooks, "istio-system", "default"), ["prod"]);
    }
}
