//! Tests rehearsals with `StatefulSets` and `DaemonSets`: the method, the report, and kinds that are not
//! selected.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use mainstay_rehearsal::RehearsalRequest;
use mainstay_rehearsal::report::{FindingKind, Method, Outcome, Report, SpanResult};
use serde_json::{Value, json};

use support::{OLD, batched, deployment, found, istio, report, service, snapshot, upgrade};

/// Returns a workload of the given kind with one container.
fn workload_of_kind(kind: &str, name: &str, more: &Value) -> Value {
    let mut object = deployment("shop", name, 2, more);
    object["kind"] = json!(kind);
    match kind {
        "StatefulSet" => object["spec"]["serviceName"] = json!(name),
        _ => drop(object["spec"].as_object_mut().unwrap().remove("replicas")),
    }
    object
}

/// Returns a Deployment, a `StatefulSet` and a `DaemonSet`, all on the old revision.
fn shop(more: &Value) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"istio.io/rev": OLD}}}),
        deployment("shop", "cart", 2, &json!({})),
        workload_of_kind("StatefulSet", "db", more),
        service("shop", "db"),
        workload_of_kind("DaemonSet", "agent", more),
    ]
}

/// Rehearses a mesh that migrates these kinds.
fn rehearse_kinds(kinds: &[&str], more: &Value, method: Option<Method>) -> Report {
    let mut migration = batched(1, "5s");
    migration["kinds"] = json!(kinds);
    let request = RehearsalRequest { method, ..upgrade() };
    report(&snapshot(&istio(&migration), shop(more)), &request)
}

/// Returns every restarted workload with its replicas and result.
fn moved(report: &Report) -> Vec<(String, u32, SpanResult)> {
    let spans = report.workloads.iter();
    let mut moved: Vec<_> = spans
        .map(|span| (format!("{}/{}", span.kind, span.name), span.replicas, span.result))
        .collect();
    moved.sort_by(|a, b| a.0.cmp(&b.0));
    moved
}

const ALL: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

#[test]
fn every_selected_kind_is_migrated() {
    for method in [None, Some(Method::Calculated)] {
        let report = rehearse_kinds(&ALL, &json!({}), method);
        assert_eq!(
            report.method,
            Method::Embedded,
            "only Deployments can be calculated, even if requested"
        );
        assert_eq!(report.outcome, Outcome::Completed, "{:#?}", report.findings);
        let up = |name: &str, replicas| (name.to_owned(), replicas, SpanResult::Migrated);
        assert_eq!(
            moved(&report),
            [
                up("DaemonSet/agent", 3),
                up("Deployment/cart", 2),
                up("StatefulSet/db", 2)
            ]
        );
        assert_eq!(report.totals.pods, 7);
        assert_eq!(found(&report, FindingKind::Skipped), [""; 0]);
        assert_eq!(report.pruned[0].name, OLD, "the old revision is not in use");
        let db = report
            .services
            .iter()
            .find(|service| service.name == "db")
            .unwrap();
        assert_eq!((db.desired, db.fewest), (2, 1), "pods are replaced one at a time");
    }
}

#[test]
fn kinds_that_are_not_selected_are_skipped_and_keep_the_old_revision() {
    let report = rehearse_kinds(&["Deployment"], &json!({}), None);
    assert_eq!(moved(&report).len(), 1);
    assert_eq!(
        found(&report, FindingKind::Skipped),
        [
            "Warning DaemonSet shop/agent: skipped (KindNotSelected)",
            "Warning StatefulSet shop/db: skipped (KindNotSelected)",
        ]
    );
    assert_eq!(found(&report, FindingKind::NotPruned).len(), 1);
    let only = rehearse_kinds(&["StatefulSet"], &json!({}), None);
    assert_eq!(
        moved(&only),
        [("StatefulSet/db".to_owned(), 2, SpanResult::Migrated)]
    );
}

#[test]
fn workloads_with_on_delete_updates_are_skipped() {
    let on_delete = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
    let report = rehearse_kinds(&ALL, &on_delete, None);
    assert_eq!(
        found(&report, FindingKind::Skipped),
        [
            "Warning DaemonSet shop/agent: skipped (UpdatesOnDelete)",
            "Warning StatefulSet shop/db: skipped (UpdatesOnDelete)",
        ]
    );
    assert_eq!(moved(&report).len(), 1);
}
