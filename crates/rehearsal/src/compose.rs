//! Composes the report from a recording and its input. Lists have a fixed order.

pub(crate) mod services;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::{Catalog, Version};
use mainstay_mesh::workload::WorkloadKey;

use crate::cluster_model::ClusterModel;
use crate::findings;
use crate::input::{Input, KINDS};
use crate::objects::{self, RenderCache};
use crate::recording::{ActionKind, Recording, WorkloadOutcome};
use crate::report::{
    Batch, Elapsed, FORMAT, Input as InputFacts, KindCount, Method, Outcome, Phase, PhaseKind, PrunedObject,
    RelabeledNamespace, Report, SkippedWorkload, SpanResult, Totals, Upgrade, WorkloadSpan,
};
use crate::request::{PlannedUpgrade, RehearsalRequest};

/// All data of a rehearsal.
pub(crate) struct Rehearsal<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) input: &'a Input,
    pub(crate) request: &'a RehearsalRequest,
    pub(crate) planned: &'a PlannedUpgrade,
    pub(crate) model: &'a ClusterModel,
    pub(crate) recording: &'a Recording,
    pub(crate) version: &'a Version,
    pub(crate) method: Method,
    /// Rendered objects of the releases.
    pub(crate) renders: RenderCache,
}

impl Rehearsal<'_> {
    /// Converts a timestamp to the time since the start.
    pub(crate) fn elapsed(&self, at: Timestamp) -> Elapsed {
        let started_at = self.recording.started_at.unwrap_or(at);
        let since = std::time::Duration::try_from(at.duration_since(started_at));
        since.map(Elapsed::from).unwrap_or_default()
    }

    /// Returns the time of the last change.
    pub(crate) fn end(&self) -> Elapsed {
        self.recording
            .last
            .map(|last| self.elapsed(last))
            .unwrap_or_default()
    }

    /// Returns the revision that the workloads used before the upgrade, or an empty string if there was
    /// none.
    pub(crate) fn old_revision(&self) -> &str {
        self.recording
            .revisions
            .iter()
            .map(String::as_str)
            .find(|name| *name != self.recording.final_state.active)
            .unwrap_or_default()
    }
}

/// Composes the report.
pub(crate) fn compose(rehearsal: &Rehearsal<'_>) -> Report {
    let workloads = workload_spans(rehearsal);
    let batches = batches(&workloads);
    let services = services::services(rehearsal);
    let mut report = Report {
        format: FORMAT,
        upgrade: upgrade(rehearsal),
        input: input_summary(rehearsal),
        seed: rehearsal.request.seed,
        method: rehearsal.method,
        outcome: Outcome::Completed,
        totals: Totals::default(),
        findings: Vec::new(),
        phases: Vec::new(),
        namespaces: relabeled_namespaces(rehearsal),
        batches,
        workloads,
        skipped: skipped_workloads(rehearsal),
        objects: objects::changes(rehearsal),
        services,
        pruned: pruned_objects(rehearsal),
        writes: writes::writes(rehearsal),
    };
    report.outcome = outcome(rehearsal, &report);
    report.phases = phases(rehearsal, &report);
    report.totals = totals(rehearsal, &report);
    report.findings = findings::findings(rehearsal, &report);
    report
}

fn upgrade(rehearsal: &Rehearsal<'_>) -> Upgrade {
    Upgrade {
        istio: rehearsal.planned.istio.name().to_owned(),
        from: rehearsal.planned.istio.spec.version.clone(),
        to: rehearsal.version.name(),
        from_revision: rehearsal.old_revision().to_owned(),
        to_revision: rehearsal.recording.final_state.active.clone(),
        suppositions: rehearsal.planned.suppositions.clone(),
    }
}

fn input_summary(rehearsal: &Rehearsal<'_>) -> InputFacts {
    let counts = KINDS
        .iter()
        .map(|kind| (kind.kind, rehearsal.input.count(kind.kind)));
    let counts: BTreeMap<&str, usize> = counts.filter(|(_, count)| *count > 0).collect();
    let observed = rehearsal
        .model
        .workloads
        .values()
        .filter(|workload| workload.readiness.observed);
    InputFacts {
        source: rehearsal.input.source.clone(),
        objects: counts
            .into_iter()
            .map(|(kind, count)| KindCount {
                kind: kind.to_owned(),
                count,
            })
            .collect(),
        missing: rehearsal
            .input
            .missing
            .iter()
            .map(|(kind, _)| (*kind).to_owned())
            .collect(),
        observed_readiness: observed.count(),
        default_readiness: rehearsal.model.default_readiness.into(),
    }
}

/// Returns the spans of all workloads that were restarted or rejected.
fn workload_spans(rehearsal: &Rehearsal<'_>) -> Vec<WorkloadSpan> {
    let recording = rehearsal.recording;
    let moved = recording.actions.iter().filter_map(|action| match &action.kind {
        ActionKind::Moved(key, batch) => Some((key, (action.at, *batch))),
        _ => None,
    });
    // If a workload was moved twice, the first move determines its start.
    let mut starts: BTreeMap<&WorkloadKey, (Timestamp, i32)> = BTreeMap::new();
    for (key, start) in moved {
        starts.entry(key).or_insert(start);
    }
    for (key, end) in &recording.outcomes {
        if let WorkloadOutcome::Rejected(at) = end {
            starts.entry(key).or_insert((*at, 0));
        }
    }
    let mut spans: Vec<WorkloadSpan> = starts
        .into_iter()
        .map(|(key, (at, batch))| workload_span(rehearsal, key, at, batch))
        .collect();
    spans.sort_by(|a, b| {
        (a.start, &a.namespace, &a.kind, &a.name).cmp(&(b.start, &b.namespace, &b.kind, &b.name))
    });
    spans
}

fn workload_span(rehearsal: &Rehearsal<'_>, key: &WorkloadKey, at: Timestamp, batch: i32) -> WorkloadSpan {
    let recording = rehearsal.recording;
    let (end, result, reason) = match recording.outcomes.get(key) {
        Some(WorkloadOutcome::Ready(at) | WorkloadOutcome::ReadyLate(at)) => {
            (rehearsal.elapsed(*at), SpanResult::Migrated, "")
        }
        Some(WorkloadOutcome::TimedOut(at)) => {
            (rehearsal.elapsed(*at), SpanResult::Failed, "ReadinessTimeout")
        }
        Some(WorkloadOutcome::Rejected(at)) => (rehearsal.elapsed(*at), SpanResult::Failed, REJECTED),
        None => (rehearsal.end(), SpanResult::Unfinished, ""),
    };
    let failed = result == SpanResult::Failed;
    let message = recording.messages.get(key).filter(|_| failed);
    let start = rehearsal.elapsed(at);
    WorkloadSpan {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        kind: key.kind().name().to_owned(),
        batch: u32::try_from(batch).unwrap_or(0),
        replicas: rehearsal
            .model
            .workloads
            .get(key)
            .map_or(0, |workload| workload.replicas),
        start,
        end,
        result,
        reason: reason.to_owned(),
        message: match message {
            Some(message) => message.clone(),
            None if failed => "Readiness timeout exceeded".to_owned(),
            None => String::new(),
        },
        fewest_ready: services::minimum_ready_pods(rehearsal, key, start, end),
    }
}

fn batches(spans: &[WorkloadSpan]) -> Vec<Batch> {
    let mut batches: BTreeMap<u32, Batch> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.batch > 0) {
        let batch = batches.entry(span.batch).or_insert(Batch {
            number: span.batch,
            start: span.start,
            end: span.end,
            workloads: 0,
            failed: 0,
        });
        batch.start = batch.start.min(span.start);
        batch.end = batch.end.max(span.end);
        batch.workloads += 1;
        batch.failed += usize::from(span.result == SpanResult::Failed);
    }
    batches.into_values().collect()
}

fn relabeled_namespaces(rehearsal: &Rehearsal<'_>) -> Vec<RelabeledNamespace> {
    let actions = rehearsal.recording.actions.iter();
    let relabeled = actions.filter_map(|action| match &action.kind {
        ActionKind::Relabeled {
            namespace,
            revision,
            drops_injection,
        } => Some((action.at, namespace, revision, *drops_injection)),
        _ => None,
    });
    let before = |namespace: &str, dropped: bool| {
        let labels = rehearsal.model.namespaces.get(namespace);
        let label = |key: &str| labels.and_then(|labels| Some(format!("{key}={}", labels.get(key)?)));
        let injection = label(mainstay_api::names::INJECTION_LABEL).filter(|_| dropped);
        injection
            .or_else(|| label(mainstay_api::names::REVISION_LABEL))
            .unwrap_or_default()
    };
    relabeled
        .map(|(at, namespace, revision, dropped)| RelabeledNamespace {
            name: namespace.clone(),
            from: before(namespace, dropped),
            to: format!("{}={revision}", mainstay_api::names::REVISION_LABEL),
            at: rehearsal.elapsed(at),
        })
        .collect()
}

fn skipped_workloads(rehearsal: &Rehearsal<'_>) -> Vec<SkippedWorkload> {
    let preview = rehearsal.recording.final_state.preview.iter();
    let skipped = preview.flat_map(|preview| &preview.skipped);
    let mut skipped: Vec<SkippedWorkload> = skipped
        .map(|(key, reason)| SkippedWorkload {
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            kind: key.kind().name().to_owned(),
            reason: reason.name().to_owned(),
        })
        .collect();
    skipped.sort_by(|a, b| (&a.namespace, &a.kind, &a.name).cmp(&(&b.namespace, &b.kind, &b.name)));
    skipped
}

/// Returns the removed objects: revisions, and the objects that only their releases contained.
fn pruned_objects(rehearsal: &Rehearsal<'_>) -> Vec<PrunedObject> {
    let mut pruned = Vec::new();
    for action in &rehearsal.recording.actions {
        let at = rehearsal.elapsed(action.at);
        match &action.kind {
            ActionKind::Wrote("delete", kind, name) => pruned.push(PrunedObject {
                kind: kind.name().to_owned(),
                namespace: String::new(),
                name: name.clone(),
                at,
            }),
            ActionKind::Uninstalled(Some(release)) => {
                let gone = objects::exclusive_objects(rehearsal, release);
                pruned.extend(gone.into_iter().map(|(kind, namespace, name)| PrunedObject {
                    kind,
                    namespace,
                    name,
                    at,
                }));
            }
            _ => {}
        }
    }
    pruned
}

fn outcome(rehearsal: &Rehearsal<'_>, report: &Report) -> Outcome {
    let final_state = &rehearsal.recording.final_state;
    let pending = final_state
        .preview
        .as_ref()
        .map_or(0, |preview| preview.batches.len());
    let failed = report
        .workloads
        .iter()
        .any(|span| span.result == SpanResult::Failed);
    if rehearsal.recording.ready.is_none() || failed {
        Outcome::Failed
    } else if !rehearsal.recording.settled {
        Outcome::Unfinished
    } else if report.workloads.is_empty() {
        Outcome::NothingMoves
    } else if pending > 0 {
        Outcome::Unfinished
    } else {
        Outcome::Completed
    }
}

fn phases(rehearsal: &Rehearsal<'_>, report: &Report) -> Vec<Phase> {
    let recording = rehearsal.recording;
    let target = &recording.final_state.active;
    let ready = recording.ready.map(|at| rehearsal.elapsed(at));
    let mut phases = vec![Phase {
        kind: PhaseKind::ControlPlane,
        start: Elapsed(0),
        end: ready.unwrap_or_else(|| rehearsal.end()),
        detail: match ready {
            Some(_) => format!("{target} is installed and ready"),
            None => format!("{target} is not ready: {}", recording.final_state.health.1),
        },
    }];
    phases.extend(tag_phase(rehearsal));
    if let (Some(first), Some(last)) = (report.namespaces.first(), report.namespaces.last()) {
        phases.push(Phase {
            kind: PhaseKind::Namespaces,
            start: first.at,
            end: last.at,
            detail: format_count(report.namespaces.len(), "namespace", "namespaces"),
        });
    }
    let (start, end) = (
        report.batches.iter().map(|batch| batch.start).min(),
        report.batches.iter().map(|batch| batch.end).max(),
    );
    if let (Some(start), Some(end)) = (start, end) {
        let moved = report.workloads.iter().filter(|span| span.batch > 0).count();
        let failed = report.batches.iter().map(|batch| batch.failed).sum::<usize>();
        let workloads = format_count(moved, "workload", "workloads");
        let batches = format_count(report.batches.len(), "batch", "batches");
        phases.push(Phase {
            kind: PhaseKind::Batches,
            start,
            end,
            detail: match failed {
                0 => format!("{workloads} in {batches}"),
                _ => format!("{workloads} in {batches}, {failed} failed"),
            },
        });
    }
    if let Some(last) = report.pruned.last() {
        let gone: Vec<&str> = report
            .pruned
            .iter()
            .filter(|pruned| pruned.kind == "IstioRevision")
            .map(|pruned| pruned.name.as_str())
            .collect();
        phases.push(Phase {
            kind: PhaseKind::Pruning,
            start: end.or(ready).unwrap_or_default().min(last.at),
            end: last.at,
            detail: format!("{} removed", gone.join(", ")),
        });
    }
    phases
}

fn tag_phase(rehearsal: &Rehearsal<'_>) -> Option<Phase> {
    let actions = rehearsal.recording.actions.iter();
    let moved = actions.filter_map(|action| match &action.kind {
        ActionKind::Installed(release, _) if release.chart == TAG_CHART => {
            Some((rehearsal.elapsed(action.at), release.owner.name.clone()))
        }
        _ => None,
    });
    let moved: Vec<(Elapsed, String)> = moved.collect();
    let (start, end) = (moved.first()?.0, moved.last()?.0);
    let mut names: Vec<&str> = moved.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    Some(Phase {
        kind: PhaseKind::Tags,
        start,
        end,
        detail: format!(
            "{} to {}",
            names.join(", "),
            rehearsal.recording.final_state.active
        ),
    })
}

/// Name of the chart of revision tags.
pub(crate) const TAG_CHART: &str = "revisiontags";

/// Reason of a workload if the API server rejected its restart.
pub(crate) const REJECTED: &str = "Rejected";

fn totals(rehearsal: &Rehearsal<'_>, report: &Report) -> Totals {
    let count = |result| {
        report
            .workloads
            .iter()
            .filter(|span| span.result == result)
            .count()
    };
    let first = report.batches.iter().map(|batch| batch.start).min();
    let last = report.batches.iter().map(|batch| batch.end).max();
    Totals {
        duration: rehearsal.end(),
        moving: last.unwrap_or_default().since(first.unwrap_or_default()),
        workloads: report.workloads.len() + report.skipped.len(),
        migrated: count(SpanResult::Migrated),
        failed: count(SpanResult::Failed),
        skipped: report.skipped.len(),
        batches: report.batches.len(),
        pods: services::replaced_pods(report),
        namespaces: report.namespaces.len(),
        writes: report.writes.iter().map(|writes| writes.count).sum(),
        services_interrupted: report
            .services
            .iter()
            .filter(|service| service.interrupted > Elapsed(0))
            .count(),
    }
}

/// Formats a count with its noun.
pub(crate) fn format_count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
