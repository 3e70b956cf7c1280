//! Workloads that fail, are left alone or prove nothing.

use super::finding;
use crate::compose::Play;
use crate::recording::End;
use crate::report::{Finding, FindingKind, Report, Severity, Span, SpanResult};

/// Findings about single workloads.
pub(super) fn find(play: &Play<'_>, report: &Report, found: &mut Vec<Finding>) {
    for span in &report.workloads {
        let subject = format!("{} {}/{}", span.kind, span.namespace, span.name);
        match span.result {
            SpanResult::Failed => found.push(failed(play, span, subject)),
            SpanResult::Unfinished => found.push(finding(
                (Severity::Error, FindingKind::WorkloadFails),
                subject,
                "it had not come up when the rehearsal ended",
                "look at its pods",
            )),
            SpanResult::Migrated if span.replicas == 0 => found.push(finding(
                (Severity::Info, FindingKind::NoReplicas),
                subject,
                "it has no replicas: its template is changed, but nothing proves that it comes up",
                "scale it up once after the upgrade",
            )),
            SpanResult::Migrated => {}
        }
    }
    late(play, found);
    skipped(report, found);
    loose(play, found);
}

fn failed(play: &Play<'_>, span: &Span, subject: String) -> Finding {
    let scene = play.scene.workloads_in(&span.namespace);
    let mut scene = scene.filter(|(key, _)| key.name() == span.name && key.kind().name() == span.kind);
    let never = scene
        .next()
        .is_some_and(|(_, workload)| workload.pace.ready.is_none());
    let remedy = if span.reason == "Refused" {
        "see what refuses the change: quotas, policies, webhooks"
    } else if span.message.contains("pods were injected by") {
        "its new pods get no proxy of the new revision: look at its labels and at the webhooks that select it"
    } else if never {
        "its pods are not ready now either: mend it first, or leave it alone with sailoperator.io/skip-migration"
    } else {
        "give it more time with sailoperator.io/readiness-timeout, or mend what keeps it from being ready"
    };
    finding(
        (Severity::Error, FindingKind::WorkloadFails),
        subject,
        span.message.clone(),
        remedy,
    )
}

fn late(play: &Play<'_>, found: &mut Vec<Finding>) {
    let late = play.recording.ends.iter().filter_map(|(key, end)| match end {
        End::UpLate(at) => Some((key, play.moment(*at))),
        _ => None,
    });
    for (key, at) in late {
        let subject = format!("{} {}/{}", key.kind().name(), key.namespace(), key.name());
        let what = format!("it comes up, but only after its readiness timeout ({at} after the beginning)");
        found.push(finding(
            (Severity::Warning, FindingKind::WorkloadFails),
            subject,
            what,
            "give it more time with sailoperator.io/readiness-timeout",
        ));
    }
}

/// What each reason means and what to do about it.
const REMEDIES: [(&str, FindingKind, &str); 6] = [
    (
        "SkippedByAnnotation",
        FindingKind::Skipped,
        "remove the annotation sailoperator.io/skip-migration",
    ),
    (
        "KindNotSelected",
        FindingKind::Skipped,
        "add its kind to spec.updateStrategy.workloadMigration.kinds",
    ),
    ("WorkloadPaused", FindingKind::Skipped, "kubectl rollout resume"),
    (
        "UpdatesOnDelete",
        FindingKind::Skipped,
        "delete its pods yourself",
    ),
    (
        "PinnedByTag",
        FindingKind::Tag,
        "its tag points to a revision on purpose; point it to the Istio",
    ),
    (
        "NoReference",
        FindingKind::MissingLabel,
        "nothing asks for injection any more: label its namespace or template, or restart it without a proxy",
    ),
];

fn skipped(report: &Report, found: &mut Vec<Finding>) {
    for skipped in &report.skipped {
        let known = REMEDIES.iter().find(|(reason, ..)| *reason == skipped.reason);
        let (kind, remedy) = known.map_or((FindingKind::Skipped, ""), |(_, kind, remedy)| (*kind, *remedy));
        let subject = format!("{} {}/{}", skipped.kind, skipped.namespace, skipped.name);
        let what = format!("it is left where it is ({})", skipped.reason);
        found.push(finding((Severity::Warning, kind), subject, what, remedy));
    }
}

fn loose(play: &Play<'_>, found: &mut Vec<Finding>) {
    let preview = play.recording.finale.preview.iter();
    for (namespace, pod) in preview.flat_map(|preview| &preview.standalone) {
        found.push(finding(
            (Severity::Warning, FindingKind::UnmanagedPod),
            format!("Pod {namespace}/{pod}"),
            "no workload made it, so nobody can move it; it keeps the old revision until it ends",
            "delete it or let it end",
        ));
    }
}
