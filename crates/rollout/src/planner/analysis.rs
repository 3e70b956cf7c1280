//! Analysis: evaluates and counts measurements, and requests the next ones.

use jiff::SignedDuration;
use mainstay_api::Reason;
use mainstay_api::delivery::{AnalysisRun, Direction, Metric, NoDataPolicy, RolloutStatus};

use super::{Draft, stage};
use crate::plan::{Action, MeasureRequest, Step};
use crate::snapshot::{Measurement, MeasurementKey};

/// Default time between two measurements in seconds.
const DEFAULT_INTERVAL: u32 = 30;

/// State of all analyses that affect the current step, in ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnalysisState {
    /// No analysis failed, and the analysis of the step is complete.
    Passed,
    /// More measurements are required.
    Running,
    /// A metric has no data, and its policy is to wait.
    NoData,
    /// A template does not exist.
    TemplateMissing,
    /// A metric failed.
    Failed,
}

/// Adds the measurements of the snapshot to the counts.
pub(super) fn count_measurements(draft: &mut Draft<'_>) {
    let rollout = draft
        .status
        .rollout
        .as_ref()
        .filter(|rollout| is_analyzed(rollout));
    let Some(step_hash) = rollout.map(|rollout| rollout.step_hash.clone()) else {
        return;
    };
    for measurement in &draft.snapshot.measurements {
        let key = &measurement.key;
        let is_current = key.step_hash.is_empty() || key.step_hash == step_hash;
        let metric = draft.snapshot.templates.get(&key.template).and_then(|template| {
            let mut metrics = template.spec.metrics.iter();
            metrics.find(|metric| metric.name == key.metric)
        });
        if let Some(metric) = metric.filter(|_| is_current) {
            count_measurement(&mut draft.status.analysis, metric, measurement);
        }
    }
}

fn is_analyzed(rollout: &RolloutStatus) -> bool {
    rollout.direction == Direction::Forward && rollout.completed_at.is_none()
}

fn has_key(run: &AnalysisRun, key: &MeasurementKey) -> bool {
    run.template_name == key.template && run.metric == key.metric && run.step_hash == key.step_hash
}

fn count_measurement(runs: &mut Vec<AnalysisRun>, metric: &Metric, measurement: &Measurement) {
    let key = &measurement.key;
    if !runs.iter().any(|run| has_key(run, key)) {
        runs.push(AnalysisRun {
            template_name: key.template.clone(),
            metric: key.metric.clone(),
            step_hash: key.step_hash.clone(),
            ..AnalysisRun::default()
        });
        runs.sort_by(|left, right| {
            let key = |run: &AnalysisRun| {
                (
                    run.template_name.clone(),
                    run.metric.clone(),
                    run.step_hash.clone(),
                )
            };
            key(left).cmp(&key(right))
        });
    }
    let Some(run) = runs.iter_mut().find(|run| has_key(run, key)) else {
        return;
    };
    let at = mainstay_api::Time::from_timestamp(measurement.at);
    if run.measured_at.is_some_and(|last| last >= at) {
        return;
    }
    run.measured_at = Some(at);
    match evaluate_measurement(metric, measurement) {
        Some(true) => (run.successful, run.no_data) = (run.successful + 1, 0),
        Some(false) => (run.failed, run.no_data) = (run.failed + 1, 0),
        None => match metric.on_no_data.unwrap_or_default() {
            NoDataPolicy::Pause => run.no_data += 1,
            NoDataPolicy::Pass => run.successful += 1,
            NoDataPolicy::Fail => run.failed += 1,
        },
    }
}

/// Returns whether a measurement succeeded, or `None` if it has no data. NaN counts as no data.
fn evaluate_measurement(metric: &Metric, measurement: &Measurement) -> Option<bool> {
    let value = measurement.value.filter(|value| !value.is_nan())?;
    let minimum = u64::from(metric.min_samples.unwrap_or_default());
    if measurement.samples.is_some_and(|samples| samples < minimum) {
        return None;
    }
    let range = &metric.success;
    Some(range.min.is_none_or(|min| value >= min) && range.max.is_none_or(|max| value <= max))
}

/// Evaluates the background templates and, at an analysis step, the template of the step. Requests
/// measurements that are due. Returns the worst state.
pub(super) fn analysis_state(
    draft: &mut Draft<'_>,
    rollout: &RolloutStatus,
    step: Option<&str>,
) -> AnalysisState {
    if !is_analyzed(rollout) {
        return AnalysisState::Passed;
    }
    let deployment = &draft.snapshot.deployment;
    let steps = stage::steps(deployment, rollout);
    // Background templates start with the first step. Without steps, such as in a first deployment, they
    // start when the first group is complete.
    let has_started = !steps.is_empty() || rollout.group > 0;
    let background: Vec<String> = deployment
        .spec
        .analysis
        .iter()
        .flat_map(|analysis| &analysis.background)
        .map(|reference| reference.template_name.clone())
        .filter(|_| has_started)
        .collect();
    let mut worst = AnalysisState::Passed;
    for name in background {
        worst = worst.max(evaluate_template(draft, &name, ""));
    }
    if let Some(name) = step {
        worst = worst.max(evaluate_template(draft, name, &rollout.step_hash));
    }
    worst
}

fn evaluate_template(draft: &mut Draft<'_>, name: &str, step_hash: &str) -> AnalysisState {
    let snapshot = draft.snapshot;
    let Some(template) = snapshot.templates.get(name) else {
        return AnalysisState::TemplateMissing;
    };
    let mut worst = AnalysisState::Passed;
    for metric in &template.spec.metrics {
        let key = MeasurementKey {
            template: name.to_owned(),
            metric: metric.name.clone(),
            step_hash: step_hash.to_owned(),
        };
        let run = draft
            .status
            .analysis
            .iter()
            .find(|run| has_key(run, &key))
            .cloned();
        let run = run.unwrap_or_default();
        let analysis_state = evaluate_run(metric, &run, step_hash.is_empty());
        if analysis_state != AnalysisState::Failed
            && (analysis_state != AnalysisState::Passed || step_hash.is_empty())
        {
            request_measurement(draft, metric, &run, key);
        }
        worst = worst.max(analysis_state);
    }
    worst
}

fn evaluate_run(metric: &Metric, run: &AnalysisRun, is_background: bool) -> AnalysisState {
    if run.failed > metric.failure_limit.unwrap_or_default() {
        AnalysisState::Failed
    } else if run.no_data > 0 {
        AnalysisState::NoData
    } else if is_background || run.successful + run.failed >= metric.count.unwrap_or(1) {
        AnalysisState::Passed
    } else {
        AnalysisState::Running
    }
}

fn request_measurement(draft: &mut Draft<'_>, metric: &Metric, run: &AnalysisRun, key: MeasurementKey) {
    let interval = metric.interval_seconds.unwrap_or(DEFAULT_INTERVAL).max(1);
    let interval = SignedDuration::from_secs(i64::from(interval));
    let due = run.measured_at.map(|last| last.after(interval));
    if let Some(due) = due.filter(|due| *due > draft.snapshot.now) {
        draft.requeue_times.push(due);
        return;
    }
    let deployment = &draft.snapshot.deployment;
    let revision = growing_revision(draft.status.rollout.as_ref());
    let substitute = |text: &str| {
        text.replace("{{revision}}", &revision)
            .replace("{{deployment}}", deployment.name())
            .replace("{{namespace}}", deployment.namespace())
    };
    draft.requeue_times.push(draft.snapshot.now + interval);
    draft.finish.push(Step {
        action: Action::Measure(MeasureRequest {
            key,
            address: metric.prometheus.address.clone(),
            query: substitute(&metric.prometheus.query),
            samples_query: metric.prometheus.samples_query.as_deref().map(substitute),
        }),
        reason: Reason::MeasurementDue,
    });
}

/// Returns the name of the revision that grows most from stable to target.
fn growing_revision(rollout: Option<&RolloutStatus>) -> String {
    let Some(rollout) = rollout else {
        return String::new();
    };
    let total = |allocation: &mainstay_api::delivery::Allocation, name: &str| -> u32 {
        let own = allocation
            .placement
            .iter()
            .filter(|placement| placement.revision_name == name);
        own.flat_map(|placement| &placement.clusters)
            .map(|cluster| cluster.replicas.unwrap_or(1))
            .sum()
    };
    let names = rollout
        .target
        .placement
        .iter()
        .map(|placement| placement.revision_name.as_str());
    names
        .max_by_key(|name| i64::from(total(&rollout.target, name)) - i64::from(total(&rollout.stable, name)))
        .unwrap_or_default()
        .to_owned()
}
