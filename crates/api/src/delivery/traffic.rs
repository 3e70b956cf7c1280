//! Traffic of a deployment: hosts, rules, weighted targets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How requests are sent to revisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Traffic {
    /// Host names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Istio gateways, as `NAME` or `NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Rules. The first rule that matches a request applies.
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
    /// Time in seconds between removing a revision from routes and scaling it down. 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_seconds: Option<u32>,
    /// Session affinity, which keeps a client on one revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinity>,
    /// Istio traffic policy of the generated `DestinationRule`s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<TrafficPolicy>,
}

/// Content of `trafficPolicy` of a `DestinationRule`.
pub type TrafficPolicy = Value;

/// A routing rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRule {
    /// Name of the rule. If unset, it is derived from the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of an additional route object that contains this rule. If unset, the route of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Conditions. An entry matches if all its conditions do; the rule matches if any entry does. If unset,
    /// the rule matches all requests.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// Revisions that receive matching requests.
    pub weighted_targets: Vec<WeightedTarget>,
}

/// Conditions on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// Condition on the path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// HTTP method, in upper case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Conditions on headers, by name of the header.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
}

/// A condition on a text. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StringMatch {
    /// The text equals this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// The text starts with this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The text matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A component of a revision to which a rule sends requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedTarget {
    /// Name of the `ApplicationRevision`.
    pub revision_name: String,
    /// Name of the component.
    pub component_name: String,
    /// Port of the Service.
    pub port: u16,
    /// Share of requests. If unset on all targets of a rule, requests are distributed by available
    /// replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Kind of the generated route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Provider {
    /// A kind that the cluster supports: Istio, else Gateway API, else Ingress.
    #[default]
    Auto,
    /// Istio `VirtualService`.
    Istio,
    /// Gateway API `HTTPRoute`.
    #[serde(rename = "GatewayAPI")]
    GatewayApi,
    /// Kubernetes Ingress.
    Ingress,
    /// No routes, only Services.
    None,
}

/// A reference to a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayReference {
    /// Name of the Gateway.
    pub name: String,
    /// Namespace of the Gateway. If unset, that of the deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

/// Keeps a client on one revision by a cookie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinity {
    /// Name of the cookie.
    pub cookie_name: String,
    /// Lifetime of the cookie in seconds. 3600 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<u32>,
}
