//! What is left to others: tables of fields and kinds that somebody else may set. Takes a wanted object and what is there, gives what to
//! want of it.

use std::borrow::Cow;

use serde_json::Value;

use crate::compare::Records;
use crate::desired::{ObjectId, Wanted};

/// A field that others may take over: group, kind, and the way to it (`*` is every entry of a list, by its name).
type Yielded = (&'static str, &'static str, &'static [&'static str]);

const ADMISSION: &str = "admissionregistration.k8s.io";

/// Ours when an object is made, and from then on only while nobody else has set them: istiod writes its authority and, once it can
/// validate, a stricter policy; platforms add pull secrets.
const YIELDED: &[Yielded] = &[
    (
        ADMISSION,
        "MutatingWebhookConfiguration",
        &["webhooks", "*", "clientConfig", "caBundle"],
    ),
    (
        ADMISSION,
        "ValidatingWebhookConfiguration",
        &["webhooks", "*", "clientConfig", "caBundle"],
    ),
    (
        ADMISSION,
        "ValidatingWebhookConfiguration",
        &["webhooks", "*", "failurePolicy"],
    ),
    ("", "ServiceAccount", &["secrets"]),
    ("", "ServiceAccount", &["imagePullSecrets"]),
];

/// Kinds whose updates are nobody's drift: platforms write them all the time.
const LEFT_TO_OTHERS: &[(&str, &str)] = &[("", "ServiceAccount")];

/// Whether updates of an object are not ours to undo.
pub(super) fn is_left_to_others(id: &ObjectId) -> bool {
    LEFT_TO_OTHERS.contains(&(&id.group, &id.kind))
}

/// The wanted object without what others have taken over.
pub(super) fn yielded<'a>(wanted: &'a Wanted, live: &Value, records: &Records<'_>) -> Cow<'a, Value> {
    let mut body = Cow::Borrowed(&wanted.body);
    for (group, kind, path) in YIELDED {
        if *group == wanted.id.group && *kind == wanted.id.kind {
            yield_at(body.to_mut(), live, path, &mut Vec::new(), records);
        }
    }
    if wanted.is_scaled {
        keep_replicas(body.to_mut(), live, records);
    }
    body
}

/// Drops the field at `path` where it is set and is not ours; `at` is the way so far, as the server records it.
fn yield_at(wanted: &mut Value, live: &Value, path: &[&str], at: &mut Vec<String>, records: &Records<'_>) {
    match (path, wanted) {
        ([name], Value::Object(map)) => {
            at.push(format!("f:{name}"));
            if live.get(*name).is_some() && map.contains_key(*name) && !records.owns(at) {
                map.remove(*name);
            }
            at.pop();
        }
        (["*", rest @ ..], Value::Array(entries)) => {
            for entry in entries {
                let name = entry.get("name").cloned().unwrap_or_default();
                let same = live
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|one| one.get("name") == Some(&name));
                if let Some(same) = same {
                    at.push(format!("k:{{\"name\":{name}}}"));
                    yield_at(entry, same, rest, at, records);
                    at.pop();
                }
            }
        }
        ([name, rest @ ..], Value::Object(map)) => {
            if let (Some(inner), Some(live)) = (map.get_mut(*name), live.get(*name)) {
                at.push(format!("f:{name}"));
                yield_at(inner, live, rest, at, records);
                at.pop();
            }
        }
        _ => {}
    }
}

/// An autoscaler decides how many replicas there are. While the number is recorded as ours we go on wanting it as it is: to stop wanting
/// it would reset it.
fn keep_replicas(body: &mut Value, live: &Value, records: &Records<'_>) {
    let Some(Value::Object(spec)) = body.get_mut("spec") else {
        return;
    };
    let at = ["f:spec".to_owned(), "f:replicas".to_owned()];
    match live.pointer("/spec/replicas") {
        Some(number) if records.owns(&at) => spec.insert("replicas".into(), number.clone()),
        _ => spec.remove("replicas"),
    };
}
