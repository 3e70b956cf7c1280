//! Tables of edits of other clients to objects of a release, by kind, and whether the next install
//! reverts them. Runs on the simulator and on a real server.

use std::sync::Arc;

use mainstay_cluster::apply::ChangeKind;
use mainstay_cluster::desired::Desired;
use mainstay_testkit::CaseCounts;
use serde_json::{Value, json};

use crate::support::{Fixture, attachment_definition, render, summaries, without_volatile_fields};

/// Releases that together contain every kind: chart, name, values.
const RELEASES: &[(&str, &str, &str)] = &[
    (
        "istiod",
        "default-istiod",
        "autoscaleMin: 2\nexperimental: {stableValidationPolicy: true}\nglobal: {networkPolicy: {enabled: true}}\n",
    ),
    ("base", "default-base", "defaultRevision: default\n"),
    (
        "cni",
        "istio-cni",
        "resourceQuotas: {enabled: true}\nplatform: openshift\nglobal: {platform: openshift}\n",
    ),
    (
        "istiod",
        "remote-istiod",
        "revision: remote\nprofile: remote\nglobal: {remotePilotAddress: 10.1.2.3}\n",
    ),
];

/// Edits of fields that the chart sets: kind, path, value. Each is reverted with one write.
const REVERTED_EDITS: &[(&str, &str, &str)] = &[
    ("ConfigMap", "/data/original-values", "\"x\""),
    ("ClusterRole", "/rules/0/verbs", "[\"get\"]"),
    ("Role", "/rules/0/verbs", "[\"get\"]"),
    ("ClusterRoleBinding", "/subjects/0/name", "\"x\""),
    ("RoleBinding", "/subjects/0/name", "\"x\""),
    ("Service", "/spec/ports/0/name", "\"x\""),
    ("Deployment", "/spec/template/spec/containers/0/image", "\"x\""),
    (
        "Deployment",
        "/spec/template/spec/containers/0/env/0/value",
        "\"x\"",
    ),
    ("DaemonSet", "/spec/template/spec/containers/0/image", "\"x\""),
    ("PodDisruptionBudget", "/spec/minAvailable", "5"),
    ("HorizontalPodAutoscaler", "/spec/maxReplicas", "9"),
    (
        "MutatingWebhookConfiguration",
        "/webhooks/0/failurePolicy",
        "\"Ignore\"",
    ),
    (
        "MutatingWebhookConfiguration",
        "/webhooks/0/namespaceSelector",
        "{}",
    ),
    (
        "ValidatingWebhookConfiguration",
        "/webhooks/0/sideEffects",
        "\"NoneOnDryRun\"",
    ),
    ("ValidatingAdmissionPolicy", "/spec/failurePolicy", "\"Ignore\""),
    ("ValidatingAdmissionPolicyBinding", "/spec/policyName", "\"x\""),
    ("NetworkPolicy", "/spec/podSelector", "{}"),
    ("ResourceQuota", "/spec/hard/pods", "\"1\""),
    ("EndpointSlice", "/endpoints/0/addresses", "[\"10.9.9.9\"]"),
];

/// Edits of fields that the chart does not set, or that other writers may set: kind, path, value. None is
/// reverted.
const KEPT_EDITS: &[(&str, &str, &str)] = &[
    ("ConfigMap", "/data/theirs", "\"x\""),
    ("Service", "/spec/sessionAffinity", "\"ClientIP\""),
    ("Deployment", "/spec/minReadySeconds", "3"),
    ("Deployment", "/spec/replicas", "4"),
    (
        "Deployment",
        "/spec/template/metadata/annotations/restarted",
        "\"now\"",
    ),
    ("DaemonSet", "/spec/minReadySeconds", "3"),
    (
        "HorizontalPodAutoscaler",
        "/spec/behavior",
        "{\"scaleDown\": {\"stabilizationWindowSeconds\": 60}}",
    ),
    (
        "MutatingWebhookConfiguration",
        "/webhooks/0/clientConfig/caBundle",
        "\"eA==\"",
    ),
    ("MutatingWebhookConfiguration", "/webhooks/0/timeoutSeconds", "5"),
    (
        "ValidatingWebhookConfiguration",
        "/webhooks/0/clientConfig/caBundle",
        "\"eA==\"",
    ),
    (
        "ValidatingWebhookConfiguration",
        "/webhooks/0/failurePolicy",
        "\"Fail\"",
    ),
    ("ServiceAccount", "/imagePullSecrets", "[{\"name\": \"pull\"}]"),
    ("ServiceAccount", "/secrets", "[{\"name\": \"token\"}]"),
    (
        "PodDisruptionBudget",
        "/spec/unhealthyPodEvictionPolicy",
        "\"AlwaysAllow\"",
    ),
    (
        "ValidatingAdmissionPolicy",
        "/spec/matchConditions",
        "[{\"name\": \"x\", \"expression\": \"true\"}]",
    ),
];

/// Applies the edits of the tables to one object of each kind of each release.
pub(crate) async fn run(fixture: &mut Fixture) -> CaseCounts {
    fixture.create(&attachment_definition()).await;
    let mut matrix = Matrix {
        counts: CaseCounts::default(),
        unused: REVERTED_EDITS
            .iter()
            .chain(KEPT_EDITS)
            .map(|row| (row.0, row.1))
            .collect(),
    };
    for (chart, release, values) in RELEASES {
        let rendered = render("1.29.1", chart, release, values).unwrap();
        let desired = fixture.desired(release, rendered).await;
        fixture.install(&desired).await.unwrap();
        let mut seen = Vec::new();
        for wanted in &desired.objects {
            if !seen.contains(&wanted.id.kind) {
                seen.push(wanted.id.kind.clone());
                matrix.check_kind(fixture, &desired, &wanted.body).await;
            }
        }
        fixture.uninstall(release).await;
    }
    println!("edits of other clients: {}", matrix.counts);
    assert!(
        matrix.unused.is_empty(),
        "no object has these: {:?}",
        matrix.unused
    );
    matrix.counts
}

struct Matrix {
    counts: CaseCounts,
    unused: Vec<(&'static str, &'static str)>,
}

impl Matrix {
    async fn check_kind(&mut self, fixture: &mut Fixture, desired: &Desired, wanted: &Value) {
        let kind = wanted["kind"].as_str().unwrap();
        for row in REVERTED_EDITS.iter().filter(|row| row.0 == kind) {
            self.check_row(fixture, desired, wanted, row, 1).await;
        }
        for row in KEPT_EDITS.iter().filter(|row| row.0 == kind) {
            self.check_row(fixture, desired, wanted, row, 0).await;
        }
        let label = |name: &str| format!("/metadata/labels/{name}");
        let mark = label("managed-by");
        self.check_edit(
            fixture,
            desired,
            wanted,
            &json!([{"op": "remove", "path": mark}]),
            1,
        )
        .await;
        let release = label("app.kubernetes.io~1managed-by");
        self.check_edit(
            fixture,
            desired,
            wanted,
            &json!([{"op": "replace", "path": release, "value": "x"}]),
            1,
        )
        .await;
        let theirs = label("theirs");
        self.check_edit(
            fixture,
            desired,
            wanted,
            &json!([{"op": "add", "path": theirs, "value": "x"}]),
            0,
        )
        .await;
        let owners = "/metadata/ownerReferences";
        self.check_edit(
            fixture,
            desired,
            wanted,
            &json!([{"op": "remove", "path": owners}]),
            1,
        )
        .await;
        let name = "/metadata/annotations/meta.helm.sh~1release-name";
        self.check_edit(
            fixture,
            desired,
            wanted,
            &json!([{"op": "remove", "path": name}]),
            1,
        )
        .await;
        let ignored = json!([
            {"op": "add", "path": "/metadata/annotations/sailoperator.io~1ignore", "value": "true"},
            {"op": "remove", "path": mark},
        ]);
        self.check_edit(fixture, desired, wanted, &ignored, 0).await;
        let seen = json!([
            {"op": "remove", "path": "/metadata/annotations/sailoperator.io~1ignore"},
            {"op": "add", "path": mark, "value": "sail-operator"},
        ]);
        let seen = fixture.patch_as(wanted, &seen, "kubectl").await;
        fixture.observe(&seen);
        self.check_deletion(fixture, desired, wanted).await;
    }

    async fn check_row(
        &mut self,
        fixture: &mut Fixture,
        desired: &Desired,
        wanted: &Value,
        row: &(&'static str, &'static str, &str),
        writes: usize,
    ) {
        let (kind, path, value) = row;
        let is_set = wanted.pointer(path).is_some();
        let parent = path.rsplit_once('/').unwrap().0;
        // Not every object of a kind has the field.
        if (writes == 1 && !is_set)
            || (!parent.is_empty() && fixture.get(wanted).await.unwrap().pointer(parent).is_none())
        {
            return;
        }
        self.unused.retain(|unused| unused != &(*kind, *path));
        let value: Value = serde_json::from_str(value).unwrap();
        let edit = json!([{"op": "add", "path": path, "value": value}]);
        self.check_edit(fixture, desired, wanted, &edit, writes).await;
    }

    /// Applies an edit, and checks that the next install makes this many writes and restores our fields.
    async fn check_edit(
        &mut self,
        fixture: &mut Fixture,
        desired: &Desired,
        wanted: &Value,
        patch: &Value,
        writes: usize,
    ) {
        let name = format!("{} {patch}", wanted["kind"]);
        let before = without_volatile_fields(fixture.get(wanted).await.unwrap());
        let edited = fixture.patch_as(wanted, patch, "other-writer").await;
        fixture.observe(&edited);
        let id = mainstay_cluster::desired::ObjectId::from_object(wanted).unwrap();
        let is_drift = desired.drift(&id, Some(&edited)).is_some();
        let is_account = wanted["kind"] == "ServiceAccount";
        self.counts.count(is_drift == (writes > 0 && !is_account), || {
            format!("{name}: drift is {is_drift}")
        });
        let changes = fixture.install(desired).await.unwrap();
        let done = changes.iter().filter(|change| change.kind.is_write()).count();
        self.counts
            .count(done == writes, || format!("{name}: {:?}", summaries(&changes)));
        let after = fixture.get(wanted).await.unwrap();
        let expected = if writes == 0 {
            without_volatile_fields(edited)
        } else {
            before
        };
        self.counts
            .count(without_volatile_fields(after.clone()) == expected, || {
                format!("{name}: {expected} became {after}")
            });
    }

    async fn check_deletion(&mut self, fixture: &mut Fixture, desired: &Desired, wanted: &Value) {
        let before = without_volatile_fields(fixture.get(wanted).await.unwrap());
        let name = wanted["metadata"]["name"].as_str().unwrap();
        let _ = fixture
            .api(wanted)
            .delete(name, &kube::api::DeleteParams::default())
            .await
            .unwrap();
        fixture.live.record(
            mainstay_cluster::desired::ObjectId::from_object(wanted).unwrap(),
            None,
        );
        let changes = fixture.install(desired).await.unwrap();
        let is_made = matches!(changes.as_slice(), [change] if change.kind == ChangeKind::Created);
        self.counts
            .count(is_made, || format!("{name} deleted: {:?}", summaries(&changes)));
        // The created object must have our fields and none of the edits.
        let after = Arc::new(fixture.get(wanted).await.unwrap());
        let drift = desired.drift(&changes[0].id, Some(&after));
        self.counts.count(drift.is_none(), || {
            format!("{name} deleted: {drift:?}, before {before}")
        });
    }
}
