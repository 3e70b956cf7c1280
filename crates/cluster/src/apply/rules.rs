//! Fields and kinds that other writers may set: tables, and the desired object without them.

use std::borrow::Cow;

use mainstay_api::names;
use serde_json::{Map, Value};

use super::ADOPTED_MANAGER;
use crate::compare::{Path, Records};
use crate::desired::{DesiredObject, HELM_NAME, HELM_NAMESPACE, ObjectId};

/// How a field is shared with other writers.
#[derive(Clone, Copy)]
enum Left {
    /// Ours until another manager sets it.
    OnceSet,
    /// Kept as it is once it exists.
    Always,
}

/// A shared field: group, kind and path (`*` is every entry of a list, by name).
type Row = (&'static str, &'static str, &'static [&'static str], Left);

const ADMISSION: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// istiod writes its CA bundle and, once it can validate, a stricter failure policy; platforms add pull
/// secrets.
const TABLE: &[Row] = &[
    (
        ADMISSION,
        MUTATING,
        &["webhooks", "*", "clientConfig", "caBundle"],
        Left::OnceSet,
    ),
    (
        ADMISSION,
        VALIDATING,
        &["webhooks", "*", "clientConfig", "caBundle"],
        Left::OnceSet,
    ),
    (
        ADMISSION,
        VALIDATING,
        &["webhooks", "*", "failurePolicy"],
        Left::Always,
    ),
    ("", "ServiceAccount", &["secrets"], Left::OnceSet),
    ("", "ServiceAccount", &["imagePullSecrets"], Left::OnceSet),
];

/// Kinds that platforms update constantly; their updates are not drift.
const LEFT_TO_OTHERS: &[(&str, &str)] = &[("", "ServiceAccount")];

/// Whether updates of this object are ignored.
pub(super) fn is_left_to_others(id: &ObjectId) -> bool {
    LEFT_TO_OTHERS.contains(&(&id.group, &id.kind))
}

/// Annotations that an operator writes beside a release: the result of the probe of a remote control plane.
const PROBE_RESULTS: [&str; 2] = [names::PROBE_STATUS, names::PROBE_REASON];

/// Returns the paths that are not part of the release, although the same manager may have written them.
pub(super) fn paths_beside_release(id: &ObjectId) -> Vec<Path> {
    if (id.group.as_str(), id.kind.as_str()) != (ADMISSION, MUTATING) {
        return Vec::new();
    }
    let path = |name: &&str| Path::for_fields(&["metadata", "annotations", name]);
    PROBE_RESULTS.iter().map(path).collect()
}

/// The desired object without fields that are left to other writers.
pub(super) fn yielded<'a>(wanted: &'a DesiredObject, live: &Value, records: &Records<'_>) -> Cow<'a, Value> {
    let mut body = Cow::Borrowed(&wanted.body);
    for (group, kind, path, left) in TABLE {
        if *group == wanted.id.group && *kind == wanted.id.kind {
            walk(
                body.to_mut(),
                live,
                path,
                &mut Vec::new(),
                &mut |map, live, name, at| {
                    leave(map, live, name, *left, records.owns(at));
                },
            );
        }
    }
    if wanted.is_scaled {
        keep_replicas(body.to_mut(), live, records);
    }
    if is_adopted(live) {
        keep_adopted(body.to_mut(), live, records);
    }
    body
}

/// Whether an adoption set the owner of the object.
pub(super) fn is_adopted(live: &Value) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries = entries.into_iter().flatten();
    entries.any(|entry| entry.get("manager").and_then(Value::as_str) == Some(ADOPTED_MANAGER))
}

/// An adopted workload keeps the marks of its previous installer that cannot change without a new generation:
/// recorded fields of its pod template, and Helm's annotations of a Deployment.
fn keep_adopted(body: &mut Value, live: &Value, records: &Records<'_>) {
    if let (Some(kept), Some(template)) = (records.kept(ADOPTED_MANAGER), body.pointer_mut("/spec/template"))
    {
        drop_recorded(template, kept);
    }
    if body.get("kind").and_then(Value::as_str) != Some("Deployment") {
        return;
    }
    if let Some(Value::Object(annotations)) = body.pointer_mut("/metadata/annotations") {
        for name in [HELM_NAME, HELM_NAMESPACE] {
            let current = live
                .pointer("/metadata/annotations")
                .and_then(|map| map.get(name));
            match current {
                Some(current) => annotations.insert(name.to_owned(), current.clone()),
                None => annotations.remove(name),
            };
        }
    }
}

/// Removes the recorded fields of a map: an adoption keeps them as they are.
fn drop_recorded(value: &mut Value, record: &Value) {
    let (Value::Object(map), Value::Object(record)) = (value, record) else {
        return;
    };
    for (key, inner) in record {
        let Some(name) = key.strip_prefix("f:") else {
            continue;
        };
        let is_leaf = inner.as_object().is_none_or(Map::is_empty);
        if is_leaf {
            map.remove(name);
        } else if let Some(value) = map.get_mut(name) {
            drop_recorded(value, inner);
        }
    }
}

/// A shared field that exists: dropping it from an apply would remove it if we own it, so its current value
/// is applied.
fn leave(map: &mut Map<String, Value>, live: &Value, name: &str, left: Left, is_ours: bool) {
    match left {
        Left::Always if is_ours => {
            map.insert(name.to_owned(), live.clone());
        }
        Left::OnceSet if is_ours => {}
        Left::Always | Left::OnceSet => {
            map.remove(name);
        }
    }
}

type Visit<'v> = &'v mut dyn FnMut(&mut Map<String, Value>, &Value, &str, &[String]);

/// Visits the field at `path` wherever it exists; `at` is the path so far, as the server records it.
fn walk(wanted: &mut Value, live: &Value, path: &[&str], at: &mut Vec<String>, visit: Visit<'_>) {
    match (path, wanted) {
        ([name], Value::Object(map)) => {
            if let Some(live) = live.get(*name) {
                at.push(format!("f:{name}"));
                visit(map, live, name, at);
                at.pop();
            }
        }
        (["*", rest @ ..], Value::Array(entries)) => {
            for entry in entries {
                let name = entry.get("name").cloned().unwrap_or_default();
                let mut others = live.as_array().into_iter().flatten();
                if let Some(same) = others.find(|one| one.get("name") == Some(&name)) {
                    at.push(format!("k:{{\"name\":{name}}}"));
                    walk(entry, same, rest, at, visit);
                    at.pop();
                }
            }
        }
        ([name, rest @ ..], Value::Object(map)) => {
            if let (Some(inner), Some(live)) = (map.get_mut(*name), live.get(*name)) {
                at.push(format!("f:{name}"));
                walk(inner, live, rest, at, visit);
                at.pop();
            }
        }
        _ => {}
    }
}

/// An autoscaler sets the number of replicas.
fn keep_replicas(body: &mut Value, live: &Value, records: &Records<'_>) {
    walk(
        body,
        live,
        &["spec", "replicas"],
        &mut Vec::new(),
        &mut |spec, live, name, at| {
            leave(spec, live, name, Left::Always, records.owns(at));
        },
    );
}
