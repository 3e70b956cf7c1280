//! `AnalysisTemplate`: metrics that decide whether a rollout continues.

use serde::{Deserialize, Serialize};

use super::{Kind, NoStatus, Resource};

/// Metrics that decide whether a rollout continues.
pub type AnalysisTemplate = Resource<AnalysisTemplateSpec>;

/// Content of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnalysisTemplateSpec {
    /// Metrics; all must succeed.
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
    /// Name.
    pub name: String,
    /// Time between two measurements. 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// Measurements of a step. 1 if unset; without effect in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Failed measurements that do not fail the analysis. 0 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_limit: Option<u32>,
    /// Samples below which a measurement has no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_samples: Option<u32>,
    /// What a measurement without data means. `Pause` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_no_data: Option<NoDataPolicy>,
    /// Values that count as success.
    pub success: SuccessRange,
    /// Query of the metric.
    pub prometheus: PrometheusQuery,
}

/// What a measurement without data means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoDataPolicy {
    /// The rollout waits until there is data.
    #[default]
    Pause,
    /// Success.
    Pass,
    /// Failure.
    Fail,
}

/// An inclusive range; at least one bound is set.
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

/// A query of Prometheus' HTTP API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrometheusQuery {
    /// URL of the server.
    pub address: String,
    /// Query; `{{revision}}`, `{{deployment}}` and `{{namespace}}` are replaced.
    pub query: String,
    /// Query of the number of samples, for `minSamples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_query: Option<String>,
}
