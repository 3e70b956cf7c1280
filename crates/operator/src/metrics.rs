//! The loop's reports as Prometheus metrics: takes reports, gives text. Knows no network.
//!
//! Label values come from closed sets (kinds, verbs, reasons, codes) or are names of revisions; values never get here.

mod series;

use std::borrow::Cow;
use std::time::Duration;

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

/// All metrics.
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
    leader: Gauge,
    synced: Gauge,
    panics: Counter,
}

/// From a tenth of a millisecond, a plan's size, to a minute and a half, an unlucky install's.
const RECONCILE_BUCKETS: [f64; 10] = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 90.0];
/// Planning should take well under a millisecond.
const PLAN_BUCKETS: [f64; 8] = [0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.01, 0.1];

impl Metrics {
    /// All of them at zero. `version` is that of this program.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let mut table = series::Table::default();
        let build = table.gauges("build_info", "Which program this is; always 1.", ["version"]);
        build
            .get_or_create(&[("version", Cow::Owned(version.to_owned()))])
            .set(1);
        Self {
            reconciles: table.counters("reconciles", "Plans carried out, by kind of object and result: noop, success, error or panic.", ["kind", "result"]),
            reconcile_seconds: table.histograms("reconcile_duration_seconds", "How long planning and doing took together.", ["kind"], &RECONCILE_BUCKETS),
            plans: table.counter("plans", "Plans made."),
            empty_plans: table.counter("plans_empty", "Plans that had nothing to do; divided by all plans, the share of passes that cost nothing."),
            plan_seconds: table.histogram("plan_duration_seconds", "How long planning took.", &PLAN_BUCKETS),
            writes: table.counters("writes", "Writes to the cluster, by what was done and why.", ["action", "reason"]),
            calls: table.counters("api_calls", "Calls to the Kubernetes API, by verb and the answer's status code (none: no answer).", ["verb", "code"]),
            cached: table.gauges("cache_objects", "Objects kept in memory.", ["cache"]),
            queued: table.gauge("queue_depth", "Objects that wait for their turn."),
            referrers: table.gauges("revision_referrers", "What keeps a revision in use, by kind of reference: tag, namespace, pod_label or running_proxy.", ["revision", "by"]),
            leader: table.gauge("leader", "1 while this process leads."),
            synced: table.gauge("synced", "1 once everything was listed."),
            panics: table.counter("panics", "Panics that were caught: bugs of ours."),
            rows: table.rows,
            registry: table.registry,
        }
    }

    /// What there is, for documentation.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The text Prometheus reads (`OpenMetrics`).
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn planned(&self, plan: &Plan, took: Duration) {
        self.plans.inc();
        if plan.is_empty() {
            self.empty_plans.inc();
        }
        self.plan_seconds.observe(took.as_secs_f64());
    }

    fn reconciled(&self, subject: &Subject, outcome: Outcome<'_>, took: Duration) {
        let kind = || ("kind", Cow::Borrowed(kind(subject)));
        if outcome == Outcome::Panicked {
            self.panics.inc();
        }
        self.reconcile_seconds
            .get_or_create(&[kind()])
            .observe(took.as_secs_f64());
        self.reconciles
            .get_or_create(&[kind(), ("result", outcome.name().into())])
            .inc();
    }

    fn called(&self, verb: &'static str, code: u16) {
        let code = match code {
            0 => Cow::Borrowed("none"),
            code => Cow::Owned(code.to_string()),
        };
        self.calls
            .get_or_create(&[("verb", verb.into()), ("code", code)])
            .inc();
    }

    /// A revision that is gone leaves no series behind.
    fn in_use(&self, revision: &str, counts: Option<Counts>) {
        let counts = counts.map(by_reference);
        for (index, by) in REFERENCES.into_iter().enumerate() {
            let labels = [("revision", Cow::Owned(revision.to_owned())), ("by", by.into())];
            match counts.and_then(|counts| counts.get(index).copied()) {
                Some(count) => drop(self.referrers.get_or_create(&labels).set(number(count))),
                None => drop(self.referrers.remove(&labels)),
            }
        }
    }
}

const REFERENCES: [&str; 4] = ["tag", "namespace", "pod_label", "running_proxy"];

fn by_reference(counts: Counts) -> [usize; 4] {
    [
        counts.tags,
        counts.namespaces,
        counts.labelled_pods,
        counts.running_pods,
    ]
}

fn kind(subject: &Subject) -> &'static str {
    match subject {
        Subject::Object(kind, _) => kind.name(),
        Subject::Webhook(_) => "MutatingWebhookConfiguration",
        Subject::Namespace(_) => "Namespace",
        Subject::Workload(key) => key.kind().name(),
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Observer for Metrics {
    fn report(&self, report: &Report<'_>) {
        match *report {
            Report::Planned(plan, took) => self.planned(plan, took),
            Report::Reconciled { plan, outcome, took } => self.reconciled(&plan.subject, outcome, took),
            Report::Written { action, reason } => {
                let reason = Cow::Owned(reason.to_owned());
                self.writes
                    .get_or_create(&[("action", action.into()), ("reason", reason)])
                    .inc();
            }
            Report::ApiCall { verb, code } => self.called(verb, code),
            Report::QueueDepth(waiting) => drop(self.queued.set(number(waiting))),
            Report::Cached { cache, objects } => {
                let labels = [("cache", Cow::Owned(cache.to_owned()))];
                self.cached.get_or_create(&labels).set(number(objects));
            }
            Report::InUse { revision, counts } => self.in_use(revision, counts),
            Report::Leading(leading) => drop(self.leader.set(leading.into())),
            Report::Synced(synced) => drop(self.synced.set(synced.into())),
            Report::LoopIteration | Report::Enqueued { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
