//! A recording becomes a report: takes what happened and what was there, gives lists in a fixed order. Decides nothing but order.

pub(crate) mod services;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_catalog::{Catalog, Version};
use mainstay_mesh::workload::WorkloadKey;

use crate::findings;
use crate::input::{Input, KINDS};
use crate::objects::{self, Shelf};
use crate::recording::{End, Recording, What};
use crate::report::{
    Batch, Counted, FORMAT, Input as InputFacts, Method, Moment, Outcome, Phase, PhaseKind, Pruned,
    Relabelled, Report, Skipped, Span, SpanResult, Totals, Upgrade,
};
use crate::scene::Scene;
use crate::wish::{Plot, Wish};

/// Everything about one rehearsal.
pub(crate) struct Play<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) input: &'a Input,
    pub(crate) wish: &'a Wish,
    pub(crate) plot: &'a Plot,
    pub(crate) scene: &'a Scene,
    pub(crate) recording: &'a Recording,
    pub(crate) version: &'a Version,
    pub(crate) method: Method,
    /// What the releases consist of.
    pub(crate) shelf: Shelf,
}

impl Play<'_> {
    /// How long after the beginning.
    pub(crate) fn moment(&self, at: Timestamp) -> Moment {
        let began = self.recording.began.unwrap_or(at);
        let since = std::time::Duration::try_from(at.duration_since(began));
        since.map(Moment::from).unwrap_or_default()
    }

    /// The last thing that happened.
    pub(crate) fn end(&self) -> Moment {
        self.recording
            .last
            .map(|last| self.moment(last))
            .unwrap_or_default()
    }

    /// The revision workloads are on before.
    pub(crate) fn old_revision(&self) -> &str {
        self.recording
            .revisions
            .iter()
            .map(String::as_str)
            .find(|name| *name != self.recording.finale.active)
            .unwrap_or_default()
    }
}

/// The report.
pub(crate) fn compose(play: &Play<'_>) -> Report {
    let workloads = spans(play);
    let batches = batches(&workloads);
    let services = services::services(play);
    let mut report = Report {
        format: FORMAT,
        upgrade: upgrade(play),
        input: facts(play),
        seed: play.wish.seed,
        method: play.method,
        outcome: Outcome::Completed,
        totals: Totals::default(),
        findings: Vec::new(),
        phases: Vec::new(),
        namespaces: relabelled(play),
        batches,
        workloads,
        skipped: skipped(play),
        objects: objects::changes(play),
        services,
        pruned: pruned(play),
        writes: writes::writes(play),
    };
    report.outcome = outcome(play, &report);
    report.phases = phases(play, &report);
    report.totals = totals(play, &report);
    report.findings = findings::findings(play, &report);
    report
}

fn upgrade(play: &Play<'_>) -> Upgrade {
    Upgrade {
        istio: play.plot.istio.name().to_owned(),
        from: play.plot.istio.spec.version.clone(),
        to: play.version.name(),
        from_revision: play.old_revision().to_owned(),
        to_revision: play.recording.finale.active.clone(),
        suppositions: play.plot.suppositions.clone(),
    }
}

fn facts(play: &Play<'_>) -> InputFacts {
    let counts = KINDS
        .iter()
        .map(|kind| (kind.kind, play.input.of_kind(kind.kind).len()));
    let counts: BTreeMap<&str, usize> = counts.filter(|(_, count)| *count > 0).collect();
    let observed = play
        .scene
        .workloads
        .values()
        .filter(|workload| workload.pace.observed);
    InputFacts {
        source: play.input.source.clone(),
        objects: counts
            .into_iter()
            .map(|(kind, count)| Counted {
                kind: kind.to_owned(),
                count,
            })
            .collect(),
        missing: play
            .input
            .missing
            .iter()
            .map(|(kind, _)| (*kind).to_owned())
            .collect(),
        observed_readiness: observed.count(),
        default_readiness: play.scene.default_readiness.into(),
    }
}

/// Every workload that was moved, or refused.
fn spans(play: &Play<'_>) -> Vec<Span> {
    let recording = play.recording;
    let moved = recording.deeds.iter().filter_map(|deed| match &deed.what {
        What::Moved(key, batch) => Some((key, (deed.at, *batch))),
        _ => None,
    });
    // One that was moved twice counts from the first time on.
    let mut starts: BTreeMap<&WorkloadKey, (Timestamp, i32)> = BTreeMap::new();
    for (key, start) in moved {
        starts.entry(key).or_insert(start);
    }
    for (key, end) in &recording.ends {
        if let End::Refused(at) = end {
            starts.entry(key).or_insert((*at, 0));
        }
    }
    let mut spans: Vec<Span> = starts
        .into_iter()
        .map(|(key, (at, batch))| span(play, key, at, batch))
        .collect();
    spans.sort_by(|a, b| {
        (a.start, &a.namespace, &a.kind, &a.name).cmp(&(b.start, &b.namespace, &b.kind, &b.name))
    });
    spans
}

fn span(play: &Play<'_>, key: &WorkloadKey, at: Timestamp, batch: i32) -> Span {
    let recording = play.recording;
    let (end, result, reason) = match recording.ends.get(key) {
        Some(End::Up(at) | End::UpLate(at)) => (play.moment(*at), SpanResult::Migrated, ""),
        Some(End::Late(at)) => (play.moment(*at), SpanResult::Failed, "ReadinessTimeout"),
        Some(End::Refused(at)) => (play.moment(*at), SpanResult::Failed, "Refused"),
        None => (play.end(), SpanResult::Unfinished, ""),
    };
    let failed = result == SpanResult::Failed;
    let message = recording.messages.get(key).filter(|_| failed);
    let start = play.moment(at);
    Span {
        namespace: key.namespace().to_owned(),
        name: key.name().to_owned(),
        kind: key.kind().name().to_owned(),
        batch: u32::try_from(batch).unwrap_or(0),
        replicas: play
            .scene
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
        fewest_ready: services::fewest(play, key, start, end),
    }
}

fn batches(spans: &[Span]) -> Vec<Batch> {
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

fn relabelled(play: &Play<'_>) -> Vec<Relabelled> {
    let deeds = play.recording.deeds.iter();
    let relabelled = deeds.filter_map(|deed| match &deed.what {
        What::Relabelled {
            namespace,
            revision,
            dropped,
        } => Some((deed.at, namespace, revision, *dropped)),
        _ => None,
    });
    let before = |namespace: &str, dropped: bool| {
        let labels = play.scene.namespaces.get(namespace);
        let says = |key: &str| labels.and_then(|labels| Some(format!("{key}={}", labels.get(key)?)));
        let injection = says(mainstay_api::names::INJECTION_LABEL).filter(|_| dropped);
        injection
            .or_else(|| says(mainstay_api::names::REVISION_LABEL))
            .unwrap_or_default()
    };
    relabelled
        .map(|(at, namespace, revision, dropped)| Relabelled {
            name: namespace.clone(),
            from: before(namespace, dropped),
            to: format!("{}={revision}", mainstay_api::names::REVISION_LABEL),
            at: play.moment(at),
        })
        .collect()
}

fn skipped(play: &Play<'_>) -> Vec<Skipped> {
    let preview = play.recording.finale.preview.iter();
    let skipped = preview.flat_map(|preview| &preview.skipped);
    let mut skipped: Vec<Skipped> = skipped
        .map(|(key, reason)| Skipped {
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            kind: key.kind().name().to_owned(),
            reason: reason.name().to_owned(),
        })
        .collect();
    skipped.sort_by(|a, b| (&a.namespace, &a.kind, &a.name).cmp(&(&b.namespace, &b.kind, &b.name)));
    skipped
}

/// What goes: the revision, then what was rendered for it and nobody else renders.
fn pruned(play: &Play<'_>) -> Vec<Pruned> {
    let mut pruned = Vec::new();
    for deed in &play.recording.deeds {
        let at = play.moment(deed.at);
        match &deed.what {
            What::Wrote("delete", kind, name) => pruned.push(Pruned {
                kind: kind.name().to_owned(),
                namespace: String::new(),
                name: name.clone(),
                at,
            }),
            What::Uninstalled(Some(release)) => {
                let gone = objects::only_in(play, release);
                pruned.extend(gone.into_iter().map(|(kind, namespace, name)| Pruned {
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

fn outcome(play: &Play<'_>, report: &Report) -> Outcome {
    let finale = &play.recording.finale;
    let pending = finale.preview.as_ref().map_or(0, |preview| preview.batches.len());
    let failed = report
        .workloads
        .iter()
        .any(|span| span.result == SpanResult::Failed);
    if play.recording.ready.is_none() || failed {
        Outcome::Failed
    } else if !play.recording.rested {
        Outcome::Unfinished
    } else if report.workloads.is_empty() {
        Outcome::NothingMoves
    } else if pending > 0 {
        Outcome::Unfinished
    } else {
        Outcome::Completed
    }
}

fn phases(play: &Play<'_>, report: &Report) -> Vec<Phase> {
    let recording = play.recording;
    let target = &recording.finale.active;
    let ready = recording.ready.map(|at| play.moment(at));
    let mut phases = vec![Phase {
        kind: PhaseKind::ControlPlane,
        start: Moment(0),
        end: ready.unwrap_or_else(|| play.end()),
        detail: match ready {
            Some(_) => format!("{target} is installed and ready"),
            None => format!("{target} is not ready: {}", recording.finale.health.1),
        },
    }];
    phases.extend(tags(play));
    if let (Some(first), Some(last)) = (report.namespaces.first(), report.namespaces.last()) {
        phases.push(Phase {
            kind: PhaseKind::Namespaces,
            start: first.at,
            end: last.at,
            detail: counted(report.namespaces.len(), "namespace", "namespaces"),
        });
    }
    let (start, end) = (
        report.batches.iter().map(|batch| batch.start).min(),
        report.batches.iter().map(|batch| batch.end).max(),
    );
    if let (Some(start), Some(end)) = (start, end) {
        let moved = report.workloads.iter().filter(|span| span.batch > 0).count();
        let failed = report.batches.iter().map(|batch| batch.failed).sum::<usize>();
        let workloads = counted(moved, "workload", "workloads");
        let batches = counted(report.batches.len(), "batch", "batches");
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

fn tags(play: &Play<'_>) -> Option<Phase> {
    let deeds = play.recording.deeds.iter();
    let moved = deeds.filter_map(|deed| match &deed.what {
        What::Installed(release, _) if release.chart == TAG_CHART => {
            Some((play.moment(deed.at), release.owner.name.clone()))
        }
        _ => None,
    });
    let moved: Vec<(Moment, String)> = moved.collect();
    let (start, end) = (moved.first()?.0, moved.last()?.0);
    let mut names: Vec<&str> = moved.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    Some(Phase {
        kind: PhaseKind::Tags,
        start,
        end,
        detail: format!("{} → {}", names.join(", "), play.recording.finale.active),
    })
}

/// The chart of a tag.
pub(crate) const TAG_CHART: &str = "revisiontags";

fn totals(play: &Play<'_>, report: &Report) -> Totals {
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
        duration: play.end(),
        moving: last.unwrap_or_default().since(first.unwrap_or_default()),
        workloads: report.workloads.len() + report.skipped.len(),
        migrated: count(SpanResult::Migrated),
        failed: count(SpanResult::Failed),
        skipped: report.skipped.len(),
        batches: report.batches.len(),
        pods: services::replaced(report),
        namespaces: report.namespaces.len(),
        writes: report.writes.iter().map(|writes| writes.count).sum(),
        services_interrupted: report
            .services
            .iter()
            .filter(|service| service.interrupted > Moment(0))
            .count(),
    }
}

/// So many of something.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
