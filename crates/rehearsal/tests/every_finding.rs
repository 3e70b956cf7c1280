//! Tests every kind of finding with an input that produces it and with the same input without the cause.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::collections::BTreeSet;

use mainstay_rehearsal::RehearsalRequest;
use mainstay_rehearsal::report::{FindingKind, Method};
use serde_json::{Value, json};

use support::{OLD, batched, deployment, found, istio, report, service, upgrade};

/// Input objects and the request.
type Case = (Vec<Value>, RehearsalRequest);

/// A kind of finding, a case that produces it and a case that does not.
struct Row {
    kind: FindingKind,
    shown: Case,
    expected: Vec<&'static str>,
    absent: Case,
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// Returns the Istio, its namespace, a namespace `shop` with these labels, and `more` objects.
fn mesh(labels: &Value, more: Vec<Value>) -> Vec<Value> {
    let mut objects = vec![
        istio(&batched(5, "1s")),
        namespace("istio-system", &json!({})),
        namespace("shop", labels),
    ];
    objects.extend(more);
    objects
}

/// Returns a mesh with the namespace `shop` on the old revision.
fn shop(more: Vec<Value>) -> Vec<Value> {
    mesh(&json!({"istio.io/rev": OLD}), more)
}

fn cart(more: &Value) -> Vec<Value> {
    vec![deployment("shop", "cart", 2, more), service("shop", "cart")]
}

fn calculated() -> RehearsalRequest {
    RehearsalRequest {
        method: Some(Method::Calculated),
        ..upgrade()
    }
}

/// Returns a pod of `shop/cart` with a proxy of the old revision.
fn pod_of_cart(name: &str) -> Value {
    let labels = json!({"app": "cart", "pod-template-hash": "5d4f8c7b6"});
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart-5d4f8c7b6", "uid": "1", "controller": true});
    let mut pod = pod_without_owner(name);
    pod["metadata"]["labels"] = labels;
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

/// Returns a pod without an owner, with a proxy of the old revision.
fn pod_without_owner(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"istio.io/rev": OLD}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn running_cart() -> Vec<Value> {
    let mut objects = cart(&json!({}));
    objects.extend(["cart-5d4f8c7b6-a", "cart-5d4f8c7b6-b"].map(pod_of_cart));
    objects
}

fn budget(least: i64) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "cart"}}}})
}

fn tag(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioRevisionTag", "metadata": {"name": "stable"},
        "spec": {"targetRef": {"kind": kind, "name": name}}})
}

fn webhook(name: &str, revision: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "all", "clientConfig": {"service": {"namespace": "istio-system", "name": format!("istiod-{revision}"), "path": "/inject"}},
            "namespaceSelector": {"matchExpressions": [{"key": "istio.io/rev", "operator": "Exists"}]},
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]})
}

/// Returns a request that sets a field of the Istio's spec.
fn with_spec_field(at: &str, value: Value) -> RehearsalRequest {
    let mut manifest = istio(&batched(5, "1s"));
    manifest["spec"][at] = value;
    RehearsalRequest {
        manifest: Some(manifest),
        ..calculated()
    }
}

fn row(kind: FindingKind, shown: Case, expected: &[&'static str], absent: Case) -> Row {
    Row {
        kind,
        shown,
        expected: expected.to_vec(),
        absent,
    }
}

/// Returns a row with the same request for both inputs.
fn inputs(kind: FindingKind, shown: Vec<Value>, expected: &[&'static str], absent: Vec<Value>) -> Row {
    row(kind, (shown, calculated()), expected, (absent, calculated()))
}

/// Returns the rows for findings about single workloads and the objects that depend on them.
fn workload_rows() -> Vec<Row> {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let tight = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}});
    let skip = json!({"metadata": {"annotations": {"sailoperator.io/skip-migration": "true"}}});
    let own = json!({"spec": {"template": {"metadata": {"labels": {"istio.io/rev": OLD}}}}});
    let never = RehearsalRequest {
        readiness_overrides: [("shop/cart".to_owned(), None)].into(),
        ..calculated()
    };
    let with = |mut objects: Vec<Value>, more: Value| {
        objects.push(more);
        shop(objects)
    };
    vec![
        row(
            FindingKind::WorkloadFails,
            (shop(cart(&json!({}))), never),
            &[
                "Error Deployment shop/cart: Readiness timeout exceeded after 5m0s: 1 of 2 replicas updated, 2 old replicas left",
            ],
            (shop(cart(&json!({}))), calculated()),
        ),
        inputs(
            FindingKind::Interruption,
            shop(cart(&recreate)),
            &["Error Service shop/cart: no ready endpoint for 13s, first at 10s"],
            shop(cart(&tight)),
        ),
        inputs(
            FindingKind::UpdateStrategy,
            shop(cart(&recreate)),
            &[
                "Warning Deployment shop/cart: strategy Recreate stops all pods before the first new one starts",
            ],
            shop(cart(&tight)),
        ),
        inputs(
            FindingKind::DisruptionBudget,
            with(cart(&tight), budget(2)),
            &[
                "Warning PodDisruptionBudget shop/cart: restarts ignore disruption budgets: 1 pod is ready at the minimum, the budget requires 2",
                "Info PodDisruptionBudget shop/cart: allows no disruption of 2 pods: restarts ignore the budget, but nodes cannot be drained",
            ],
            with(cart(&tight), budget(1)),
        ),
        inputs(
            FindingKind::NoReplicas,
            mesh(&json!({}), vec![deployment("shop", "cart", 0, &own)]),
            &["Info Deployment shop/cart: no replicas: its template changes, but no pod verifies it"],
            mesh(&json!({}), vec![deployment("shop", "cart", 1, &own)]),
        ),
        inputs(
            FindingKind::Skipped,
            shop(cart(&skip)),
            &["Warning Deployment shop/cart: skipped (SkippedByAnnotation)"],
            shop(cart(&json!({}))),
        ),
        inputs(
            FindingKind::MissingLabel,
            mesh(&json!({}), running_cart()),
            &["Warning Deployment shop/cart: skipped (NoReference)"],
            shop(running_cart()),
        ),
        inputs(
            FindingKind::UnmanagedPod,
            shop(vec![pod_without_owner("job-1")]),
            &["Warning Pod shop/job-1: not managed by a workload: it keeps the old revision until it ends"],
            shop(vec![completed(pod_without_owner("job-1"))]),
        ),
    ]
}

fn completed(mut pod: Value) -> Value {
    pod["status"] = json!({"phase": "Succeeded"});
    pod
}

/// Returns the rows for findings about control planes and how they are selected.
fn mesh_rows() -> Vec<Row> {
    let on_tag = |target: Value| {
        let mut objects = running_cart();
        objects.push(target);
        mesh(&json!({"istio.io/rev": "stable"}), objects)
    };
    let mut paused = shop(cart(&json!({})));
    paused[0]["spec"]["updateStrategy"]["workloadMigration"]["paused"] = json!(true);
    let mut silent = shop(cart(&json!({})));
    silent[0]["spec"]["updateStrategy"]
        .as_object_mut()
        .unwrap()
        .remove("workloadMigration");
    let hooks = |one: &str, other: &str| {
        let mut objects = cart(&json!({}));
        objects.extend([webhook("one", one), webhook("other", other)]);
        shop(objects)
    };
    let from = |version: &str| {
        let mut objects = shop(vec![]);
        objects[0]["spec"]["version"] = json!(version);
        objects
    };
    vec![
        row(
            FindingKind::ControlPlaneFails,
            (
                shop(cart(&json!({}))),
                with_spec_field("profile", json!("nonesuch")),
            ),
            &["Error Istio default: new revision does not become ready: "],
            (
                shop(cart(&json!({}))),
                with_spec_field("profile", json!("default")),
            ),
        ),
        inputs(
            FindingKind::Tag,
            on_tag(tag("IstioRevision", OLD)),
            &["Warning Deployment shop/cart: skipped (PinnedByTag)"],
            on_tag(tag("Istio", "default")),
        ),
        inputs(
            FindingKind::WebhookOverlap,
            hooks("a", "b"),
            &["Error Namespace shop: several revisions inject cart: one/all (a), other/all (b)"],
            hooks("a", "a"),
        ),
        inputs(
            FindingKind::VersionSkew,
            from("v1.26.1"),
            &["Warning Istio default: v1.26.1 and v1.29.1 are more than two minor versions apart"],
            from("v1.27.9"),
        ),
        row(
            FindingKind::Values,
            (
                shop(vec![]),
                with_spec_field("values", json!({"global": {"proxy": {"gone": 1}}})),
            ),
            &["Warning Istio default: unknown field spec.values.global.proxy.gone: the API server drops it"],
            (
                shop(vec![]),
                with_spec_field("values", json!({"global": {"proxy": {"image": "proxyv2"}}})),
            ),
        ),
        inputs(
            FindingKind::Held,
            paused,
            &["Error Istio default: 1 workload is not moved (MigrationPaused): "],
            shop(cart(&json!({}))),
        ),
        inputs(
            FindingKind::NotPruned,
            mesh(&json!({}), vec![pod_without_owner("job-1")]),
            &["Warning IstioRevision default-v1-28-2: not removed: in use by Pod shop/job-1"],
            mesh(&json!({}), vec![completed(pod_without_owner("job-1"))]),
        ),
        inputs(
            FindingKind::Supposition,
            silent,
            &["Info Istio default: assuming workloadMigration.strategy Batched, which is not enabled"],
            shop(cart(&json!({}))),
        ),
        inputs(
            FindingKind::NotManaged,
            unmanaged(),
            &[
                "Info Istio default: no operator manages the control plane default in namespace istio-system, installed by istioctl",
            ],
            shop(cart(&json!({}))),
        ),
        inputs(
            FindingKind::MissingInput,
            one_of_every_kind(false),
            &[
                "Info input: the snapshot contains no PodDisruptionBudget; effects that depend on it were not rehearsed",
            ],
            one_of_every_kind(true),
        ),
    ]
}

/// Returns a control plane installed by istioctl, and a namespace that uses it.
fn unmanaged() -> Vec<Value> {
    let labels =
        json!({"app": "istiod", "istio.io/rev": "default", "operator.istio.io/managed": "Reconcile"});
    let template = json!({"metadata": {"labels": {"app": "istiod"}},
        "spec": {"containers": [{"name": "discovery", "image": "hub/pilot:1.28.2"}]}});
    let mut objects = vec![
        namespace("istio-system", &json!({})),
        namespace("shop", &json!({"istio-injection": "enabled"})),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "istiod", "namespace": "istio-system", "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": "istiod"}}, "template": template}}),
    ];
    objects.extend(cart(&json!({})));
    objects
}

/// Returns one object of every kind in a cluster with a mesh. Disruption budgets are optional.
fn one_of_every_kind(budgets: bool) -> Vec<Value> {
    let mut objects = running_cart();
    let owner = json!([{"apiVersion": "sailoperator.io/v1", "kind": "Istio", "name": "default", "uid": "1", "controller": true}]);
    objects.push(json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioRevision",
        "metadata": {"name": OLD, "ownerReferences": owner}, "spec": {"version": "v1.28.2", "namespace": "istio-system"}}));
    let template = json!({"metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    objects.push(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "cart-5d4f8c7b6", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "cart"}}, "template": template}}));
    objects.push(webhook("istio-sidecar-injector", OLD));
    objects.extend(budgets.then(|| budget(1)));
    shop(objects)
}

/// Returns the index of a kind. The `match` is exhaustive, so that a new kind does not compile until it is
/// added here.
fn kind_index(kind: FindingKind) -> usize {
    match kind {
        FindingKind::WorkloadFails => 0,
        FindingKind::ControlPlaneFails => 1,
        FindingKind::Interruption => 2,
        FindingKind::DisruptionBudget => 3,
        FindingKind::UpdateStrategy => 4,
        FindingKind::NoReplicas => 5,
        FindingKind::MissingLabel => 6,
        FindingKind::Skipped => 7,
        FindingKind::UnmanagedPod => 8,
        FindingKind::WebhookOverlap => 9,
        FindingKind::VersionSkew => 10,
        FindingKind::Values => 11,
        FindingKind::Tag => 12,
        FindingKind::Held => 13,
        FindingKind::NotPruned => 14,
        FindingKind::MissingInput => 15,
        FindingKind::Supposition => 16,
        FindingKind::NotManaged => 17,
    }
}
const KIND_COUNT: usize = 18;

fn check(row: &Row) {
    let expected = |(objects, request): &Case| found(&report(objects, request), row.kind);
    let shown = expected(&row.shown);
    assert_eq!(shown.len(), row.expected.len(), "{:?}: {shown:#?}", row.kind);
    for (shown, begins) in shown.iter().zip(&row.expected) {
        assert!(shown.starts_with(begins), "{:?}: {shown}", row.kind);
    }
    assert_eq!(expected(&row.absent), [""; 0], "{:?} without its cause", row.kind);
}

#[test]
fn workload_findings_are_reported_only_with_their_cause() {
    workload_rows().iter().for_each(check);
}

#[test]
fn mesh_findings_are_reported_only_with_their_cause() {
    mesh_rows().iter().for_each(check);
}

#[test]
fn every_kind_of_finding_has_a_row() {
    let rows = workload_rows().into_iter().chain(mesh_rows());
    let indexes: BTreeSet<usize> = rows.map(|row| kind_index(row.kind)).collect();
    assert_eq!(indexes, (0..KIND_COUNT).collect());
}
