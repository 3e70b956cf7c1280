//! Converts configurations of one installer to another, and compares what both render. Pure.
//!
//! `IstioOperator` files become custom resources; charts of Helm become custom resources or an
//! `IstioOperator`.

mod comments;
pub(crate) mod compare;
mod draft;
mod from_helm;
mod from_operator;
mod helm_source;
mod resources;
mod to_operator;

pub use comments::Comments;
pub use from_helm::helm_to_resources;
pub use from_operator::to_resources;
pub use helm_source::{HelmChart, HelmSource};
pub use to_operator::helm_to_operator;

use mainstay_api::Values;
use serde::Serialize;
use serde_json::{Value, json};

use crate::derive::Dropped;
use crate::differences::FieldDifference;

/// The version of Kubernetes that templates see.
const KUBE_VERSION: &str = "v1.32.0";

/// Values for the chart `gateway`, which replaces a gateway of an `IstioOperator`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayValues {
    /// Name of the release.
    pub release: String,
    /// Namespace of the release.
    pub namespace: String,
    /// The values.
    pub values: Values,
}

/// A converted configuration.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    /// The resources.
    pub resources: Vec<Value>,
    /// Values of gateways.
    pub gateways: Vec<GatewayValues>,
    /// Fields without a place, with the reason.
    pub not_carried: Vec<Dropped>,
    /// Number of objects that are rendered equally before and after.
    pub equal_objects: usize,
    /// Fields that are rendered differently.
    pub differences: Vec<FieldDifference>,
    /// Comments for each of `resources`, from the files.
    #[serde(skip)]
    pub comments: Vec<Comments>,
}

impl Migration {
    /// Whether both render the same mesh.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.differences.iter().all(|one| one.harmless.is_some())
    }

    fn drop_field(&mut self, path: impl Into<String>, reason: &str) {
        self.not_carried.push(Dropped {
            path: path.into(),
            reason: reason.to_owned(),
        });
    }
}

/// Settings of a gateway with a place in the chart: setting, value.
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

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == &json!({}) || value == &json!([])
}
