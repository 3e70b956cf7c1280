//! Converts the configuration of one installer to that of another, and compares the rendered objects.
//! Pure.
//!
//! `IstioOperator` files are converted to custom resources, and values of Helm charts to custom resources
//! or an `IstioOperator`.

mod comments;
pub(crate) mod compare;
mod draft;
mod from_helm;
mod from_operator;
mod gateways;
mod helm_source;
mod resources;
mod to_operator;

pub use comments::Comments;
pub use from_helm::helm_to_resources;
pub use from_operator::to_resources;
pub use helm_source::{HelmChart, HelmSource, SourceFile};
pub use to_operator::helm_to_operator;

use mainstay_api::Values;
use serde::Serialize;
use serde_json::{Value, json};

use crate::derive::Dropped;
use crate::differences::FieldDifference;
use compare::Comparison;

/// Kubernetes version with which templates are rendered.
const KUBE_VERSION: &str = "v1.32.0";

/// Values of the chart `gateway` for a release that replaces a gateway of an `IstioOperator`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayValues {
    /// Name of the release.
    pub release: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Values of the release.
    pub values: Values,
}

/// A converted configuration.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// Converted resources.
    pub resources: Vec<Value>,
    /// Values for releases of the chart `gateway`.
    pub gateways: Vec<GatewayValues>,
    /// Fields that cannot be converted, with the reason.
    pub not_carried: Vec<Dropped>,
    /// Number of objects that are rendered equally before and after.
    pub equal_objects: usize,
    /// Fields that are rendered differently.
    pub differences: Vec<FieldDifference>,
    /// Comments of the input files for each of `resources`.
    #[serde(skip)]
    pub comments: Vec<Comments>,
}

impl Migration {
    /// Whether both configurations render equal objects, except for harmless differences.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.iter().all(|one| one.harmless.is_some())
    }

    fn add(&mut self, comparison: Comparison) {
        self.equal_objects += comparison.equal;
        self.differences.extend(comparison.differences);
    }

    fn drop_field(&mut self, path: impl Into<String>, reason: &str) {
        self.not_carried.push(Dropped {
            path: path.into(),
            reason: reason.to_owned(),
        });
    }
}

/// JSON pointers of the settings of a gateway and of the chart values that replace them.
const GATEWAY_SETTINGS: &[(&str, &str)] = &[
    ("/label", "/labels"),
    ("/k8s/replicaCount", "/replicaCount"),
    ("/k8s/resources", "/resources"),
    ("/k8s/service/type", "/service/type"),
    ("/k8s/service/ports", "/service/ports"),
    ("/k8s/serviceAnnotations", "/service/annotations"),
    ("/k8s/podAnnotations", "/podAnnotations"),
    ("/k8s/nodeSelector", "/nodeSelector"),
    ("/k8s/tolerations", "/tolerations"),
    ("/k8s/affinity", "/affinity"),
    ("/k8s/hpaSpec/minReplicas", "/autoscaling/minReplicas"),
    ("/k8s/hpaSpec/maxReplicas", "/autoscaling/maxReplicas"),
];

/// Returns the tags that the chart of istiod creates.
fn revision_tags(values: &Values) -> Vec<String> {
    let tags = values.get("revisionTags").and_then(Value::as_array);
    let tags = tags.into_iter().flatten().filter_map(Value::as_str);
    tags.map(ToOwned::to_owned).collect()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == &json!({}) || value == &json!([])
}
