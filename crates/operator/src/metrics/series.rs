//! Metrics with labels, and a table of what was registered, so that documentation can be held against it.

use std::borrow::Cow;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// Names of labels with their values.
pub(super) type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
pub(super) type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
pub(super) type Histograms<const N: usize> = Family<Labels<N>, Histogram, Buckets>;

/// Upper bounds of a histogram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// One metric, as documentation lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its full name, as Prometheus stores it.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: Vec<&'static str>,
    /// What it says.
    pub help: &'static str,
}

/// What every name begins with.
const PREFIX: &str = "mainstay";

/// Registers metrics and remembers them.
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
        self.add(name, ("counter", help), &labels, Counters::default())
    }

    pub(super) fn counter(&mut self, name: &str, help: &'static str) -> Counter {
        self.add(name, ("counter", help), &[], Counter::default())
    }

    pub(super) fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Gauges<N> {
        self.add(name, ("gauge", help), &labels, Gauges::default())
    }

    pub(super) fn gauge(&mut self, name: &str, help: &'static str) -> Gauge {
        self.add(name, ("gauge", help), &[], Gauge::default())
    }

    pub(super) fn histograms<const N: usize>(
        &mut self,
        name: &str,
        help: &'static str,
        labels: [&'static str; N],
        bounds: &'static [f64],
    ) -> Histograms<N> {
        let family = Histograms::new_with_constructor(Buckets(bounds));
        self.add(name, ("histogram", help), &labels, family)
    }

    pub(super) fn histogram(&mut self, name: &str, help: &'static str, bounds: &'static [f64]) -> Histogram {
        self.add(name, ("histogram", help), &[], Buckets(bounds).new_metric())
    }

    fn add<M: Metric + Clone>(
        &mut self,
        name: &str,
        (kind, help): (&'static str, &'static str),
        labels: &[&'static str],
        metric: M,
    ) -> M {
        let suffix = if kind == "counter" { "_total" } else { "" };
        self.rows.push(Row {
            name: format!("{PREFIX}_{name}{suffix}"),
            kind,
            labels: labels.to_vec(),
            help,
        });
        // The registry adds the full stop itself.
        self.registry
            .register(name, help.trim_end_matches('.'), metric.clone());
        metric
    }
}
