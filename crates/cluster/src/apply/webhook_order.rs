//! Order of webhooks: ours precede those that other writers add to our configurations, as with Helm.
//!
//! A server-side apply never moves entries of other writers, so an entry that was inserted before ours
//! would stay first. Some clients, such as the probe of a remote control plane, read the first entry and
//! expect ours.

use serde_json::{Value, json};

use crate::compare::Path;
use crate::desired::DesiredObject;

const GROUP: &str = "admissionregistration.k8s.io";
const FIELD: &str = "webhooks";

/// Returns the path of the list of webhooks.
pub(super) fn path() -> Path {
    Path::for_fields(&[FIELD])
}

/// Returns a JSON patch that moves our entries to the front, or `None` if they are at the front. The
/// patch fails on any other version of the object.
pub(super) fn patch(wanted: &DesiredObject, live: &Value) -> Option<Value> {
    let list = order_entries(wanted, live)?;
    let version = live.pointer("/metadata/resourceVersion");
    Some(json!([
        {"op": "replace", "path": format!("/{FIELD}"), "value": list},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]))
}

/// Moves our entries of a live object to the front.
pub(super) fn reorder(wanted: &DesiredObject, live: &mut Value) {
    if let Some(list) = order_entries(wanted, live).map(Value::from)
        && let Some(field) = live.get_mut(FIELD)
    {
        *field = list;
    }
}

/// Returns the live entries with ours first, or `None` if they are in that order.
fn order_entries(wanted: &DesiredObject, live: &Value) -> Option<Vec<Value>> {
    if wanted.id.group != GROUP {
        return None;
    }
    let ours = wanted.body.get(FIELD)?.as_array()?;
    let entries = live.get(FIELD)?.as_array()?;
    let is_ours = |entry: &&Value| ours.iter().any(|own| own.get("name") == entry.get("name"));
    let first_other = entries.iter().position(|entry| !is_ours(&entry))?;
    let last_own = entries.iter().rposition(|entry| is_ours(&entry))?;
    if last_own < first_other {
        return None;
    }
    let (own, others): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(is_ours);
    Some(own.into_iter().chain(others).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::ObjectId;

    fn order(live: &[&str]) -> Option<Vec<String>> {
        let list = |names: &[&str]| {
            let entries: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "a", "resourceVersion": "7"}, "webhooks": entries})
        };
        let body = list(&["a", "b"]);
        let wanted = DesiredObject {
            id: ObjectId::from_object(&body).unwrap(),
            body,
            is_scaled: false,
        };
        let patch = patch(&wanted, &list(live))?;
        assert_eq!(patch[1]["value"], "7");
        let names = patch[0]["value"].as_array().unwrap().iter();
        Some(
            names
                .map(|entry| entry["name"].as_str().unwrap().to_owned())
                .collect(),
        )
    }

    #[test]
    fn our_webhooks_come_first() {
        assert_eq!(order(&["a", "b"]), None);
        assert_eq!(order(&["b", "a", "x"]), None);
        assert_eq!(order(&["a", "x"]), None, "a missing entry is another difference");
        assert_eq!(order(&["x", "a", "b"]).unwrap(), ["a", "b", "x"]);
        assert_eq!(order(&["a", "x", "b", "y"]).unwrap(), ["a", "b", "x", "y"]);
        assert_eq!(order(&["x"]), None);
    }
}
