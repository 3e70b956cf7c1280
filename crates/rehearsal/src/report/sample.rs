//! A small sample report that contains a failure, an interruption and a skipped workload.

use std::ops::Range;

use super::{
    Batch, Change, Elapsed, FORMAT, FieldChange, Finding, FindingKind, Input, KindCount, Method,
    ObjectChange, Outcome, Phase, PhaseKind, Point, PrunedObject, RelabeledNamespace, Report, Service,
    Severity, SkippedWorkload, SpanResult, Totals, Upgrade, WorkloadSpan, WriteCount,
};

impl Report {
    /// Returns a sample report for tests of the presentation.
    #[must_use]
    pub fn sample() -> Self {
        Self {
            format: FORMAT,
            upgrade: upgrade(),
            input: input(),
            seed: 42,
            method: Method::Embedded,
            outcome: Outcome::Failed,
            totals: totals(),
            findings: findings(),
            phases: phases(),
            namespaces: vec![RelabeledNamespace {
                name: "shop".into(),
                from: "istio.io/rev=default-v1-28-2".into(),
                to: "istio.io/rev=default-v1-29-1".into(),
                at: Elapsed(14_200),
            }],
            batches: vec![
                batch(1, 14_500..26_500, 2, 0),
                batch(2, 56_500..356_500, 2, 1),
                batch(3, 386_500..399_000, 1, 0),
            ],
            workloads: workloads(),
            skipped: vec![SkippedWorkload {
                namespace: "data".into(),
                name: "billing".into(),
                kind: "Deployment".into(),
                reason: "SkippedByAnnotation".into(),
            }],
            objects: objects(),
            services: services(),
            pruned: vec![
                pruned("IstioRevision", "", "default-v1-28-2", 429_000),
                pruned("Deployment", "istio-system", "istiod-default-v1-28-2", 429_200),
                pruned("Service", "istio-system", "istiod-default-v1-28-2", 429_200),
            ],
            writes: vec![
                writes("apply", "Deployment", 1),
                writes("create", "IstioRevision", 1),
                writes("patch", "Deployment", 5),
                writes("patch", "Namespace", 1),
                writes("status", "Istio", 11),
            ],
        }
    }
}

fn upgrade() -> Upgrade {
    Upgrade {
        istio: "default".into(),
        from: "v1.28.2".into(),
        to: "v1.29.1".into(),
        from_revision: "default-v1-28-2".into(),
        to_revision: "default-v1-29-1".into(),
        suppositions: vec!["assuming workloadMigration.strategy Batched, which is not enabled".into()],
    }
}

fn input() -> Input {
    let counted = |kind: &str, count| KindCount {
        kind: kind.into(),
        count,
    };
    Input {
        source: "snapshot backup.yaml".into(),
        objects: vec![
            counted("Deployment", 6),
            counted("Namespace", 3),
            counted("Pod", 14),
            counted("Service", 4),
        ],
        missing: vec!["PodDisruptionBudget".into()],
        observed_readiness: 5,
        default_readiness: Elapsed::from_secs(10),
    }
}

fn totals() -> Totals {
    Totals {
        duration: Elapsed(429_200),
        moving: Elapsed(384_500),
        workloads: 6,
        migrated: 4,
        failed: 1,
        skipped: 1,
        batches: 3,
        pods: 12,
        namespaces: 1,
        writes: 19,
        services_interrupted: 1,
    }
}

fn findings() -> Vec<Finding> {
    let finding = |severity, kind, subject: &str, what: &str, remedy: &str| Finding {
        severity,
        kind,
        subject: subject.into(),
        what: what.into(),
        remedy: remedy.into(),
    };
    vec![
        finding(
            Severity::Error,
            FindingKind::WorkloadFails,
            "Deployment shop/slow",
            "not ready 5m after its restart",
            "check its pods, or extend its timeout with sailoperator.io/readiness-timeout",
        ),
        finding(
            Severity::Error,
            FindingKind::Interruption,
            "Service shop/cart",
            "no ready endpoint for 4.5s, first at 20s",
            "use strategy RollingUpdate with maxUnavailable 0",
        ),
        finding(
            Severity::Warning,
            FindingKind::Skipped,
            "Deployment data/billing",
            "stays on default-v1-28-2 (SkippedByAnnotation)",
            "remove the annotation sailoperator.io/skip-migration",
        ),
        finding(
            Severity::Info,
            FindingKind::MissingInput,
            "input",
            "the snapshot contains no PodDisruptionBudget",
            "add the output of kubectl get poddisruptionbudgets -A -o yaml",
        ),
    ]
}

fn phases() -> Vec<Phase> {
    let phase = |kind, start, end, detail: &str| Phase {
        kind,
        start: Elapsed(start),
        end: Elapsed(end),
        detail: detail.into(),
    };
    vec![
        phase(
            PhaseKind::ControlPlane,
            0,
            14_000,
            "default-v1-29-1 is installed and ready",
        ),
        phase(PhaseKind::Tags, 14_000, 14_100, "default to default-v1-29-1"),
        phase(PhaseKind::Namespaces, 14_200, 14_400, "1 namespace"),
        phase(
            PhaseKind::Batches,
            14_500,
            399_000,
            "5 workloads in 3 batches, 1 failed",
        ),
        phase(
            PhaseKind::Pruning,
            399_000,
            429_200,
            "default-v1-28-2 removed after 30s",
        ),
    ]
}

fn batch(number: u32, period: Range<u64>, workloads: usize, failed: usize) -> Batch {
    Batch {
        number,
        start: Elapsed(period.start),
        end: Elapsed(period.end),
        workloads,
        failed,
    }
}

fn workloads() -> Vec<WorkloadSpan> {
    let span = |name: &str, batch, start, end| WorkloadSpan {
        namespace: if name == "web" { "front" } else { "shop" }.into(),
        name: name.into(),
        kind: "Deployment".into(),
        batch,
        replicas: 3,
        start: Elapsed(start),
        end: Elapsed(end),
        result: SpanResult::Migrated,
        reason: String::new(),
        message: String::new(),
        fewest_ready: 3,
    };
    vec![
        span("web", 1, 14_500, 24_500),
        WorkloadSpan {
            replicas: 1,
            fewest_ready: 0,
            ..span("cart", 1, 14_600, 26_500)
        },
        span("orders", 2, 56_500, 70_000),
        WorkloadSpan {
            result: SpanResult::Failed,
            reason: "ReadinessTimeout".into(),
            message: "not ready 5m0s after its restart".into(),
            fewest_ready: 2,
            ..span("slow", 2, 56_600, 356_500)
        },
        span("search", 3, 386_500, 399_000),
    ]
}

fn objects() -> Vec<ObjectChange> {
    let image = FieldChange {
        path: "spec.template.spec.containers[discovery].image".into(),
        old: Some("\"docker.io/istio/pilot:1.28.2\"".into()),
        new: Some("\"docker.io/istio/pilot:1.29.1\"".into()),
        diff: None,
    };
    let config = FieldChange {
        path: "data.mesh".into(),
        old: None,
        new: None,
        diff: Some(
            "--- old\n+++ new\n@@ -1,3 +1,3 @@\n accessLogFile: \"\"\n-enableTracing: true\n+enableTracing: false\n".into(),
        ),
    };
    let object = |kind: &str, namespace: &str, name: &str, change, fields| ObjectChange {
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
        change,
        fields,
    };
    vec![
        object(
            "ConfigMap",
            "istio-system",
            "istio-default-v1-29-1",
            Change::Changed,
            vec![config],
        ),
        object(
            "Deployment",
            "istio-system",
            "istiod-default-v1-29-1",
            Change::Changed,
            vec![image],
        ),
        object(
            "NetworkPolicy",
            "istio-system",
            "istiod-default-v1-29-1",
            Change::Added,
            vec![],
        ),
    ]
}

fn services() -> Vec<Service> {
    let point = |at, ready| Point {
        at: Elapsed(at),
        ready,
    };
    vec![
        Service {
            namespace: "front".into(),
            name: "web".into(),
            desired: 3,
            fewest: 3,
            points: vec![point(0, 3), point(18_000, 4), point(19_000, 3)],
            interrupted: Elapsed(0),
        },
        Service {
            namespace: "shop".into(),
            name: "cart".into(),
            desired: 1,
            fewest: 0,
            points: vec![point(0, 1), point(20_000, 0), point(24_500, 1)],
            interrupted: Elapsed(4_500),
        },
    ]
}

fn pruned(kind: &str, namespace: &str, name: &str, at: u64) -> PrunedObject {
    PrunedObject {
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
        at: Elapsed(at),
    }
}

fn writes(verb: &str, kind: &str, count: usize) -> WriteCount {
    WriteCount {
        verb: verb.into(),
        kind: kind.into(),
        count,
    }
}
