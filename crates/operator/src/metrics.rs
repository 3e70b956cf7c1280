//! Prometheus metrics, derived from the reports of the control loops.
//!
//! Label values are from closed sets (kinds, verbs, reasons, codes) or are names of revisions; they never
//! contain chart values.

mod series;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_api::istio_operator::{self, InstallState};
use mainstay_mesh::references::Counts;
use mainstay_mesh::{Plan, Subject};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use series::Row;
use series::{Counters, Gauges, Histograms};

use crate::report::{Observer, Outcome, Report};

/// All metrics of the operator.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    rows: Vec<Row>,
    reconciles: Counters<2>,
    reconcile_seconds: Histograms<1>,
    plans: Counter,
    empty_plans: Counter,
    plan_seconds: Histogram,
    writes: Counters<2>,
    calls: Counters<2>,
    cached: Gauges<1>,
    queued: Gauge,
    referrers: Gauges<2>,
    installations: Gauges<1>,
    leader: Gauge,
    synced: Gauge,
    panics: Counter,
}

/// Bucket bounds in seconds, from 0.1 ms (the time of a plan) to 90 s (the time of a slow installation).
const RECONCILE_BUCKETS: [f64; 10] = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 90.0];
/// Bucket bounds in seconds for planning, which should take well under a millisecond.
const PLAN_BUCKETS: [f64; 8] = [0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.01, 0.1];

impl Metrics {
    /// Creates metrics with initial values. `version` is the version of this program.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let mut table = series::Table::default();
        let build = table.gauges("build_info", "Version of the operator; always 1.", ["version"]);
        build
            .get_or_create(&[("version", Cow::Owned(version.to_owned()))])
            .set(1);
        Self {
            reconciles: table.counters(
                "reconciles",
                "Reconciliations by kind of object and result: noop, success, conflict, error or panic.",
                ["kind", "result"],
            ),
            reconcile_seconds: table.histograms(
                "reconcile_duration_seconds",
                "Time of planning and executing.",
                ["kind"],
                &RECONCILE_BUCKETS,
            ),
            plans: table.counter("plans", "Plans made."),
            empty_plans: table.counter("plans_empty", "Plans without steps."),
            plan_seconds: table.histogram("plan_duration_seconds", "Time of planning.", &PLAN_BUCKETS),
            writes: table.counters(
                "writes",
                "Writes to the cluster by action and reason.",
                ["action", "reason"],
            ),
            calls: table.counters(
                "api_calls",
                "Calls to the Kubernetes API by verb and status code (none: no response).",
                ["verb", "code"],
            ),
            cached: table.gauges("cache_objects", "Objects in a cache.", ["cache"]),
            queued: table.gauge("queue_depth", "Objects in the work queue."),
            referrers: table.gauges(
                "revision_referrers",
                "Referrers of a revision by kind of reference: tag, namespace, pod_label or running_proxy.",
                ["revision", "by"],
            ),
            installations: table.gauges(
                "istio_operators",
                "IstioOperators by state: NONE, UPDATING, RECONCILING, HEALTHY, ERROR or ACTION_REQUIRED.",
                ["state"],
            ),
            leader: table.gauge("leader", "1 while this process leads."),
            synced: table.gauge("synced", "1 once every watch was listed."),
            panics: table.counter("panics", "Caught panics (bugs)."),
            rows: table.rows,
            registry: table.registry,
        }
    }

    /// Returns the list of all metrics, which the documentation contains.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the metrics in the `OpenMetrics` text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn record_plan(&self, plan: &Plan, duration: Duration) {
        self.plans.inc();
        if plan.is_empty() {
            self.empty_plans.inc();
        }
        self.plan_seconds.observe(duration.as_secs_f64());
    }

    fn record_reconcile(&self, kind: &'static str, outcome: Outcome<'_>, duration: Duration) {
        let kind = || ("kind", Cow::Borrowed(kind));
        if outcome == Outcome::Panicked {
            self.panics.inc();
        }
        self.reconcile_seconds
            .get_or_create(&[kind()])
            .observe(duration.as_secs_f64());
        self.reconciles
            .get_or_create(&[kind(), ("result", outcome.name().into())])
            .inc();
    }

    fn set_installations(&self, states: &BTreeMap<String, usize>) {
        for state in InstallState::ALL {
            let labels = [("state", Cow::Owned(state.name().to_owned()))];
            let mut count = states.get(state.name()).copied().unwrap_or_default();
            if *state == InstallState::None {
                count += states.get("").copied().unwrap_or_default();
            }
            self.installations
                .get_or_create(&labels)
                .set(to_gauge_value(count));
        }
    }

    fn record_call(&self, verb: &'static str, code: u16) {
        let code = match code {
            0 => Cow::Borrowed("none"),
            code => Cow::Owned(code.to_string()),
        };
        self.calls
            .get_or_create(&[("verb", verb.into()), ("code", code)])
            .inc();
    }

    /// Sets the numbers of referrers of a revision. Removes its series if `counts` is `None`.
    fn set_referrers(&self, revision: &str, counts: Option<Counts>) {
        let counts = counts.map(reference_counts);
        for (index, by) in REFERENCE_KINDS.into_iter().enumerate() {
            let labels = [("revision", Cow::Owned(revision.to_owned())), ("by", by.into())];
            match counts.and_then(|counts| counts.get(index).copied()) {
                Some(count) => drop(self.referrers.get_or_create(&labels).set(to_gauge_value(count))),
                None => drop(self.referrers.remove(&labels)),
            }
        }
    }
}

/// Values of the label `by`, in the order of [`reference_counts`].
const REFERENCE_KINDS: [&str; 4] = ["tag", "namespace", "pod_label", "running_proxy"];

fn reference_counts(counts: Counts) -> [usize; 4] {
    [
        counts.tags,
        counts.namespaces,
        counts.labeled_pods,
        counts.running_pods,
    ]
}

fn subject_kind(subject: &Subject) -> &'static str {
    match subject {
        Subject::Object(kind, _) => kind.name(),
        Subject::Webhook(_) => "MutatingWebhookConfiguration",
        Subject::Namespace(_) => "Namespace",
        Subject::Workload(key) => key.kind().name(),
    }
}

fn to_gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Observer for Metrics {
    fn report(&self, report: &Report<'_>) {
        match *report {
            Report::Planned(plan, duration) => self.record_plan(plan, duration),
            Report::Reconciled {
                plan,
                outcome,
                duration,
            } => self.record_reconcile(subject_kind(&plan.subject), outcome, duration),
            Report::InstallationReconciled { outcome, duration } => {
                self.record_reconcile(istio_operator::KIND, outcome, duration);
            }
            Report::Installations(states) => self.set_installations(states),
            Report::Written { action, reason } => {
                let reason = Cow::Owned(reason.to_owned());
                self.writes
                    .get_or_create(&[("action", action.into()), ("reason", reason)])
                    .inc();
            }
            Report::ApiCall { verb, code } => self.record_call(verb, code),
            Report::QueueDepth(depth) => drop(self.queued.set(to_gauge_value(depth))),
            Report::Cached { cache, objects } => {
                let labels = [("cache", Cow::Owned(cache.to_owned()))];
                self.cached.get_or_create(&labels).set(to_gauge_value(objects));
            }
            Report::InUse { revision, counts } => self.set_referrers(revision, counts),
            Report::Leading(leading) => drop(self.leader.set(leading.into())),
            Report::Synced(synced) => drop(self.synced.set(synced.into())),
            Report::LoopIteration | Report::Enqueued { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
