//! Metrics with labels, and a table of the registered metrics that is compared with the documentation.

use std::borrow::Cow;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// Label names and values.
pub(super) type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
pub(super) type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
pub(super) type Histograms<const N: usize> = Family<Labels<N>, Histogram, Buckets>;

/// Upper bounds of the buckets of a histogram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// A row of the documented table of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Full name as stored by Prometheus, with prefix and suffix.
    pub name: String,
    /// Type of the metric: `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Label names.
    pub labels: Vec<&'static str>,
    /// Help text.
    pub help: &'static str,
}

impl Row {
    fn new(name: &str, kind: &'static str, help: &'static str, labels: &[&'static str]) -> Self {
        let suffix = if kind == "counter" { "_total" } else { "" };
        Self {
            name: format!("{PREFIX}_{name}{suffix}"),
            kind,
            labels: labels.to_vec(),
            help,
        }
    }
}

/// Prefix of the names of all metrics.
const PREFIX: &str = "mainstay";

/// A registry with a list of the registered metrics.
pub(super) struct Table {
    pub(super) registry: Registry,
    pub(super) rows: Vec<Row>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            registry: Registry::with_prefix(PREFIX),
            rows: Vec::new(),
        }
    }
}

impl Table {
    pub(super) fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Counters<N> {
        self.add(Row::new(name, "counter", help, &labels), Counters::default())
    }

    pub(super) fn counter(&mut self, name: &str, help: &'static str) -> Counter {
        self.add(Row::new(name, "counter", help, &[]), Counter::default())
    }

    pub(super) fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Gauges<N> {
        self.add(Row::new(name, "gauge", help, &labels), Gauges::default())
    }

    pub(super) fn gauge(&mut self, name: &str, help: &'static str) -> Gauge {
        self.add(Row::new(name, "gauge", help, &[]), Gauge::default())
    }

    pub(super) fn histograms<const N: usize>(
        &mut self,
        name: &str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Histograms<N> {
        let family = Histograms::new_with_constructor(Buckets(bounds));
        self.add(Row::new(name, "histogram", help, &labels), family)
    }

    pub(super) fn histogram(&mut self, name: &str, help: &'static str, bounds: &'static [f64]) -> Histogram {
        self.add(
            Row::new(name, "histogram", help, &[]),
            Buckets(bounds).new_metric(),
        )
    }

    fn add<M: Metric + Clone>(&mut self, row: Row, metric: M) -> M {
        let name = row.name.trim_start_matches(PREFIX).trim_start_matches('_');
        let name = name.strip_suffix("_total").unwrap_or(name).to_owned();
        let help = row.help;
        self.rows.push(row);
        // The registry appends a full stop to the help text.
        self.registry
            .register(name, help.trim_end_matches('.'), metric.clone());
        metric
    }
}
