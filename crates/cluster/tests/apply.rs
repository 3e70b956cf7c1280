//! Tests the apply engine with small releases on the simulator: writes, foreign objects, rejections and
//! faults.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use mainstay_cluster::apply::{ApplyError, Engine};
use mainstay_cluster::desired::ObjectId;
use mainstay_mesh::ErrorClass;
use mainstay_sim::Cluster;
use mainstay_sim::context::Destination;
use mainstay_sim::fault::{Fault, RequestCounts, Rule, Trigger};
use serde_json::{Value, json};

use support::{Fixture, NAMESPACE, summaries};

const RELEASE: &str = "prod-istiod";

async fn fixture() -> (Cluster, Fixture) {
    let cluster = Cluster::default();
    let mut fixture = Fixture::new(Client::new(cluster.connect("observer"), "default")).await;
    fixture.engine = Engine::new(Client::new(cluster.connect("mainstay"), "default"));
    (cluster, fixture)
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Returns two namespaced objects and a cluster-scoped one.
fn rendered(value: &str) -> Vec<Value> {
    vec![
        config_map("a", &json!({"x": value})),
        config_map("b", &json!({"x": value})),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r", "namespace": "ignored"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [value]}],
        }),
    ]
}

async fn install(fixture: &mut Fixture, rendered: Vec<Value>) -> Result<Vec<String>, ApplyError> {
    let desired = fixture.desired(RELEASE, rendered).await;
    Ok(summaries(&fixture.install(&desired).await?))
}

#[tokio::test]
async fn a_release_is_installed_once() {
    let (_cluster, mut fixture) = fixture().await;
    let expected = [
        "Created ConfigMap mainstay-prod-istiod: the object does not exist",
        "Created ConfigMap a: the object does not exist",
        "Created ConfigMap b: the object does not exist",
        "Created ClusterRole r: the object does not exist",
    ];
    assert_eq!(install(&mut fixture, rendered("get")).await.unwrap(), expected);
    assert_eq!(install(&mut fixture, rendered("get")).await.unwrap(), [""; 0]);
    let fewer = vec![config_map("a", &json!({"x": "2"}))];
    let expected = [
        "Applied ConfigMap a: .data.x was changed",
        "Deleted ClusterRole r: the object is no longer desired",
        "Deleted ConfigMap b: the object is no longer desired",
    ];
    assert_eq!(install(&mut fixture, fewer).await.unwrap(), expected);
    let expected = [
        "Deleted ConfigMap a: the object is no longer desired",
        "Deleted ConfigMap mainstay-prod-istiod: the object is no longer desired",
    ];
    assert_eq!(summaries(&fixture.uninstall(RELEASE).await), expected);
    assert!(fixture.live.release(&fixture.key(RELEASE)).is_empty());
}

/// Order matters because upstream reads the first webhook of a configuration.
#[tokio::test]
async fn our_webhooks_precede_those_of_others() {
    let (_cluster, mut fixture) = fixture().await;
    let entry = |name: &str| {
        json!({"name": name, "clientConfig": {"url": "https://a.example/inject"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]})
    };
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "w"}, "webhooks": [entry("one.ours.example"), entry("two.ours.example")]});
    let rendered = || vec![configuration.clone()];
    install(&mut fixture, rendered()).await.unwrap();
    let insert = |at: &str| json!([{"op": "add", "path": format!("/webhooks/{at}"), "value": entry("x.others.example")}]);
    let seen = fixture.patch_as(&configuration, &insert("-"), "other").await;
    fixture.observe(&seen);
    assert_eq!(
        install(&mut fixture, rendered()).await.unwrap(),
        [""; 0],
        "after ours"
    );
    let remove = json!([{"op": "remove", "path": "/webhooks/2"}]);
    fixture.patch_as(&configuration, &remove, "other").await;
    // Inserts a webhook of another writer before ours, then replaces ours by it.
    let replace = json!([{"op": "replace", "path": "/webhooks", "value": [entry("x.others.example")]}]);
    for patch in [insert("0"), replace] {
        let seen = fixture.patch_as(&configuration, &patch, "other").await;
        fixture.observe(&seen);
        let mut written = 0;
        while !install(&mut fixture, rendered()).await.unwrap().is_empty() {
            written += 1;
        }
        assert!((1..=2).contains(&written), "{written} writes");
        let live = fixture.get(&configuration).await.unwrap();
        let names: Vec<&str> = live["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["one.ours.example", "two.ours.example", "x.others.example"]
        );
    }
}

#[tokio::test]
async fn the_inventory_lists_new_kinds_first_and_is_restored() {
    let (_cluster, mut fixture) = fixture().await;
    install(&mut fixture, vec![config_map("a", &json!({}))])
        .await
        .unwrap();
    let expected = [
        "Applied ConfigMap mainstay-prod-istiod: .metadata.annotations.applyset.kubernetes.io/contains-group-kinds was changed",
        "Applied ConfigMap a: .data is missing",
        "Created ConfigMap b: the object does not exist",
        "Created ClusterRole r: the object does not exist",
    ];
    assert_eq!(install(&mut fixture, rendered("get")).await.unwrap(), expected);
    let inventory = config_map("mainstay-prod-istiod", &json!({}));
    let inventory = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": inventory["metadata"]["name"], "namespace": NAMESPACE}});
    let found = fixture.get(&inventory).await.unwrap();
    let annotations = &found["metadata"]["annotations"];
    assert_eq!(
        annotations["applyset.kubernetes.io/contains-group-kinds"],
        "ClusterRole.rbac.authorization.k8s.io,ConfigMap"
    );
    assert_eq!(annotations["applyset.kubernetes.io/tooling"], "mainstay/v1");
    let _ = fixture
        .api(&inventory)
        .delete("mainstay-prod-istiod", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    fixture.restart().await;
    let expected = ["Created ConfigMap mainstay-prod-istiod: the object does not exist"];
    assert_eq!(install(&mut fixture, rendered("get")).await.unwrap(), expected);
}

/// Checks the error of an install if a foreign object with this metadata exists, and that the object is
/// reported as drift with the same error. No object may be written, not even those without a conflict.
async fn check_rejected(metadata: Value, expected: &str) {
    let (_cluster, mut fixture) = fixture().await;
    let mut foreign = config_map("b", &json!({"x": "theirs"}));
    foreign["metadata"] = metadata;
    foreign["metadata"]["name"] = json!("b");
    foreign["metadata"]["namespace"] = json!(NAMESPACE);
    if foreign["metadata"]["ownerReferences"] == json!("other") {
        foreign["metadata"]["ownerReferences"] = json!([fixture.create_owner("other").await]);
    }
    let made = fixture.create(&foreign).await;
    let error = install(&mut fixture, rendered("get")).await.unwrap_err();
    let words = "unable to continue with install: ConfigMap \"b\" in namespace \"istio-system\" exists and cannot be imported into the current release: invalid ownership metadata; ";
    assert_eq!(error.to_string(), format!("{words}{expected}"));
    assert_eq!(error.class(), ErrorClass::Other);
    assert_eq!(fixture.get(&foreign).await.unwrap(), made);
    let desired = fixture.desired(RELEASE, rendered("get")).await;
    let drift = desired.drift(&ObjectId::from_object(&made).unwrap(), Some(&made));
    assert_eq!(drift.map(|drift| drift.to_string()), Some(error.to_string()));
    assert_eq!(
        fixture.versions(RELEASE).await.len(),
        usize::from(expected.starts_with("owner"))
    );
}

#[tokio::test]
async fn foreign_objects_are_rejected_with_helms_messages() {
    check_rejected(
        json!({}),
        "label validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \"Helm\"; annotation validation error: \
         missing key \"meta.helm.sh/release-name\": must be set to \"prod-istiod\"; annotation validation error: missing key \
         \"meta.helm.sh/release-namespace\": must be set to \"istio-system\"",
    )
    .await;
    let marks = |name: &str| {
        json!({
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": NAMESPACE},
        })
    };
    check_rejected(
        marks("other"),
        "annotation validation error: key \"meta.helm.sh/release-name\" must equal \"prod-istiod\": current value is \"other\"",
    )
    .await;
    let mut owned = marks(RELEASE);
    owned["ownerReferences"] = json!("other");
    check_rejected(
        owned,
        "owner validation error: it is controlled by ClusterRole \"other\"",
    )
    .await;
}

#[tokio::test]
async fn foreign_objects_are_never_deleted() {
    let (_cluster, mut fixture) = fixture().await;
    install(&mut fixture, rendered("get")).await.unwrap();
    let own = fixture.get(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": NAMESPACE}})).await.unwrap();
    let like = |name: &str| {
        let metadata = &own["metadata"];
        let mut other = config_map(name, &json!({}));
        other["metadata"] = json!({
            "name": name, "namespace": NAMESPACE, "labels": metadata["labels"], "annotations": metadata["annotations"],
            "ownerReferences": metadata["ownerReferences"],
        });
        other
    };
    let mut kept = Vec::new();
    let mut other_owner = like("other-owner");
    other_owner["metadata"]["ownerReferences"] = json!([fixture.create_owner("other").await]);
    kept.push(other_owner);
    let mut other_release = like("other-release");
    other_release["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("other");
    kept.push(other_release);
    let mut other_namespace = like("other-namespace");
    other_namespace["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = json!("other");
    kept.push(other_namespace);
    let mut no_release = like("no-release");
    no_release["metadata"]["annotations"] = json!({});
    let mut stripped = no_release.clone();
    stripped["metadata"]["name"] = json!("stripped");
    let labels = no_release["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("applyset.kubernetes.io/part-of").unwrap();
    kept.push(no_release);
    let mut by_policy = like("by-policy");
    by_policy["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    for object in kept.iter().chain([&by_policy, &like("leftover"), &stripped]) {
        fixture.create(object).await;
    }
    fixture.restart().await;
    let found = install(&mut fixture, rendered("get")).await.unwrap();
    let expected = [
        "Deleted ConfigMap leftover: the object is no longer desired",
        "Deleted ConfigMap stripped: the object is no longer desired",
    ];
    assert_eq!(found, expected, "an object with our label belongs to the release");
    fixture.uninstall(RELEASE).await;
    assert!(
        fixture.get(&by_policy).await.is_none(),
        "the policy prevents pruning, not uninstalling"
    );
    for object in &kept {
        assert!(fixture.get(object).await.is_some(), "{object}");
    }
}

#[tokio::test]
async fn a_deletion_fails_for_another_version() {
    let (_cluster, mut fixture) = fixture().await;
    install(&mut fixture, rendered("get")).await.unwrap();
    let b =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": NAMESPACE}});
    fixture
        .patch_as(
            &b,
            &json!([{"op": "add", "path": "/data/theirs", "value": "x"}]),
            "other-writer",
        )
        .await;
    let error = install(&mut fixture, vec![config_map("a", &json!({"x": "get"}))])
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict);
    assert!(fixture.get(&b).await.is_some());
    // No watch has reported the change: the engine reads the object again after a conflict.
    let found = install(&mut fixture, vec![config_map("a", &json!({"x": "get"}))])
        .await
        .unwrap();
    assert_eq!(found, ["Deleted ConfigMap b: the object is no longer desired"]);
}

#[tokio::test]
async fn an_apply_fails_for_another_uid() {
    let (_cluster, mut fixture) = fixture().await;
    install(&mut fixture, rendered("get")).await.unwrap();
    let b =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": NAMESPACE}});
    let _ = fixture
        .api(&b)
        .delete("b", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let mut foreign = b.clone();
    foreign["data"] = json!({"x": "theirs"});
    let made = fixture.create(&foreign).await;
    let error = install(&mut fixture, rendered("list")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict, "{error}");
    assert_eq!(fixture.get(&b).await.unwrap(), made);
    // No watch has reported the change: the engine reads the object again after a conflict.
    let error = install(&mut fixture, rendered("list")).await.unwrap_err();
    assert!(matches!(error, ApplyError::Foreign { .. }), "{error}");
}

#[tokio::test]
async fn an_install_fails_while_an_object_is_being_deleted() {
    let (_cluster, mut fixture) = fixture().await;
    install(&mut fixture, rendered("get")).await.unwrap();
    let b =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": NAMESPACE}});
    fixture
        .patch_as(
            &b,
            &json!([{"op": "add", "path": "/metadata/finalizers", "value": ["x.example/wait"]}]),
            "other-writer",
        )
        .await;
    let _ = fixture
        .api(&b)
        .delete("b", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    fixture.restart().await;
    let error = install(&mut fixture, rendered("get")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap \"b\" in namespace \"istio-system\" is being deleted"
    );
    assert_eq!(error.class(), ErrorClass::Transient);
    fixture.uninstall(RELEASE).await;
    assert!(
        !fixture.live.release(&fixture.key(RELEASE)).is_empty(),
        "it remains while it has a finalizer"
    );
    fixture
        .patch_as(
            &b,
            &json!([{"op": "remove", "path": "/metadata/finalizers"}]),
            "other-writer",
        )
        .await;
    fixture.restart().await;
    assert_eq!(install(&mut fixture, rendered("get")).await.unwrap().len(), 4);
}

#[tokio::test]
async fn invalid_rendered_objects_are_reported() {
    let (_cluster, fixture) = fixture().await;
    let check = async |object: Value, expected: &str| {
        let made = fixture
            .engine
            .desired(fixture.key(RELEASE), fixture.owner.clone(), vec![object])
            .await;
        let words = "unable to build kubernetes objects from release manifest: ";
        assert_eq!(made.unwrap_err().to_string(), format!("{words}{expected}"));
    };
    check(
        json!({"kind": "ConfigMap"}),
        "a rendered object has no apiVersion",
    )
    .await;
    check(
        json!({"apiVersion": "v1", "metadata": {"name": "x"}}),
        "a rendered object has no kind",
    )
    .await;
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        "a rendered object has no metadata.name",
    )
    .await;
    check(json!("text"), "a rendered object has no apiVersion").await;
    check(
        json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "x"}}),
        "resource mapping not found for name: \"x\" namespace: \"\" from \"\": no matches for kind \"Thing\" in version \"x.example/v1\"\nensure CRDs are installed first",
    )
    .await;
    check(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "y"}}),
        "Secret \"x\" in namespace \"y\" cannot be installed: this operator neither reads nor writes Secrets",
    )
    .await;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [config_map("x", &json!({})), config_map("x", &json!({}))]});
    check(
        list,
        "ConfigMap \"x\" in namespace \"istio-system\" is rendered twice",
    )
    .await;
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": deep}),
        "ConfigMap \"x\" in namespace \"\" is nested too deeply",
    )
    .await;
}

#[tokio::test]
async fn unknown_kinds_are_discovered() {
    let (_cluster, mut fixture) = fixture().await;
    let mut definition = support::attachment_definition();
    definition["metadata"]["name"] = json!("things.x.example");
    definition["spec"]["group"] = json!("x.example");
    definition["spec"]["scope"] = json!("Cluster");
    definition["spec"]["names"] = json!({"kind": "Thing", "plural": "things", "singular": "thing"});
    fixture.create(&definition).await;
    let thing = json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"list": [{"a": 1}]}});
    let found = install(&mut fixture, vec![thing.clone()]).await.unwrap();
    assert_eq!(
        found,
        [
            "Created ConfigMap mainstay-prod-istiod: the object does not exist",
            "Created Thing x: the object does not exist"
        ]
    );
    assert_eq!(install(&mut fixture, vec![thing]).await.unwrap(), [""; 0]);
    assert_eq!(fixture.uninstall(RELEASE).await.len(), 2);
}

/// If a webhook changes an object after every apply, the change is kept and the object is not written
/// again.
#[tokio::test]
async fn changes_by_a_webhook_are_not_reverted_forever() {
    let (cluster, mut fixture) = fixture().await;
    cluster.handle_webhook(&Destination::Url("https://x.example/".into()), |review| {
        // JSON patch that sets `/data/x` to "forced", in base64.
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoiZm9yY2VkIn1d";
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch},
        })
    });
    fixture
        .create(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "mutate"},
            "webhooks": [{
                "name": "mutate.x.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://x.example/"},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}],
                "objectSelector": {"matchLabels": {"mutate": "yes"}},
            }],
        }))
        .await;
    let mut object = config_map("a", &json!({"x": "1", "y": "1"}));
    object["metadata"]["labels"] = json!({"mutate": "yes"});
    let desired = fixture.desired(RELEASE, vec![object]).await;
    fixture.install(&desired).await.unwrap();
    let wanted = &desired.objects[0];
    let live = fixture.get(&wanted.body).await.unwrap();
    assert_eq!(live["data"]["x"], "forced");
    assert_eq!(summaries(&fixture.install(&desired).await.unwrap()), [""; 0]);
    let drift = desired.drift(&wanted.id, Some(&live));
    assert!(drift.is_none(), "{drift:?}");
    let edited = fixture
        .patch_as(
            &wanted.body,
            &json!([{"op": "replace", "path": "/data/y", "value": "theirs"}]),
            "other-writer",
        )
        .await;
    fixture.observe(&edited);
    assert!(desired.drift(&wanted.id, Some(&edited)).is_some());
    let found = summaries(&fixture.install(&desired).await.unwrap());
    assert_eq!(found, ["Applied ConfigMap a: .data.y was changed"]);
    assert_eq!(summaries(&fixture.install(&desired).await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn responses_are_classified() {
    let check = async |fault: Fault, expected: (ErrorClass, Option<u64>, &str)| {
        let (cluster, mut fixture) = fixture().await;
        cluster.add_fault(Rule::once("mainstay", Trigger::Request(0), fault));
        let error = install(&mut fixture, rendered("get")).await.unwrap_err();
        let found = (
            error.class(),
            error.retry_after().map(|wait| wait.as_secs()),
            error.to_string(),
        );
        assert_eq!((found.0, found.1, found.2.as_str()), expected);
    };
    let get = "could not get information about the resource ConfigMap \"a\" in namespace \"istio-system\": ";
    check(
        Fault::internal(),
        (
            ErrorClass::Unavailable,
            None,
            &format!("{get}Internal error occurred: injected fault"),
        ),
    )
    .await;
    check(
        Fault::throttled(7),
        (
            ErrorClass::Unavailable,
            Some(7),
            &format!("{get}Too many requests, please try again later."),
        ),
    )
    .await;
    check(
        Fault::throttled(86_400),
        (
            ErrorClass::Unavailable,
            Some(60),
            &format!("{get}Too many requests, please try again later."),
        ),
    )
    .await;
    check(
        Fault::LoseResponse,
        (
            ErrorClass::Other,
            None,
            &format!("{get}the API server cannot be reached"),
        ),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_call_lasts_longer_than_its_deadline() {
    let (cluster, mut fixture) = fixture().await;
    fixture.engine = fixture.engine.with_deadline(Duration::from_secs(5));
    cluster.add_fault(Rule::once(
        "mainstay",
        Trigger::Request(0),
        Fault::Slow(Duration::from_hours(1)),
    ));
    let error = install(&mut fixture, rendered("get")).await.unwrap_err();
    let expected = "could not get information about the resource ConfigMap \"a\" in namespace \"istio-system\": no response within 5 s";
    assert_eq!(error.to_string(), expected);
}

/// Injects every fault at every call of an install, an upgrade and an uninstall. Retries must lead to the
/// same state as a run without faults, and must not repeat writes.
#[tokio::test]
async fn after_any_fault_the_next_attempt_continues() {
    let faults = [
        Fault::LoseRequest,
        Fault::LoseResponse,
        Fault::conflict(),
        Fault::internal(),
        Fault::Truncate,
    ];
    let reference = run_sequence(None).await;
    let mut runs = 0;
    for fault in faults {
        for call in 0..reference.counts.requests {
            let run = run_sequence(Some((call, fault.clone()))).await;
            assert_eq!(run.states, reference.states, "{fault:?} at call {call}");
            let (writes, expected) = (run.counts.writes, reference.counts.writes);
            assert!(
                writes <= expected + 1,
                "{fault:?} at call {call}: {writes} writes instead of {expected}"
            );
            runs += 1;
        }
    }
    println!("faults: {runs} runs");
}

struct SequenceRun {
    states: Vec<Value>,
    counts: RequestCounts,
}

/// Installs, upgrades and uninstalls a release. Each step is retried until it succeeds; watch events are
/// processed in between.
async fn run_sequence(fault: Option<(u64, Fault)>) -> SequenceRun {
    let (cluster, mut fixture) = fixture().await;
    if let Some((call, fault)) = fault {
        cluster.add_fault(Rule::once("mainstay", Trigger::Request(call), fault));
    }
    let mut states = Vec::new();
    for step in [
        Some(rendered("get")),
        Some(vec![config_map("a", &json!({"x": "2"}))]),
        None,
    ] {
        for _ in 0..3 {
            let is_done = if let Some(rendered) = &step {
                install(&mut fixture, rendered.clone()).await.is_ok()
            } else {
                remove(&mut fixture).await
            };
            if is_done {
                break;
            }
            fixture.restart().await;
        }
        states.push(without_owners(fixture.state(RELEASE).await));
    }
    SequenceRun {
        states,
        counts: cluster.with(|state| state.faults.counts("mainstay")),
    }
}

/// Uninstalls the known objects of the release. Returns whether it succeeded.
async fn remove(fixture: &mut Fixture) -> bool {
    let key = fixture.key(RELEASE);
    let done = fixture.engine.uninstall(&key, fixture.live.release(&key)).await;
    let (changes, is_done) = match done {
        Ok(changes) => (changes, true),
        Err(stopped) => (stopped.changes, false),
    };
    fixture.live.record_all(&changes);
    is_done
}

/// Removes the owner references, which differ in every run.
fn without_owners(mut state: BTreeMap<String, Value>) -> Value {
    for object in state.values_mut() {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("ownerReferences");
    }
    json!(state)
}
