//! Tests findings that require a separate mesh, and invalid or incomplete input.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use mainstay_rehearsal::report::{FindingKind, Method, Outcome, Report};
use mainstay_rehearsal::{Input, RehearsalRequest, rehearse};
use serde_json::{Value, json};

use support::{OLD, batched, catalog, deployment, found, istio, report, service, upgrade};

/// Returns the manifests of a mesh that is not installed yet.
fn manifests(istio: Value, more: Vec<Value>) -> Vec<Value> {
    let namespace = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let mut objects = vec![
        istio,
        namespace("istio-system", json!({})),
        namespace("shop", json!({"istio.io/rev": OLD})),
    ];
    objects.extend(more);
    objects
}

fn calculated() -> RehearsalRequest {
    RehearsalRequest {
        method: Some(Method::Calculated),
        ..upgrade()
    }
}

fn shop(more: Vec<Value>) -> Vec<Value> {
    manifests(istio(&batched(5, "1s")), more)
}

fn with(mut istio: Value, at: &str, value: Value) -> Value {
    *istio.pointer_mut(at).unwrap() = value;
    istio
}

#[test]
fn a_clean_upgrade_has_no_errors_and_prunes() {
    let report = report(
        &shop(vec![
            deployment("shop", "cart", 2, &json!({})),
            service("shop", "cart"),
        ]),
        &upgrade(),
    );
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(
        (report.totals.migrated, report.totals.services_interrupted),
        (1, 0)
    );
    assert_eq!(report.pruned[0].name, OLD);
    assert!(
        report
            .pruned
            .iter()
            .any(|gone| gone.kind == "Deployment" && gone.name == format!("istiod-{OLD}"))
    );
    assert!(
        !report
            .findings
            .iter()
            .any(|finding| finding.severity > mainstay_rehearsal::report::Severity::Info)
    );
    assert_eq!(
        found(&report, FindingKind::MissingInput),
        [
            "Info input: the snapshot contains no IstioRevision; effects that depend on it were not rehearsed",
            "Info input: the snapshot contains no MutatingWebhookConfiguration; effects that depend on it were not rehearsed",
            "Info input: the snapshot contains no Pod; effects that depend on it were not rehearsed",
            "Info input: the snapshot contains no PodDisruptionBudget; effects that depend on it were not rehearsed",
            "Info input: the snapshot contains no ReplicaSet; effects that depend on it were not rehearsed",
        ]
    );
}

#[test]
fn versions_that_are_far_apart_are_reported() {
    let skew = |from: &str, to: &str, more: Vec<Value>| {
        let istio = with(istio(&batched(1, "1s")), "/spec/version", json!(from));
        let request = RehearsalRequest {
            to: Some(to.into()),
            ..calculated()
        };
        found(
            &report(&manifests(istio, more), &request),
            FindingKind::VersionSkew,
        )
    };
    let check = |from: &str, to: &str, more: Vec<Value>, expected: &[&str]| {
        assert_eq!(skew(from, to, more), expected, "{from} to {to}");
    };
    let kind = |kind: &str, version: &str| {
        json!({"apiVersion": "sailoperator.io/v1", "kind": kind, "metadata": {"name": "default"},
            "spec": {"version": version, "namespace": "istio-cni"}})
    };
    let (cni, ztunnel) = (
        |version| kind("IstioCNI", version),
        |version| kind("ZTunnel", version),
    );
    check(
        "v1.26.1",
        "v1.29.1",
        vec![],
        &["Warning Istio default: v1.26.1 and v1.29.1 are more than two minor versions apart"],
    );
    check("v1.27.9", "v1.29.1", vec![], &[]);
    check(
        "v1.29.1",
        "v1.28.2",
        vec![],
        &["Warning Istio default: v1.28.2 is older than v1.29.1 and lacks its new features"],
    );
    check(
        "v1.29.1",
        "v1.27.9",
        vec![],
        &[
            "Error Istio default: v1.27.9 is older than v1.29.1 by more than one minor version: Istio documents no such downgrade",
        ],
    );
    check(
        "v1.28.2",
        "v1.29.1",
        vec![cni("v1.27.9")],
        &["Warning IstioCNI default: stays at v1.27.9, more than one minor version from v1.29.1"],
    );
    check("v1.27.9", "v1.28.2", vec![cni("v1.29.1")], &[]);
    check(
        "v1.27.9",
        "v1.28.2",
        vec![cni("v1.29.1"), ztunnel("v1.28.2")],
        &["Warning IstioCNI default: stays at v1.29.1, but may not be newer than v1.28.2"],
    );
    check(
        "v1.27.9",
        "v1.28.2",
        vec![ztunnel("v1.29.1")],
        &["Warning ZTunnel default: stays at v1.29.1, but may not be newer than v1.28.2"],
    );
    check(
        "v1.28.2",
        "v1.29.1",
        vec![cni("v1.28.2"), ztunnel("v1.28.2")],
        &[],
    );
}

#[test]
fn outdated_values_are_reported() {
    let mut istio = istio(&batched(1, "1s"));
    istio["spec"]["values"] = json!({
        "global": {"proxy": {"accessLogFile": "/dev/stdout", "holdApplicationUntilProxyStart": true}},
        "pilot": {"traceSampling": 1.0},
    });
    let report = report(&manifests(istio, vec![]), &calculated());
    assert_eq!(
        found(&report, FindingKind::Values),
        [
            "Warning Istio default: spec.values.global.proxy.accessLogFile is deprecated in v1.29.1",
            "Warning Istio default: unknown field spec.values.global.proxy.accessLogFile: the API server drops it",
            "Warning Istio default: unknown field spec.values.global.proxy.holdApplicationUntilProxyStart: the API server drops it",
        ]
    );
}

#[test]
fn overlapping_injectors_are_reported() {
    let hook = |name: &str, revision: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
            "webhooks": [{"name": "all", "clientConfig": {"service": {"namespace": "istio-system", "name": format!("istiod-{revision}"), "path": "/inject"}},
                "namespaceSelector": {"matchExpressions": [{"key": "istio.io/rev", "operator": "Exists"}]},
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]})
    };
    let objects = shop(vec![
        hook("one", "a"),
        hook("other", "b"),
        deployment("shop", "cart", 1, &json!({})),
    ]);
    let report = report(&objects, &calculated());
    assert_eq!(
        found(&report, FindingKind::WebhookOverlap),
        ["Error Namespace shop: several revisions inject cart: one/all (a), other/all (b)"]
    );
}

#[test]
fn strategies_that_stop_every_pod_at_once_are_reported() {
    let all = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}}}});
    let report = report(
        &shop(vec![deployment("shop", "cart", 2, &all), service("shop", "cart")]),
        &upgrade(),
    );
    assert_eq!(
        found(&report, FindingKind::UpdateStrategy),
        ["Warning Deployment shop/cart: maxUnavailable allows 2 of 2 pods to stop at once"]
    );
    assert_eq!(found(&report, FindingKind::Interruption).len(), 1);
    assert_eq!(
        report.outcome,
        Outcome::Completed,
        "the upgrade completes nevertheless"
    );
}

#[test]
fn a_migration_on_hold_is_reported() {
    let mut paused = batched(1, "1s");
    paused["paused"] = json!(true);
    let objects = manifests(istio(&paused), vec![deployment("shop", "cart", 1, &json!({}))]);
    for request in [upgrade(), calculated()] {
        let report = report(&objects, &request);
        assert_eq!(report.outcome, Outcome::NothingMoves);
        let held = found(&report, FindingKind::Held);
        assert_eq!(held.len(), 1, "{:#?}", report.findings);
        assert!(
            held[0].starts_with("Error Istio default: 1 workload is not moved"),
            "{held:?}"
        );
        assert_eq!(found(&report, FindingKind::NotPruned).len(), 1);
    }
}

#[test]
fn assumptions_are_reported() {
    let mut plain = istio(&json!({}));
    plain["spec"]["updateStrategy"] = json!({"type": "InPlace"});
    let mut objects = manifests(plain, vec![deployment("shop", "cart", 1, &json!({}))]);
    objects[2]["metadata"]["labels"] = json!({"istio-injection": "enabled"});
    for request in [upgrade(), calculated()] {
        let report: Report = report(&objects, &request);
        assert_eq!(report.upgrade.suppositions.len(), 2);
        assert_eq!(found(&report, FindingKind::Supposition).len(), 2);
        assert_eq!(report.totals.migrated, 1, "{:#?}", report.findings);
    }
}

#[test]
fn input_without_an_upgrade_is_rejected() {
    let check = |objects: Vec<Value>, request: &RehearsalRequest, expected: &str| {
        let input = Input::from_objects("x".into(), objects).unwrap();
        assert_eq!(
            rehearse(&catalog(), input, request).unwrap_err().to_string(),
            expected
        );
    };
    let one = || istio(&batched(1, "1s"));
    let other = with(one(), "/metadata/name", json!("other"));
    check(vec![], &upgrade(), "no Istio in the input");
    check(
        vec![one(), other],
        &upgrade(),
        "several Istios found: default, other",
    );
    let named = RehearsalRequest {
        istio: Some("prod".into()),
        ..upgrade()
    };
    check(
        vec![one()],
        &named,
        "Istio \"prod\" not found: the input has default",
    );
    let nowhere = RehearsalRequest {
        to: Some("v9.9.9".into()),
        ..upgrade()
    };
    check(vec![one()], &nowhere, "unknown version \"v9.9.9\"");
    check(
        vec![with(one(), "/spec/updateStrategy", json!("yes"))],
        &upgrade(),
        "cannot parse Istio \"default\"",
    );
}
