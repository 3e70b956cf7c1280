//! `AnalysisTemplate`: metrics that decide whether a rollout continues.

use serde::{Deserialize, Serialize};

use super::{Kind, NoStatus, Resource};

/// Metrics that decide whether a rollout continues.
pub type AnalysisTemplate = Resource<AnalysisTemplateSpec>;

/// Desired state of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisTemplateSpec {
    /// Metrics. All must succeed.
    pub metrics: Vec<Metric>,
}

impl Kind for AnalysisTemplateSpec {
    const KIND: &'static str = "AnalysisTemplate";
    const PLURAL: &'static str = "analysistemplates";
    type Status = NoStatus;
}

/// A reference to a template in the namespace of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisReference {
    /// Name of the template.
    pub template_name: String,
}

/// One metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metric {
    /// Name of the metric.
    pub name: String,
    /// Time between two measurements in seconds. 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// Number of measurements in a step. 1 if unset. Has no effect on background runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Maximum number of failed measurements. If exceeded, the analysis fails. 0 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_limit: Option<u32>,
    /// Minimum number of samples. A measurement with fewer samples has no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_samples: Option<u32>,
    /// How a measurement without data is counted. `Pause` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_no_data: Option<NoDataPolicy>,
    /// Values that count as success.
    pub success: SuccessRange,
    /// Query of the metric.
    pub prometheus: PrometheusQuery,
}

/// How a measurement without data is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoDataPolicy {
    /// The rollout waits until data is available.
    #[default]
    Pause,
    /// The measurement counts as a success.
    Pass,
    /// The measurement counts as a failure.
    Fail,
}

/// An inclusive range. At least one bound must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessRange {
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// A query to the HTTP API of Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrometheusQuery {
    /// URL of the Prometheus server.
    pub address: String,
    /// Query. `{{revision}}`, `{{deployment}}` and `{{namespace}}` are replaced.
    pub query: String,
    /// Query of the number of samples for `minSamples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_query: Option<String>,
}
