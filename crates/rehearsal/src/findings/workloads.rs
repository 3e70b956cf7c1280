//! Findings about workloads that fail, are skipped, or do not verify the new revision.

use super::{Class, finding};
use crate::compose::{REJECTED, Rehearsal};
use crate::recording::WorkloadOutcome;
use crate::report::{Finding, FindingKind, Report, SpanResult, WorkloadSpan};

pub(super) fn add_findings(rehearsal: &Rehearsal<'_>, report: &Report, found: &mut Vec<Finding>) {
    for span in &report.workloads {
        let subject = format!("{} {}/{}", span.kind, span.namespace, span.name);
        match span.result {
            SpanResult::Failed => found.push(failure_finding(rehearsal, span, subject)),
            SpanResult::Unfinished => found.push(finding(
                Class::error(FindingKind::WorkloadFails),
                subject,
                "not ready when the rehearsal ended",
                "check its pods",
            )),
            SpanResult::Migrated if span.replicas == 0 => found.push(finding(
                Class::info(FindingKind::NoReplicas),
                subject,
                "no replicas: its template changes, but no pod verifies it",
                "scale it up after the upgrade",
            )),
            SpanResult::Migrated => {}
        }
    }
    check_late_workloads(rehearsal, found);
    check_skipped_workloads(report, found);
    check_standalone_pods(rehearsal, found);
}

fn failure_finding(rehearsal: &Rehearsal<'_>, span: &WorkloadSpan, subject: String) -> Finding {
    let model = rehearsal.model.workloads_in(&span.namespace);
    let mut model = model.filter(|(key, _)| key.name() == span.name && key.kind().name() == span.kind);
    let never = model
        .next()
        .is_some_and(|(_, workload)| workload.readiness.ready.is_none());
    let remedy = if span.reason == REJECTED {
        "check the quota, policy or webhook that rejects the change"
    } else if span.message.contains("pods were injected by") {
        "check its labels and the webhooks that select it: new pods get no proxy of the new revision"
    } else if never {
        "fix its pods first, because they are not ready before the upgrade either, or skip it with sailoperator.io/skip-migration"
    } else {
        "fix the cause, or extend its timeout with sailoperator.io/readiness-timeout"
    };
    finding(
        Class::error(FindingKind::WorkloadFails),
        subject,
        span.message.clone(),
        remedy,
    )
}

fn check_late_workloads(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let late = rehearsal
        .recording
        .outcomes
        .iter()
        .filter_map(|(key, end)| match end {
            WorkloadOutcome::ReadyLate(at) => Some((key, rehearsal.elapsed(*at))),
            _ => None,
        });
    for (key, at) in late {
        let subject = format!("{} {}/{}", key.kind().name(), key.namespace(), key.name());
        let what = format!("ready only after its readiness timeout ({at} after the start)");
        found.push(finding(
            Class::warning(FindingKind::WorkloadFails),
            subject,
            what,
            "extend its timeout with sailoperator.io/readiness-timeout",
        ));
    }
}

/// Finding kind and suggested fix for each skip reason.
const REMEDIES: [(&str, FindingKind, &str); 11] = [
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
    (
        "WorkloadPaused",
        FindingKind::Skipped,
        "run kubectl rollout resume",
    ),
    (
        "UpdatesOnDelete",
        FindingKind::Skipped,
        "delete its pods to update them",
    ),
    (
        "PinnedByTag",
        FindingKind::Tag,
        "point its tag to the Istio instead of a revision",
    ),
    (
        "NoReference",
        FindingKind::MissingLabel,
        "label its namespace or template for injection, or restart it without a proxy",
    ),
    (
        "InjectionDisabled",
        FindingKind::MissingLabel,
        "remove the label istio-injection from its namespace, or the revision from its template",
    ),
    (
        "HostNetwork",
        FindingKind::Skipped,
        "remove the revision from its labels: pods on the host network have no proxy",
    ),
    (
        "NotInjected",
        FindingKind::Skipped,
        "restart it to inject its pods, or remove the revision from its template",
    ),
    (
        "UpdatesPartitioned",
        FindingKind::Skipped,
        "set spec.updateStrategy.rollingUpdate.partition to 0",
    ),
    (
        "InvalidAnnotation",
        FindingKind::Skipped,
        "correct its annotations sailoperator.io/skip-migration, readiness-timeout and migration-batch",
    ),
];

fn check_skipped_workloads(report: &Report, found: &mut Vec<Finding>) {
    for skipped in &report.skipped {
        let known = REMEDIES.iter().find(|(reason, ..)| *reason == skipped.reason);
        let (kind, remedy) = known.map_or((FindingKind::Skipped, ""), |(_, kind, remedy)| (*kind, *remedy));
        let subject = format!("{} {}/{}", skipped.kind, skipped.namespace, skipped.name);
        let what = format!("skipped ({})", skipped.reason);
        found.push(finding(Class::warning(kind), subject, what, remedy));
    }
}

fn check_standalone_pods(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let preview = rehearsal.recording.final_state.preview.iter();
    for (namespace, pod) in preview.flat_map(|preview| &preview.standalone) {
        found.push(finding(
            Class::warning(FindingKind::UnmanagedPod),
            format!("Pod {namespace}/{pod}"),
            "not managed by a workload: it keeps the old revision until it ends",
            "delete it, or wait for it to end",
        ));
    }
}
