//! Rehearsals of a mesh with workloads of every sort: what is told, the same every time, and what the operator then does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::time::Duration;

use mainstay_rehearsal::Wish;
use mainstay_rehearsal::report::{FindingKind, Outcome, PhaseKind, SpanResult};
use serde_json::json;

use support::{ISTIO, NEW, OLD, batched, cast, found, istio, objects, old_mesh, report, snapshot, upgrade};

fn wish() -> Wish {
    Wish {
        readiness_of: [("shop/slow".to_owned(), None)].into(),
        ..upgrade()
    }
}

#[test]
fn everything_about_an_upgrade_is_told() {
    let objects = snapshot(&istio(&batched(2, "10s")), cast());
    let report = report(&objects, &wish());
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(
        (
            report.upgrade.from_revision.as_str(),
            report.upgrade.to_revision.as_str()
        ),
        (OLD, NEW)
    );
    let phases: Vec<PhaseKind> = report.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(
        phases,
        [
            PhaseKind::ControlPlane,
            PhaseKind::Tags,
            PhaseKind::Namespaces,
            PhaseKind::Batches
        ]
    );
    let failed: Vec<&str> = report
        .workloads
        .iter()
        .filter(|span| span.result == SpanResult::Failed)
        .map(|span| span.name.as_str())
        .collect();
    assert_eq!(failed, ["slow"]);
    assert_eq!(
        found(&report, FindingKind::WorkloadFails),
        ["Error Deployment shop/slow: Readiness timeout exceeded after 5m0s: 1/2 replicas updated, 2 ready"]
    );
}

#[test]
fn the_operator_then_does_what_was_rehearsed() {
    let (objects, trace) = old_mesh(&istio(&batched(2, "10s")), cast(), async |stage, operator| {
        let before = objects(&stage);
        let lines = stage.cluster().trace().lines().count();
        stage
            .merge(ISTIO, &json!({"spec": {"version": "v1.29.1"}}))
            .await?;
        stage.pass(Duration::from_mins(30)).await;
        operator.stop().await?;
        let trace = stage.cluster().trace();
        let patches: Vec<String> = trace
            .lines()
            .skip(lines)
            .filter(|line| line.contains("mainstay: PATCH") && line.contains("/deployments/"))
            .filter_map(|line| {
                line.split("namespaces/")
                    .nth(1)?
                    .split(' ')
                    .next()
                    .map(str::to_owned)
            })
            .filter(|place| !place.starts_with("istio-system"))
            .map(|place| place.replace("/deployments/", "/"))
            .collect();
        Ok((before, patches))
    });
    let rehearsed = report(&objects, &upgrade());
    let moved: Vec<String> = rehearsed
        .workloads
        .iter()
        .map(|span| format!("{}/{}", span.namespace, span.name))
        .collect();
    assert_eq!(moved, trace);
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let objects = snapshot(&istio(&batched(3, "5s")), cast());
    let text = |seed| {
        let wish = Wish { seed, ..wish() };
        serde_json::to_string(&report(&objects, &wish)).unwrap()
    };
    assert_eq!(text(7), text(7));
}
