//! Mainstay's own objects in the calculated cluster. Applies the writes of plans, including resource
//! versions, finalizers and deletions, as an API server would, and notifies the reconciler.

use std::collections::BTreeMap;

use jiff::Timestamp;
use mainstay_api::{ObjectKind, names};
use mainstay_mesh::Subject;
use mainstay_mesh::plan::{Change, NewObject, Precondition};
use mainstay_operator::Reconciler;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::input::text;

#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<(ObjectKind, String), Value>,
    version: u64,
}

impl Objects {
    pub(super) fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Adds an object of the input.
    pub(super) fn put(&mut self, kind: ObjectKind, mut object: Value, reconciler: &mut Reconciler) {
        let name = text(&object, "/metadata/name").to_owned();
        let version = self.next_version();
        if let Some(metadata) = metadata(&mut object) {
            metadata.insert("resourceVersion".into(), version.clone().into());
            metadata
                .entry("uid")
                .or_insert_with(|| format!("uid-{version}").into());
            metadata.entry("generation").or_insert(1.into());
        }
        self.all.insert((kind, name.clone()), object);
        self.notify(kind, &name, reconciler);
    }

    pub(super) fn set_spec(
        &mut self,
        kind: ObjectKind,
        name: &str,
        spec: Value,
        reconciler: &mut Reconciler,
    ) {
        self.change(kind, name, reconciler, |object| {
            if object.get("spec") == Some(&spec) {
                return;
            }
            object.insert("spec".into(), spec);
            let generation = object
                .get("metadata")
                .and_then(|it| it.get("generation")?.as_i64())
                .unwrap_or(0);
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("generation".into(), (generation + 1).into());
            }
        });
    }

    pub(super) fn create<S: Serialize>(
        &mut self,
        kind: ObjectKind,
        new: &NewObject<S>,
        now: Timestamp,
        reconciler: &mut Reconciler,
    ) {
        let created = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        let object = json!({
            "apiVersion": names::API_VERSION, "kind": kind.name(),
            "metadata": {
                "name": new.name, "creationTimestamp": created, "ownerReferences": [new.owner], "finalizers": new.finalizers,
                "annotations": new.annotations,
            },
            "spec": serde_json::to_value(&new.spec).unwrap_or_default(),
        });
        self.put(kind, object, reconciler);
    }

    pub(super) fn update<S: Serialize>(&mut self, change: &Change<S>, reconciler: &mut Reconciler) {
        let Subject::Object(kind, name) = &change.object.subject else {
            return;
        };
        let spec = serde_json::to_value(&change.spec).unwrap_or_default();
        let owners = serde_json::to_value(&change.owner_references).unwrap_or_default();
        self.change(*kind, name, reconciler, |object| {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("ownerReferences".into(), owners);
            }
        });
        self.set_spec(*kind, name, spec, reconciler);
    }

    pub(super) fn delete(&mut self, seen: &Precondition, now: Timestamp, reconciler: &mut Reconciler) {
        let Subject::Object(kind, name) = &seen.subject else {
            return;
        };
        let at = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        self.change(*kind, name, reconciler, |object| {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.entry("deletionTimestamp").or_insert(at.into());
            }
        });
    }

    pub(super) fn set_finalizers(
        &mut self,
        seen: &Precondition,
        finalizers: &[String],
        reconciler: &mut Reconciler,
    ) {
        let Subject::Object(kind, name) = &seen.subject else {
            return;
        };
        self.change(*kind, name, reconciler, |object| {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("finalizers".into(), json!(finalizers));
            }
        });
    }

    pub(super) fn set_status(&mut self, seen: &Precondition, status: Value, reconciler: &mut Reconciler) {
        let Subject::Object(kind, name) = &seen.subject else {
            return;
        };
        self.change(*kind, name, reconciler, |object| {
            object.insert("status".into(), status);
        });
    }

    fn change(
        &mut self,
        kind: ObjectKind,
        name: &str,
        reconciler: &mut Reconciler,
        apply: impl FnOnce(&mut Map<String, Value>),
    ) {
        let version = self.next_version();
        if let Some(Value::Object(object)) = self.all.get_mut(&(kind, name.to_owned())) {
            apply(object);
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.insert("resourceVersion".into(), version.into());
            }
        }
        self.notify(kind, name, reconciler);
    }

    /// Notifies the reconciler of a change. Removes the object if it is deleted and has no finalizers.
    fn notify(&mut self, kind: ObjectKind, name: &str, reconciler: &mut Reconciler) {
        let key = (kind, name.to_owned());
        let Some(object) = self.all.get(&key) else {
            return;
        };
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let deleted = object
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(|at| !at.is_null());
        if deleted && finalizers.is_none_or(Vec::is_empty) {
            let last = self.all.remove(&key).unwrap_or_default();
            reconciler.remove_object(kind, &last);
        } else {
            // Errors are ignored: the operator also ignores objects that cannot be parsed.
            let _ = reconciler.observe_object(kind, object.clone());
        }
    }
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}
