//! A report made by hand: every sort of finding's neighbour, a failure, an interruption and a skip, small enough to read.

use super::{
    Batch, Change, Counted, FORMAT, FieldChange, Finding, FindingKind, Input, Method, Moment, ObjectChange,
    Outcome, Phase, PhaseKind, Point, Pruned, Relabelled, Report, Service, Severity, Skipped, Span,
    SpanResult, Totals, Upgrade, Writes,
};

impl Report {
    /// A report made by hand, for those who draw reports.
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
            namespaces: vec![Relabelled {
                name: "shop".into(),
                from: "istio.io/rev=default-v1-28-2".into(),
                to: "istio.io/rev=default-v1-29-1".into(),
                at: Moment(14_200),
            }],
            batches: vec![
                batch(1, (14_500, 26_500), 2, 0),
                batch(2, (56_500, 356_500), 2, 1),
                batch(3, (386_500, 399_000), 1, 0),
            ],
            workloads: workloads(),
            skipped: vec![Skipped {
                namespace: "data".into(),
                name: "ledger".into(),
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
        suppositions: vec!["supposing workloadMigration.strategy Batched: it is not switched on".into()],
    }
}

fn input() -> Input {
    let counted = |kind: &str, count| Counted {
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
        default_readiness: Moment::seconds(10),
    }
}

fn totals() -> Totals {
    Totals {
        duration: Moment(429_200),
        moving: Moment(384_500),
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
            "it is not ready 5m after its restart",
            "look at its pods, or give it more time: sailoperator.io/readiness-timeout",
        ),
        finding(
            Severity::Error,
            FindingKind::Interruption,
            "Service shop/cart",
            "no endpoint is ready for 4.5s, from 0m20s on",
            "let cart keep a pod: maxUnavailable 0, or strategy RollingUpdate",
        ),
        finding(
            Severity::Warning,
            FindingKind::Skipped,
            "Deployment data/ledger",
            "it is left on default-v1-28-2 (SkippedByAnnotation)",
            "remove the annotation sailoperator.io/skip-migration",
        ),
        finding(
            Severity::Info,
            FindingKind::MissingInput,
            "input",
            "there are no PodDisruptionBudgets in the snapshot",
            "kubectl get poddisruptionbudgets -A -o yaml",
        ),
    ]
}

fn phases() -> Vec<Phase> {
    let phase = |kind, start, end, detail: &str| Phase {
        kind,
        start: Moment(start),
        end: Moment(end),
        detail: detail.into(),
    };
    vec![
        phase(
            PhaseKind::ControlPlane,
            0,
            14_000,
            "default-v1-29-1 is installed and ready",
        ),
        phase(PhaseKind::Tags, 14_000, 14_100, "default → default-v1-29-1"),
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
            "default-v1-28-2 is removed after 30s",
        ),
    ]
}

fn batch(number: u32, (start, end): (u64, u64), workloads: usize, failed: usize) -> Batch {
    Batch {
        number,
        start: Moment(start),
        end: Moment(end),
        workloads,
        failed,
    }
}

fn workloads() -> Vec<Span> {
    let span = |name: &str, batch, start, end| Span {
        namespace: if name == "web" { "front" } else { "shop" }.into(),
        name: name.into(),
        kind: "Deployment".into(),
        batch,
        replicas: 3,
        start: Moment(start),
        end: Moment(end),
        result: SpanResult::Migrated,
        reason: String::new(),
        message: String::new(),
        fewest_ready: 3,
    };
    vec![
        span("web", 1, 14_500, 24_500),
        Span {
            replicas: 1,
            fewest_ready: 0,
            ..span("cart", 1, 14_600, 26_500)
        },
        span("orders", 2, 56_500, 70_000),
        Span {
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
        at: Moment(at),
        ready,
    };
    vec![
        Service {
            namespace: "front".into(),
            name: "web".into(),
            desired: 3,
            fewest: 3,
            points: vec![point(0, 3), point(18_000, 4), point(19_000, 3)],
            interrupted: Moment(0),
        },
        Service {
            namespace: "shop".into(),
            name: "cart".into(),
            desired: 1,
            fewest: 0,
            points: vec![point(0, 1), point(20_000, 0), point(24_500, 1)],
            interrupted: Moment(4_500),
        },
    ]
}

fn pruned(kind: &str, namespace: &str, name: &str, at: u64) -> Pruned {
    Pruned {
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
        at: Moment(at),
    }
}

fn writes(verb: &str, kind: &str, count: usize) -> Writes {
    Writes {
        verb: verb.into(),
        kind: kind.into(),
        count,
    }
}
