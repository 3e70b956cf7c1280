//! Tests rehearsals of a mesh with mixed workloads: the report, its reproducibility, and that it equals the
//! operator's actual actions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_rehearsal::report::{FindingKind, Method, Outcome, PhaseKind, SpanResult};
use mainstay_rehearsal::{RehearsalRequest, Report};
use serde_json::{Value, json};

use support::{
    ISTIO, NEW, OLD, batched, deployment, found, istio, mixed_workloads, objects, old_mesh, report, snapshot,
    upgrade,
};

fn request() -> RehearsalRequest {
    RehearsalRequest {
        readiness_overrides: [("shop/slow".to_owned(), None)].into(),
        ..upgrade()
    }
}

#[test]
fn the_report_covers_the_whole_upgrade() {
    let objects = snapshot(&istio(&batched(2, "10s")), mixed_workloads());
    let report = report(&objects, &request());
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
        [
            "Error Deployment shop/slow: Readiness timeout exceeded after 5m0s: 1 of 2 replicas updated, 2 old replicas left"
        ]
    );
}

/// Tests webhooks with a URL, as those of an external control plane.
#[test]
fn injectors_with_a_url_inject() {
    let mut istio = istio(&batched(2, "10s"));
    istio["spec"]["values"] =
        json!({"istiodRemote": {"injectionURL": "https://istiod.example.com:15017/inject"}});
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"istio.io/rev": OLD}}});
    let apps = (0..11).map(|index| deployment("shop", &format!("app-{index:02}"), 2, &json!({})));
    let mixed_workloads: Vec<Value> = [space].into_iter().chain(apps).collect();
    let objects = snapshot(&istio, mixed_workloads.clone());
    let webhooks = objects
        .iter()
        .filter(|object| object["kind"] == "MutatingWebhookConfiguration");
    let urls = webhooks.filter(|webhook| !webhook["webhooks"][0]["clientConfig"]["url"].is_null());
    assert!(urls.count() > 0, "the injector is called by URL");
    // Compares both methods. The embedded one is also compared with the operator on the mesh itself.
    let embedded = compare_with_operator(&istio, mixed_workloads);
    let calculated = RehearsalRequest {
        method: Some(Method::Calculated),
        ..upgrade()
    };
    for report in [embedded, report(&objects, &calculated)] {
        assert_eq!(found(&report, FindingKind::WorkloadFails), Vec::<String>::new());
        let migrated = report
            .workloads
            .iter()
            .filter(|span| span.result == SpanResult::Migrated);
        assert_eq!(migrated.count(), 11);
    }
    println!("harden injector-url: 11 workloads predicted, 11 migrated (before: 0 predicted)");
}

#[test]
fn the_operator_makes_the_rehearsed_writes() {
    let istio = istio(&batched(2, "10s"));
    compare_with_operator(&istio, mixed_workloads());
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"istio.io/rev": OLD}}});
    let clean = compare_with_operator(&istio, vec![space, deployment("shop", "cart", 2, &json!({}))]);
    assert_eq!(clean.pruned[0].name, OLD);
}

/// Rehearses an upgrade on a copy of a mesh and compares the writes with those of the operator on the mesh
/// itself. Returns the report.
fn compare_with_operator(istio: &Value, mixed_workloads: Vec<Value>) -> Report {
    let (objects, trace) = old_mesh(istio, mixed_workloads, async |cluster, operator| {
        let before = objects(&cluster);
        let lines = cluster.sim().trace().lines().count();
        cluster
            .merge_patch(ISTIO, &json!({"spec": {"version": "v1.29.1"}}))
            .await?;
        cluster.sleep(Duration::from_mins(30)).await;
        operator.stop().await?;
        let trace = cluster.sim().trace();
        let new = trace.lines().skip(lines).map(str::to_owned);
        Ok((before, new.collect::<Vec<String>>()))
    });
    let rehearsed = report(&objects, &upgrade());
    let moved: Vec<String> = rehearsed
        .workloads
        .iter()
        .map(|span| format!("{}/deployments/{}", span.namespace, span.name))
        .collect();
    let place = |line: &String| {
        let place = line.split("namespaces/").nth(1)?.split(' ').next()?.to_owned();
        let is_app = place.contains("/deployments/") && !place.starts_with("istio-system");
        (line.contains("mainstay: PATCH") && is_app).then_some(place)
    };
    assert_eq!(moved, trace.iter().filter_map(place).collect::<Vec<_>>());
    assert_eq!(reported_writes(&rehearsed), traced_writes(&trace));
    rehearsed
}

/// Returns the writes of a report by HTTP method and resource. Excludes Events, which may be aggregated, and
/// status writes, whose number depends on how a watch batches events.
fn reported_writes(report: &Report) -> BTreeMap<String, usize> {
    let mut reported_writes = BTreeMap::new();
    for writes in report
        .writes
        .iter()
        .filter(|writes| writes.kind != "Event" && writes.verb != "status")
    {
        let verb = match writes.verb.as_str() {
            "create" => "POST",
            "delete" => "DELETE",
            _ => "PATCH",
        };
        *reported_writes
            .entry(format!("{verb} {}s", writes.kind.to_lowercase()))
            .or_default() += writes.count;
    }
    reported_writes
}

/// Returns the number of writes in a trace by verb and resource.
fn traced_writes(trace: &[String]) -> BTreeMap<String, usize> {
    let mut traced_writes = BTreeMap::new();
    for line in trace {
        let call = line
            .split("mainstay: ")
            .nth(1)
            .and_then(|call| call.split_once(" -> "));
        let Some((verb, path)) = call.and_then(|(call, _)| call.split_once(' ')) else {
            continue;
        };
        if verb == "GET" || path.contains("/events") || path.ends_with("/status") {
            continue;
        }
        let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        if verb != "POST" {
            parts.pop();
        }
        *traced_writes
            .entry(format!("{verb} {}", parts.last().unwrap()))
            .or_default() += 1;
    }
    traced_writes
}

#[test]
fn the_same_seed_produces_the_same_report() {
    let objects = snapshot(&istio(&batched(3, "5s")), mixed_workloads());
    let text = |seed| {
        let request = RehearsalRequest { seed, ..request() };
        serde_json::to_string(&report(&objects, &request)).unwrap()
    };
    assert_eq!(text(7), text(7));
}
