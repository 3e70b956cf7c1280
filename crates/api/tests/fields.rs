//! Tests that definitions and types have the same fields: an object with all fields is not changed by a
//! round trip.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_api::{Istio, IstioCni, IstioRevision, IstioRevisionTag, ZTunnel};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Collects the paths of a schema. `values` is collected as one path.
fn schema_paths(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let inner = schema.get("items").unwrap_or(schema);
    let properties = inner
        .get("properties")
        .and_then(Value::as_object)
        .filter(|_| !path.ends_with(".values"));
    match properties {
        None => drop(found.insert(path.to_owned())),
        Some(properties) => {
            for (name, inner) in properties {
                schema_paths(inner, &format!("{path}.{name}"), found);
            }
        }
    }
}

/// Collects the paths of an object. `values` is collected as one path.
fn object_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !path.ends_with(".values") => {
            for (name, inner) in map {
                object_paths(inner, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            for item in items {
                object_paths(item, path, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// Checks that `full` contains every field of the kind's spec and status, and is not changed by a round
/// trip.
fn check<T: Serialize + DeserializeOwned>(kind: &str, full: &Value) {
    let read: T = serde_json::from_value(full.clone()).unwrap();
    let written = serde_json::to_value(read).unwrap();
    assert_eq!(written["apiVersion"], "sailoperator.io/v1");
    assert_eq!(written["kind"], kind);
    let names = VersionNames {
        all: &["v1.29.1"],
        concrete: &["v1.29.1"],
        ambient: &["v1.29.1"],
        default: "v1.29.1",
    };
    let definitions = definitions(&names);
    let definition = definitions
        .iter()
        .find(|one| one["spec"]["names"]["kind"] == kind)
        .unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    for part in ["spec", "status"] {
        assert_eq!(written[part], full[part], "{kind}.{part}");
        let (mut wanted, mut held) = (BTreeSet::new(), BTreeSet::new());
        schema_paths(&schema[part], part, &mut wanted);
        object_paths(&written[part], part, &mut held);
        assert_eq!(held, wanted, "{kind}.{part}");
    }
}

fn conditions() -> Value {
    json!([{
        "type": "Ready", "status": "False", "reason": "IstiodNotReady", "message": "why",
        "lastTransitionTime": "2026-11-15T16:48:21Z",
    }])
}

#[test]
fn an_istio_holds_every_field() {
    check::<Istio>(
        "Istio",
        &json!({
            "metadata": {"name": "default"},
            "spec": {
                "version": "v1.29.1", "namespace": "istio-system", "profile": "ambient", "values": {"any": {"thing": [1, null]}},
                "updateStrategy": {
                    "type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 5, "updateWorkloads": true,
                    "revisionTags": ["prod"],
                    "workloadMigration": {
                        "strategy": "Batched", "failurePolicy": "FailFast", "paused": true, "kinds": ["Deployment"],
                        "batched": {
                            "batchSize": 3, "delayBetweenBatches": "1m30s", "maxVersion": "1.29.999", "readinessTimeout": "5m",
                        },
                    },
                },
            },
            "status": {
                "observedGeneration": 2, "conditions": conditions(), "state": "IstiodNotReady",
                "activeRevisionName": "default", "revisions": {"total": 2, "ready": 1, "inUse": 0},
                "workloadMigration": {
                    "state": "InProgress", "targetRevision": "r", "totalWorkloads": 9, "migratedWorkloads": 4, "failedWorkloads": 1,
                    "skippedWorkloads": 1, "startTime": "2026-11-15T16:48:21Z", "completionTime": "2026-11-15T16:58:21Z",
                    "batched": {"currentBatch": 2, "totalBatches": 3, "nextBatchTime": "2026-11-15T16:50:00Z"},
                    "failures": [{
                        "namespace": "a", "name": "b", "kind": "Deployment", "reason": "c", "timestamp": "2026-11-15T16:48:21Z",
                    }],
                },
            },
        }),
    );
}

#[test]
fn the_other_kinds_hold_every_field() {
    let status = json!({"observedGeneration": 2, "conditions": conditions(), "state": "Healthy"});
    let values = json!({"any": {"thing": [1, null]}});
    check::<IstioRevision>(
        "IstioRevision",
        &json!({"spec": {"version": "v1.29.1", "namespace": "istio-system", "values": values}, "status": status}),
    );
    let mut tag = status.clone();
    tag["istiodNamespace"] = "istio-system".into();
    tag["istioRevision"] = "default".into();
    check::<IstioRevisionTag>(
        "IstioRevisionTag",
        &json!({"spec": {"targetRef": {"kind": "Istio", "name": "default"}}, "status": tag}),
    );
    check::<IstioCni>(
        "IstioCNI",
        &json!({"spec": {"version": "v1.29.1", "profile": "ambient", "namespace": "istio-cni", "values": values}, "status": status}),
    );
    let mut ztunnel = status.clone();
    ztunnel["istioRevision"] = "default".into();
    let target = json!({"kind": "IstioRevision", "name": "default"});
    check::<ZTunnel>(
        "ZTunnel",
        &json!({"spec": {"version": "v1.29.1", "namespace": "ztunnel", "values": values, "targetRef": target}, "status": ztunnel}),
    );
}

#[test]
fn required_fields_are_written_even_when_empty() {
    let written = serde_json::to_value(IstioRevisionTag::default()).unwrap();
    assert_eq!(
        written["status"],
        json!({"istiodNamespace": "", "istioRevision": ""})
    );
    let written = serde_json::to_value(Istio::default()).unwrap();
    assert_eq!(
        written["status"],
        json!({"revisions": {"total": 0, "ready": 0, "inUse": 0}})
    );
}

#[test]
fn a_bad_duration_does_not_make_an_object_unreadable() {
    let json = json!({"spec": {"updateStrategy": {"workloadMigration": {"batched": {"delayBetweenBatches": "soon"}}}}});
    let istio: Istio = serde_json::from_value(json).unwrap();
    let migration = istio.spec.update_strategy.unwrap().workload_migration.unwrap();
    let delay = migration.batched.unwrap().delay_between_batches.unwrap();
    assert_eq!(
        delay.span().unwrap_err().to_string(),
        "time: invalid duration \"soon\""
    );
}

#[test]
fn metadata_we_do_not_need_is_skipped() {
    let json =
        json!({"metadata": {"name": "x", "managedFields": [{"manager": "m"}], "uid": "u", "selfLink": "/"}});
    let istio: Istio = serde_json::from_value(json).unwrap();
    assert_eq!((istio.name(), istio.metadata.uid.as_str()), ("x", "u"));
}
