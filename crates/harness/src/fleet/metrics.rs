//! A metric source with a fixed value.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use mainstay_operator::delivery::{MetricResult, MetricSource};
use mainstay_rollout::plan::MeasureRequest;

/// Metric source that returns the same result to every query. Clones share the result.
#[derive(Clone, Debug, Default)]
pub struct FixedMetrics {
    result: Arc<Mutex<MetricResult>>,
    queries: Arc<AtomicUsize>,
}

impl FixedMetrics {
    /// Sets the result of subsequent queries. `None` means no data.
    pub fn set(&self, value: Option<f64>) {
        let result = MetricResult { value, samples: None };
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = result;
    }

    /// Returns the number of queries.
    #[must_use]
    pub fn query_count(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }
}

impl MetricSource for FixedMetrics {
    fn query<'a>(&'a self, _: &'a MeasureRequest) -> BoxFuture<'a, MetricResult> {
        let result = *self.result.lock().unwrap_or_else(PoisonError::into_inner);
        self.queries.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { result })
    }
}
