//! Tables of the fields and kinds that other writers may change, and functions that remove them from
//! desired objects.

use std::borrow::Cow;

use mainstay_api::names;
use serde_json::{Map, Value};

use super::ADOPTED_MANAGER;
use crate::compare::{Path, Records};
use crate::desired::{DesiredObject, HELM_NAME, HELM_NAMESPACE, ObjectId};

/// Rule for a field that other writers may set.
#[derive(Clone, Copy)]
enum Sharing {
    /// We set the field until another manager owns it.
    UntilOwned,
    /// The live value is kept if the field exists.
    KeepLive,
}

/// A shared field: group, kind, path and rule. `*` in a path matches every entry of a list, by name.
type Row = (&'static str, &'static str, &'static [&'static str], Sharing);

const ADMISSION: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// Shared fields. istiod writes its CA bundle and, once it can validate, a stricter failure policy.
/// Platforms add image pull secrets.
const SHARED_FIELDS: &[Row] = &[
    (
        ADMISSION,
        MUTATING,
        &["webhooks", "*", "clientConfig", "caBundle"],
        Sharing::UntilOwned,
    ),
    (
        ADMISSION,
        VALIDATING,
        &["webhooks", "*", "clientConfig", "caBundle"],
        Sharing::UntilOwned,
    ),
    (
        ADMISSION,
        VALIDATING,
        &["webhooks", "*", "failurePolicy"],
        Sharing::KeepLive,
    ),
    ("", "ServiceAccount", &["secrets"], Sharing::UntilOwned),
    ("", "ServiceAccount", &["imagePullSecrets"], Sharing::UntilOwned),
];

/// Kinds that platforms update constantly. Their updates are not drift.
const IGNORED_UPDATES: &[(&str, &str)] = &[("", "ServiceAccount")];

/// Whether updates of the object do not count as drift.
pub(super) fn ignores_updates(id: &ObjectId) -> bool {
    IGNORED_UPDATES.contains(&(&id.group, &id.kind))
}

/// Annotations that the operator writes and that are not part of a release: results of the probe of a
/// remote control plane.
const PROBE_RESULTS: [&str; 2] = [names::PROBE_STATUS, names::PROBE_REASON];

/// Returns the paths of an object that are not part of the release, although our field manager may have
/// written them.
pub(super) fn unmanaged_paths(id: &ObjectId) -> Vec<Path> {
    if (id.group.as_str(), id.kind.as_str()) != (ADMISSION, MUTATING) {
        return Vec::new();
    }
    let path = |name: &&str| Path::for_fields(&["metadata", "annotations", name]);
    PROBE_RESULTS.iter().map(path).collect()
}

/// Returns the desired object without the fields that other writers own, and with the live values of
/// fields that must be kept.
pub(super) fn without_shared_fields<'a>(
    wanted: &'a DesiredObject,
    live: &Value,
    records: &Records<'_>,
) -> Cow<'a, Value> {
    let mut body = Cow::Borrowed(&wanted.body);
    for (group, kind, path, sharing) in SHARED_FIELDS {
        if *group == wanted.id.group && *kind == wanted.id.kind {
            walk(
                body.to_mut(),
                live,
                path,
                &mut Vec::new(),
                &mut |map, live, name, at| {
                    share_field(map, live, name, *sharing, records.owns(at));
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

/// Keeps the marks of the previous installer of an adopted object that cannot change without a new
/// generation: the fields of the pod template that the adoption recorded, and Helm's annotations of a
/// Deployment.
fn keep_adopted(body: &mut Value, live: &Value, records: &Records<'_>) {
    if let (Some(recorded), Some(template)) = (
        records.pod_template_of(ADOPTED_MANAGER),
        body.pointer_mut("/spec/template"),
    ) {
        remove_recorded(template, recorded);
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

/// Removes the recorded fields from a map, so that an apply does not change them.
fn remove_recorded(value: &mut Value, record: &Value) {
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
            remove_recorded(value, inner);
        }
    }
}

/// Prepares a shared field that exists for an apply. If we own the field, an apply without it would
/// remove it, so the live value is applied to keep it.
fn share_field(map: &mut Map<String, Value>, live: &Value, name: &str, sharing: Sharing, is_ours: bool) {
    match sharing {
        Sharing::KeepLive if is_ours => {
            map.insert(name.to_owned(), live.clone());
        }
        Sharing::UntilOwned if is_ours => {}
        Sharing::KeepLive | Sharing::UntilOwned => {
            map.remove(name);
        }
    }
}

type Visit<'v> = &'v mut dyn FnMut(&mut Map<String, Value>, &Value, &str, &[String]);

/// Calls `visit` for each live field that matches `path`. `at` is the path of `wanted` in the notation of
/// `managedFields`.
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

/// Keeps the live number of replicas, which an autoscaler sets.
fn keep_replicas(body: &mut Value, live: &Value, records: &Records<'_>) {
    walk(
        body,
        live,
        &["spec", "replicas"],
        &mut Vec::new(),
        &mut |spec, live, name, at| {
            share_field(spec, live, name, Sharing::KeepLive, records.owns(at));
        },
    );
}
