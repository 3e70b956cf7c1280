//! Tests of the client and runtime of kube, as functions of a client and a namespace. They pass on the
//! simulator and on a real server.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::discovery::Discovery;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::finalizer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::wait::conditions;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

pub(crate) async fn the_client_creates_reads_changes_and_deletes(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let created = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    assert_eq!(created.data.unwrap()["k"], "1");
    let patch = json!({"data": {"k": "2", "l": "3"}});
    let changed = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_ne!(changed.resource_version(), created.metadata.resource_version);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let error = maps.get("a").await.unwrap_err().to_string();
    assert!(error.contains("configmaps \"a\" not found"), "{error}");
}

pub(crate) async fn a_reflector_with_streaming_lists_follows_the_store(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    for number in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number}"), "1"))
            .await
            .unwrap();
    }
    let (store, writer): (Store<ConfigMap>, _) = reflector::store();
    let stream = watcher(maps.clone(), watcher::Config::default().streaming_lists());
    let mut events = Box::pin(stream.default_backoff().reflect(writer).applied_objects());
    for _ in 0..5 {
        events.try_next().await.unwrap();
    }
    maps.create(&PostParams::default(), &config_map("late", "1"))
        .await
        .unwrap();
    let seen = events.try_next().await.unwrap().unwrap();
    assert_eq!(seen.name_any(), "late");
    assert_eq!(store.state().len(), 6);
}

#[derive(Debug, thiserror::Error)]
enum NoError {}

async fn reconcile(deployment: Arc<Deployment>, client: Arc<Client>) -> Result<Action, NoError> {
    let namespace = deployment.namespace().unwrap();
    let deployments: Api<Deployment> = Api::namespaced((*client).clone(), &namespace);
    let generation = deployment.metadata.generation;
    if deployment
        .status
        .as_ref()
        .and_then(|status| status.observed_generation)
        != generation
    {
        let patch = json!({"status": {"observedGeneration": generation}});
        let name = deployment.name_any();
        deployments
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }
    Ok(Action::await_change())
}

pub(crate) async fn a_controller_reconciles_until_nothing_changes(client: Client, namespace: &str) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let config = watcher::Config::default().streaming_lists();
    let controller = Controller::new(deployments.clone(), config);
    let run = controller.run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(client.clone()),
    );
    let mut run = Box::pin(run);
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let mut reconciled = 0;
    while deployments
        .get("web")
        .await
        .unwrap()
        .status
        .unwrap()
        .observed_generation
        != Some(1)
    {
        run.next().await.unwrap().unwrap();
        reconciled += 1;
    }
    let scale = json!({"spec": {"replicas": 3}});
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&scale))
        .await
        .unwrap();
    while deployments
        .get("web")
        .await
        .unwrap()
        .status
        .unwrap()
        .observed_generation
        != Some(2)
    {
        run.next().await.unwrap().unwrap();
        reconciled += 1;
    }
    assert!(reconciled >= 2);
}

/// Runs discovery until `kind` is listed, for up to five seconds: a real server lists a new kind shortly
/// after it serves it.
async fn discover(client: &Client, aggregated: bool, kind: &GroupVersionKind) -> Discovery {
    for _ in 0..100 {
        let discovery = Discovery::new(client.clone());
        let discovery = if aggregated {
            discovery.run_aggregated().await
        } else {
            discovery.run().await
        };
        match discovery {
            Ok(discovery) if discovery.resolve_gvk(kind).is_some() => return discovery,
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
    panic!("{kind:?} is served but not listed");
}

pub(crate) async fn discovery_finds_builtin_and_custom_kinds_in_both_forms(client: Client, namespace: &str) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let established = kube::runtime::wait::await_condition(
        definitions,
        "things.example.com",
        conditions::is_crd_established(),
    );
    established.await.unwrap();
    for aggregated in [false, true] {
        let kind = GroupVersionKind::gvk("example.com", "v1", "Thing");
        let discovery = discover(&client, aggregated, &kind).await;
        let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap();
        assert_eq!(
            (resource.plural.as_str(), capabilities.subresources.len()),
            ("things", 1),
            "{aggregated}"
        );
        assert!(
            discovery
                .resolve_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"))
                .is_some()
        );
        let things: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let name = format!("t{aggregated}");
        let thing = DynamicObject::new(&name, &resource).data(json!({"spec": {"size": 1}}));
        things.create(&PostParams::default(), &thing).await.unwrap();
        let status = json!({"status": {"ready": true}, "spec": {"size": 2}});
        let changed = things
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
        assert_eq!(changed.data["spec"]["size"], 1);
        assert_eq!(changed.data["status"]["ready"], true);
        assert_eq!(changed.metadata.generation, Some(1));
        let larger = json!({"spec": {"size": 3}});
        let changed = things
            .patch(&name, &PatchParams::default(), &Patch::Merge(&larger))
            .await
            .unwrap();
        assert_eq!(changed.metadata.generation, Some(2));
    }
}

pub(crate) async fn the_recorder_writes_events_that_the_core_group_shows(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let created = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let recorder = Recorder::new(client.clone(), "tester".into());
    let event = Event {
        type_: EventType::Normal,
        reason: "Tested".into(),
        note: Some("it works".into()),
        action: "Test".into(),
        secondary: None,
    };
    let reference = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        name: Some("a".into()),
        namespace: Some(namespace.to_owned()),
        uid: created.metadata.uid,
        ..Default::default()
    };
    recorder.publish(&event, &reference).await.unwrap();
    recorder.publish(&event, &reference).await.unwrap();
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(client.clone(), namespace);
    let seen = events
        .list(&ListParams::default().fields("involvedObject.name=a"))
        .await
        .unwrap()
        .items;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].message.as_deref(), Some("it works"));
    assert_eq!(seen[0].series.as_ref().and_then(|series| series.count), Some(2));
}

async fn reconcile_with_finalizer(
    map: Arc<ConfigMap>,
    api: Api<ConfigMap>,
) -> Result<Action, finalizer::Error<NoError>> {
    finalizer::finalizer(&api, "example.com/clean", map, |_| async {
        Ok(Action::await_change())
    })
    .await
}

pub(crate) async fn the_finalizer_helper_adds_and_removes_its_finalizer(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let created = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    reconcile_with_finalizer(Arc::new(created), maps.clone())
        .await
        .unwrap();
    let held = maps.get("a").await.unwrap();
    assert_eq!(held.finalizers(), ["example.com/clean"]);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let deleted = maps.get("a").await.unwrap();
    assert!(deleted.metadata.deletion_timestamp.is_some());
    reconcile_with_finalizer(Arc::new(deleted), maps.clone())
        .await
        .unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

pub(crate) async fn a_metadata_watch_shows_metadata_only(client: Client, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    let partial: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    let stream = watcher(partial, watcher::Config::default().streaming_lists());
    let mut events = Box::pin(stream.applied_objects());
    assert_eq!(events.try_next().await.unwrap().unwrap().name_any(), "a");
}

/// Acquires or renews a lease for `holder`. `now` is in seconds. Returns false if another holder has the
/// lease or writes it concurrently.
async fn acquire_lease(leases: &Api<Lease>, holder: &str, now: i64) -> bool {
    let time = |seconds: i64| format!("2026-01-01T00:{:02}:{:02}.000000Z", seconds / 60, seconds % 60);
    let Some(mut lease) = leases.get_opt("leader").await.unwrap() else {
        let lease = json!({"metadata": {"name": "leader"}, "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": time(now), "renewTime": time(now),
        }});
        let lease = serde_json::from_value(lease).unwrap();
        return leases.create(&PostParams::default(), &lease).await.is_ok();
    };
    let spec = lease.spec.get_or_insert_default();
    let renewed = serde_json::to_value(&spec.renew_time).unwrap();
    let expired = renewed.as_str().unwrap() < time(now - 15).as_str();
    if spec.holder_identity.as_deref() != Some(holder) && !expired {
        return false;
    }
    spec.holder_identity = Some(holder.to_owned());
    spec.renew_time = serde_json::from_value(time(now).into()).unwrap();
    match leases.replace("leader", &PostParams::default(), &lease).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 409 => false,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn a_lease_has_one_holder(client: Client, namespace: &str) {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let first = futures::join!(acquire_lease(&leases, "a", 100), acquire_lease(&leases, "b", 100));
    assert!(
        first.0 != first.1,
        "exactly one holder acquires the lease: {first:?}"
    );
    let (holder, other) = if first.0 { ("a", "b") } else { ("b", "a") };
    assert!(
        acquire_lease(&leases, holder, 110).await,
        "the holder renews the lease"
    );
    assert!(
        !acquire_lease(&leases, other, 120).await,
        "the lease has not expired"
    );
    assert!(acquire_lease(&leases, other, 126).await, "the lease has expired");
    assert!(
        !acquire_lease(&leases, holder, 127).await,
        "another holder has the lease"
    );
    let late = futures::join!(acquire_lease(&leases, "c", 200), acquire_lease(&leases, "d", 200));
    assert!(!(late.0 && late.1), "at most one holder takes over: {late:?}");
}

/// Calls the macro `$each` with the name of each function of the suite.
macro_rules! suite {
    ($each:ident) => {
        $each!(the_client_creates_reads_changes_and_deletes);
        $each!(a_reflector_with_streaming_lists_follows_the_store);
        $each!(a_controller_reconciles_until_nothing_changes);
        $each!(discovery_finds_builtin_and_custom_kinds_in_both_forms);
        $each!(the_recorder_writes_events_that_the_core_group_shows);
        $each!(the_finalizer_helper_adds_and_removes_its_finalizer);
        $each!(a_metadata_watch_shows_metadata_only);
        $each!(a_lease_has_one_holder);
    };
}
pub(crate) use suite;
