//! Queries the HTTP API of Prometheus. A failed query is a measurement without data; the policy of the
//! metric decides how it is counted.

use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use mainstay_cluster::remote::{AddressPolicy, connect_http};
use mainstay_gostd::url::query_escape;
use mainstay_rollout::plan::MeasureRequest;
use serde_json::Value;
use tokio::time::timeout;

/// Timeout of one query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response in bytes.
const MAX_RESPONSE: usize = 1 << 20;

/// Result of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricResult {
    /// Measured value; `None` if there is no data.
    pub value: Option<f64>,
    /// Number of samples: `None` if the request has no query for samples, zero if the query for samples
    /// failed.
    pub samples: Option<u64>,
}

/// A source of metrics.
pub trait MetricSource: Send + Sync {
    /// Runs the queries of a request. A failure is a result without data.
    fn query<'a>(&'a self, request: &'a MeasureRequest) -> BoxFuture<'a, MetricResult>;
}

/// Metrics from the HTTP API of Prometheus.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prometheus {
    /// Addresses that may be called.
    pub policy: AddressPolicy,
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum QueryError {
    #[error("{0}")]
    Address(String),
    #[error("no response within {} s", QUERY_TIMEOUT.as_secs())]
    Timeout,
    #[error("the request failed: {0}")]
    Transport(String),
    #[error("the server returned status {0}")]
    Status(u16),
    #[error("the response is longer than {MAX_RESPONSE} bytes or broken")]
    Body,
    #[error("the response is not that of a query")]
    Format,
    #[error("the query returned {0} series; aggregate them to one")]
    ManySeries(usize),
}

impl MetricSource for Prometheus {
    fn query<'a>(&'a self, request: &'a MeasureRequest) -> BoxFuture<'a, MetricResult> {
        Box::pin(async move {
            let value = self.query_value(&request.address, &request.query).await;
            let samples = match &request.samples_query {
                Some(query) => Some(
                    self.query_value(&request.address, query)
                        .await
                        .unwrap_or_default(),
                ),
                None => None,
            };
            MetricResult {
                value,
                samples: samples.map(to_count),
            }
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float is converted to the nearest number that fits"
)]
fn to_count(value: f64) -> u64 {
    value.max(0.0) as u64
}

impl Prometheus {
    async fn query_value(&self, address: &str, query: &str) -> Option<f64> {
        let result = timeout(QUERY_TIMEOUT, self.run_query(address, query)).await;
        match result.unwrap_or(Err(QueryError::Timeout)) {
            Ok(value) => value,
            Err(error) => {
                tracing::warn!(address, error = %error, "a measurement has no data");
                None
            }
        }
    }

    async fn run_query(&self, address: &str, query: &str) -> Result<Option<f64>, QueryError> {
        let client =
            connect_http(address, self.policy).map_err(|error| QueryError::Address(error.to_string()))?;
        let request = Request::get(format!("/api/v1/query?query={}", query_escape(query)))
            .header(http::header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| QueryError::Transport(error.to_string()))?;
        let response = client.send(request).await;
        let response = response.map_err(|error| QueryError::Transport(error.to_string()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
        let bytes = body.map_err(|_| QueryError::Body)?.to_bytes();
        if !status.is_success() {
            return Err(QueryError::Status(status.as_u16()));
        }
        let response: Value = serde_json::from_slice(&bytes).map_err(|_| QueryError::Format)?;
        read_value(&response)
    }
}

/// Returns the value of a scalar or of the only series of a vector; `None` for an empty vector.
fn read_value(response: &Value) -> Result<Option<f64>, QueryError> {
    if response.get("status").and_then(Value::as_str) != Some("success") {
        return Err(QueryError::Format);
    }
    let kind = response.pointer("/data/resultType").and_then(Value::as_str);
    let result = response.pointer("/data/result").ok_or(QueryError::Format)?;
    let sample = match kind {
        Some("scalar") => result,
        Some("vector") => match result.as_array().map(Vec::as_slice) {
            Some([]) => return Ok(None),
            Some([only]) => only.get("value").ok_or(QueryError::Format)?,
            Some(many) => return Err(QueryError::ManySeries(many.len())),
            None => return Err(QueryError::Format),
        },
        _ => return Err(QueryError::Format),
    };
    let value = sample
        .get(1)
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    value.map(Some).ok_or(QueryError::Format)
}

#[cfg(test)]
mod tests;
