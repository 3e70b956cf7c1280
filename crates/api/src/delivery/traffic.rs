//! Traffic of a deployment: hosts, rules, weighted targets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How requests reach revisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Traffic {
    /// Host names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Istio gateways, `NAME` or `NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Rules, first match first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// Kind of the generated route. `Auto` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Parents of a generated `HTTPRoute`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateway_refs: Vec<GatewayReference>,
    /// Class of a generated Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Time between the removal of a revision from routes and its scale-down. 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_seconds: Option<u32>,
    /// Keeps a client on one revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinity>,
    /// Istio traffic policy of the generated `DestinationRule`s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<TrafficPolicy>,
}

/// Content of a `DestinationRule`'s `trafficPolicy`.
pub type TrafficPolicy = Value;

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRule {
    /// Name of the rule; derived from its match if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of a further route object that contains this rule. The route of the deployment if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Conditions: AND inside an entry, OR between entries. Unset matches every request.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// Revisions that receive matching requests.
    pub weighted_targets: Vec<WeightedTarget>,
}

/// Conditions on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// Path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// Method, in upper case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
}

/// A condition on a text; exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StringMatch {
    /// Equal to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Starts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Matches a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A component of a revision behind a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedTarget {
    /// Name of the `ApplicationRevision`.
    pub revision_name: String,
    /// Name of the component.
    pub component_name: String,
    /// Port of the Service.
    pub port: u16,
    /// Share of requests. Unset on all targets of a rule distributes by available replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Kind of the generated route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Provider {
    /// What the cluster supports: Istio, then Gateway API, then Ingress.
    #[default]
    Auto,
    /// Istio `VirtualService`.
    Istio,
    /// Gateway API `HTTPRoute`.
    #[serde(rename = "GatewayAPI")]
    GatewayApi,
    /// Kubernetes Ingress.
    Ingress,
    /// Services only.
    None,
}

/// A Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayReference {
    /// Name.
    pub name: String,
    /// Namespace; that of the deployment if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

/// Keeps a client on one revision by a cookie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinity {
    /// Name of the cookie.
    pub cookie_name: String,
    /// Lifetime of the cookie. 3600 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}
