//! Tests single writes, the fence, timeouts and Events on the simulator.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use kube::Client;
use mainstay_api::{ObjectKind, OwnerReference, Reason};
use mainstay_cluster::connect::{Fence, guard};
use mainstay_cluster::event::Events;
use mainstay_cluster::write::{Body, Writer};
use mainstay_mesh::plan::{Event, NewObject, Precondition};
use mainstay_mesh::{ErrorClass, Subject};
use mainstay_sim::Cluster;
use mainstay_sim::fault::{Fault, Rule, Trigger};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Starts a cluster with a definition of `IstioRevisionTag` that accepts any content. Returns the cluster
/// and a writer.
async fn cluster() -> (Cluster, Writer) {
    let cluster = Cluster::default();
    let writer = Writer::new(Client::new(cluster.connect("us"), "default"));
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let names =
        json!({"plural": "istiorevisiontags", "singular": "istiorevisiontag", "kind": "IstioRevisionTag"});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "istiorevisiontags.sailoperator.io"},
        "spec": {"group": "sailoperator.io", "scope": "Cluster", "names": names, "versions": [version]},
    });
    writer
        .call(Method::POST, DEFINITIONS, Some(Body::Json(definition)))
        .await
        .unwrap();
    (cluster, writer)
}

/// Returns a reference to an existing owner, because objects with a missing owner are garbage-collected.
async fn owner(writer: &Writer) -> OwnerReference {
    let namespace = writer
        .call(Method::GET, "/api/v1/namespaces/default", None)
        .await
        .unwrap();
    OwnerReference {
        api_version: "v1".into(),
        kind: "Namespace".into(),
        name: "default".into(),
        uid: namespace["metadata"]["uid"].as_str().unwrap().to_owned(),
        ..OwnerReference::default()
    }
}

fn precondition(object: &Value) -> Precondition {
    let text = |at: &str| object.pointer(at).unwrap().as_str().unwrap().to_owned();
    Precondition {
        subject: Subject::tag(text("/metadata/name")),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
    }
}

async fn create_tag(writer: &Writer) -> Value {
    let new = NewObject {
        finalizers: vec!["sailoperator.io/sail-operator".to_owned()],
        annotations: [("example.com/a".to_owned(), "b".to_owned())].into(),
        ..new_tag(owner(writer).await, json!({"a": 1}))
    };
    let made = writer.create(ObjectKind::IstioRevisionTag, &new).await.unwrap();
    assert_eq!(made["metadata"]["annotations"], json!({"example.com/a": "b"}));
    made
}

fn new_tag(owner: OwnerReference, spec: Value) -> NewObject<Value> {
    NewObject {
        name: "t".into(),
        owner,
        finalizers: Vec::new(),
        annotations: std::collections::BTreeMap::new(),
        spec,
    }
}

#[tokio::test]
async fn each_write_has_a_precondition() {
    let (_, writer) = cluster().await;
    let old = precondition(&create_tag(&writer).await);
    let now = writer.set_status(&old, json!({"state": "x"})).await.unwrap();
    assert_eq!(now["status"], json!({"state": "x"}));

    let rejected = writer.set_status(&old, json!({"state": "y"})).await.unwrap_err();
    assert_eq!(
        (rejected.code, rejected.class),
        (409, ErrorClass::Conflict),
        "{rejected}"
    );
    let rejected = writer.update(&old, &[], json!({"a": 2})).await.unwrap_err();
    assert!(rejected.is_stale(), "{rejected}");
    let rejected = writer.set_finalizers(&old, &[]).await.unwrap_err();
    assert!(rejected.is_stale(), "{rejected}");
    let rejected = writer.delete(&old).await.unwrap_err();
    assert_eq!(rejected.code, 409, "{rejected}");
    let other = Precondition {
        uid: "another".into(),
        ..precondition(&now)
    };
    let rejected = writer.set_finalizers(&other, &[]).await.unwrap_err();
    assert!(rejected.is_stale(), "{rejected}");

    let now = writer
        .update(&precondition(&now), &[owner(&writer).await], json!({"a": 2}))
        .await
        .unwrap();
    assert_eq!(
        (&now["spec"], &now["status"]),
        (&json!({"a": 2}), &json!({"state": "x"}))
    );
    let now = writer
        .delete(&precondition(&now))
        .await
        .unwrap()
        .expect("an object with a finalizer remains");
    assert!(now["metadata"]["deletionTimestamp"].is_string());
    writer.set_finalizers(&precondition(&now), &[]).await.unwrap();
    assert_eq!(writer.get(ObjectKind::IstioRevisionTag, "t").await.unwrap(), None);
    assert_eq!(
        writer.delete(&precondition(&now)).await.unwrap(),
        None,
        "a missing object counts as deleted"
    );
}

#[tokio::test]
async fn existing_objects_are_not_created_again() {
    let (_, writer) = cluster().await;
    create_tag(&writer).await;
    let again = writer
        .create(
            ObjectKind::IstioRevisionTag,
            &new_tag(owner(&writer).await, json!({})),
        )
        .await;
    let rejected = again.unwrap_err();
    assert_eq!(
        rejected.message,
        "istiorevisiontags.sailoperator.io \"t\" already exists"
    );
    assert!(rejected.is_stale());
}

#[tokio::test]
async fn a_closed_fence_allows_reads_and_rejects_writes() {
    let (cluster, unfenced) = cluster().await;
    let owner = owner(&unfenced).await;
    let called = Arc::new(Mutex::new(Vec::new()));
    let recorder = called.clone();
    let fence = Fence::closed();
    let client = Client::new(cluster.connect("fenced"), "default");
    let meter = Arc::new(move |verb, code| recorder.lock().unwrap().push((verb, code)));
    let writer = Writer::new(guard(client, fence.clone(), meter));
    let create = || async {
        writer
            .create(ObjectKind::IstioRevisionTag, &new_tag(owner.clone(), json!({})))
            .await
    };
    assert_eq!(
        create().await.unwrap_err().message,
        "not the leader: nothing is written"
    );
    assert_eq!(writer.get(ObjectKind::IstioRevisionTag, "t").await.unwrap(), None);
    assert_eq!(cluster.with(|state| state.faults.counts("fenced").writes), 0);
    fence.hold_open(tokio::time::Instant::now() + Duration::from_secs(10));
    create().await.unwrap();
    fence.close();
    assert!(create().await.is_err());
    assert_eq!(
        *called.lock().unwrap(),
        [("create", 0), ("get", 404), ("create", 201), ("create", 0)]
    );
}

/// A write that is in flight when the Lease may expire must fail.
#[tokio::test(start_paused = true)]
async fn no_write_outlasts_the_fence() {
    let (cluster, _) = cluster().await;
    let slow = Fault::Slow(Duration::from_secs(20));
    cluster.add_fault(Rule::once("slow", Trigger::Request(0), slow));
    let client = Client::new(cluster.connect("slow"), "default");
    let fence = Fence::closed();
    let start = tokio::time::Instant::now();
    fence.hold_open(start + Duration::from_millis(7_500));
    let writer = Writer::new(guard(client, fence, Arc::new(|_, _| ())));
    let path = "/api/v1/namespaces/default/configmaps?fieldManager=x";
    let body = Body::Json(json!({"metadata": {"name": "late"}}));
    let late = writer.call(Method::POST, path, Some(body)).await.unwrap_err();
    assert_eq!(late.message, "no response within 7 seconds");
    assert_eq!(start.elapsed(), Duration::from_millis(7_500));
}

#[tokio::test(start_paused = true)]
async fn no_call_takes_longer_than_its_deadline() {
    let (cluster, _) = cluster().await;
    let slow = Fault::Slow(Duration::from_hours(1));
    cluster.add_fault(Rule::once("slow", Trigger::Request(0), slow));
    let client = Client::new(cluster.connect("slow"), "default");
    let writer = Writer::new(guard(client, Fence::open(), Arc::new(|_, _| ())));
    let rejected = writer.get(ObjectKind::IstioRevisionTag, "t").await.unwrap_err();
    assert_eq!(rejected.message, "no response within 30 seconds");
}

#[tokio::test]
async fn retry_after_is_respected_up_to_a_maximum() {
    let (cluster, writer) = cluster().await;
    for (retry_after, expected) in [(0, None), (7, Some(7)), (86_400, Some(60))] {
        cluster.with(|state| {
            state.faults.add(Rule::once(
                "us",
                Trigger::Matching("GET ".into()),
                Fault::throttled(retry_after),
            ));
        });
        let rejected = writer.get(ObjectKind::IstioRevisionTag, "t").await.unwrap_err();
        assert_eq!(rejected.retry_after.map(|wait| wait.as_secs()), expected);
    }
}

fn warning_event(message: &str) -> Event {
    let about = Precondition {
        subject: Subject::tag("t"),
        uid: "u".into(),
        resource_version: "1".into(),
    };
    Event {
        about,
        warning: true,
        reason: Reason::ReconcileError,
        message: message.to_owned(),
    }
}

async fn published_events(writer: &Writer) -> Vec<(String, i64)> {
    let list = writer
        .call(
            Method::GET,
            "/apis/events.k8s.io/v1/namespaces/default/events",
            None,
        )
        .await
        .unwrap();
    let row = |event: &Value| {
        let count = event["series"]["count"].as_i64().unwrap_or(1);
        (event["note"].as_str().unwrap().to_owned(), count)
    };
    list["items"].as_array().unwrap().iter().map(row).collect()
}

#[tokio::test]
async fn repeated_events_are_counted_and_written_less_often() {
    let (_, writer) = cluster().await;
    let events = Events::new(writer.clone(), "one");
    let now = Timestamp::UNIX_EPOCH;
    let mut written = Vec::new();
    for _ in 0..20 {
        written.push(events.publish(&warning_event("a"), now).await.unwrap());
    }
    assert_eq!(
        written.iter().filter(|written| **written).count(),
        5,
        "1, 2, 4, 8, 16"
    );
    assert_eq!(published_events(&writer).await, [("a".to_owned(), 16)]);
    let later = now.checked_add(Duration::from_mins(30)).unwrap();
    assert!(
        events.publish(&warning_event("a"), later).await.unwrap(),
        "the count is written again after an interval"
    );
    assert_eq!(published_events(&writer).await, [("a".to_owned(), 21)]);

    let restarted = Events::new(writer.clone(), "two");
    restarted.publish(&warning_event("a"), later).await.unwrap();
    assert_eq!(
        published_events(&writer).await,
        [("a".to_owned(), 22)],
        "the count continues after a restart"
    );
    restarted.publish(&warning_event("b"), later).await.unwrap();
    assert_eq!(
        published_events(&writer).await.len(),
        2,
        "different content is another event"
    );
}

#[tokio::test]
async fn events_of_any_length_are_published() {
    let (_, writer) = cluster().await;
    let events = Events::new(writer.clone(), &"i".repeat(300));
    events
        .publish(&warning_event(&"ä".repeat(5000)), Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    assert_eq!(published_events(&writer).await[0].0, "ä".repeat(500));
}
