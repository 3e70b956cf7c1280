//! Decides whether to create, apply or keep one object, and why. Pure.

use mainstay_api::names;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::{Map, Value, json};

use super::error::ApplyError;
use super::{LEGACY_MANAGERS, MANAGER, rules, webhook_order};
use crate::compare::{self, Difference, Path, Records};
use crate::desired::{
    APPLY_SET_PART, Desired, DesiredObject, HELM, HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE, ObjectId,
    set_id,
};
use crate::live::{annotation, is_part_of, owners, set_label, uid};

/// Decision about one object.
pub(super) enum Decision {
    /// The object is up to date.
    Leave,
    /// The object does not exist.
    Create,
    /// The object differs.
    Apply {
        /// The body to apply.
        body: Value,
        /// The reason.
        why: Difference,
        /// JSON patch that transfers other managers' records to ours, sent first.
        records: Option<Value>,
    },
    /// Only the order of a list differs.
    Reorder {
        /// JSON patch of the list.
        patch: Value,
        /// The reason.
        why: Difference,
    },
}

/// Decides about `wanted`, given the live object.
pub(super) fn decide(
    wanted: &DesiredObject,
    live: Option<&Value>,
    desired: &Desired,
) -> Result<Decision, ApplyError> {
    let Some(live) = live else {
        return Ok(Decision::Create);
    };
    match desired.owner {
        Some(_) => check_ownership(&wanted.id, live, &desired.key)?,
        None => check_membership(&wanted.id, live, desired)?,
    }
    if is_deleting(live) {
        return Err(ApplyError::Deleting(Box::new(wanted.id.clone())));
    }
    if is_ignored(live) {
        return Ok(Decision::Leave);
    }
    let mut places = desired.reapplied.places(&wanted.id, uid(live));
    places.extend(rules::paths_beside_release(&wanted.id));
    Ok(match differing(wanted, live, &places) {
        Decision::Leave => reordering(wanted, live, &places),
        other => other,
    })
}

fn reordering(wanted: &DesiredObject, live: &Value, places: &[Path]) -> Decision {
    let list = webhook_order::path();
    match webhook_order::patch(wanted, live) {
        Some(patch) if !places.contains(&list) => Decision::Reorder {
            patch,
            why: Difference::Changed(list),
        },
        _ => Decision::Leave,
    }
}

/// Returns the path of a list that is out of order although it was just reordered.
pub(super) fn disordered_path(wanted: &DesiredObject, live: &Value) -> Option<Path> {
    webhook_order::patch(wanted, live).map(|_| webhook_order::path())
}

/// Paths at which a just applied object differs again.
pub(super) fn reverted_paths(wanted: &DesiredObject, live: &Value) -> Vec<Path> {
    let found = all_differences(wanted, live);
    found.iter().filter_map(|one| one.path().cloned()).collect()
}

/// Every difference of an object, in the order of its fields.
fn all_differences(wanted: &DesiredObject, live: &Value) -> Vec<Difference> {
    let (mut places, mut found) = (Vec::new(), Vec::new());
    while places.len() < MOST_PLACES {
        let Decision::Apply { why, .. } = differing(wanted, live, &places) else {
            break;
        };
        let place = why.path().cloned();
        found.push(why);
        match place {
            Some(place) => places.push(place),
            None => break,
        }
    }
    found
}

/// Maximum number of remembered paths; the rest is applied again each time.
const MOST_PLACES: usize = 100;

fn differing(wanted: &DesiredObject, live: &Value, places: &[Path]) -> Decision {
    let records = Records::parse(live, MANAGER, LEGACY_MANAGERS).except(places);
    let body = rules::yielded(wanted, live, &records);
    let leftover = compare::legacy_leftover(&body, live, &records);
    let changed = if records.has_own() {
        compare::difference_in(&body, live, &records)
    } else {
        compare::takeover(&without_set(&body), live, &records)
    };
    let patch = leftover.is_some().then(|| records_patch(live, &records));
    match changed.or(leftover) {
        None => Decision::Leave,
        Some(why) => Decision::Apply {
            body: body.into_owned(),
            why,
            records: patch,
        },
    }
}

/// An object installed by another tool needs no label of ours while nothing else differs.
fn without_set(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(Value::Object(labels)) = body.pointer_mut("/metadata/labels") {
        labels.remove(APPLY_SET_PART);
    }
    body
}

/// As `kubectl` migrates client-side apply: removes the other managers' entries and adds their fields to
/// ours. Fails on any other version.
fn records_patch(live: &Value, records: &Records<'_>) -> Value {
    let version = live
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or_default();
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": records.merged_entries()},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ])
}

/// Whether an object is being deleted.
pub(super) fn is_deleting(live: &Value) -> bool {
    live.pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null())
}

/// Whether an annotation excludes an object from changes.
fn is_ignored(live: &Value) -> bool {
    annotation(live, names::IGNORE_ANNOTATION) == Some("true")
}

/// Whether an object belongs to this owner and release and is not being deleted.
pub(super) fn may_delete(live: &Value, key: &ReleaseKey) -> bool {
    let has_owner = key.owner.is_empty() || owners(live).any(|owner| owner == key.owner);
    has_owner && is_part_of(live, key) && !uid(live).is_empty() && !is_deleting(live)
}

/// An object of a set without an owner may be a member of it or of a set that it accepts, or of none. Objects
/// of Helm, of a controller and of other sets are foreign.
fn check_membership(id: &ObjectId, live: &Value, desired: &Desired) -> Result<(), ApplyError> {
    let set = set_label(live).filter(|set| *set != set_id(&desired.key) && !desired.accepts(set));
    let set = set.map(|set| format!("it is a member of the set {set:?}"));
    let release = annotation(live, HELM_NAME).map(|name| format!("it belongs to the Helm release {name:?}"));
    match set.or(release).or_else(|| controller(live)) {
        Some(why) => Err(ApplyError::Foreign {
            id: Box::new(id.clone()),
            why,
        }),
        None => Ok(()),
    }
}

/// An object belongs to the release by its owner unless another release claims it, or by Helm's annotations
/// unless another owner controls it.
fn check_ownership(id: &ObjectId, live: &Value, key: &ReleaseKey) -> Result<(), ApplyError> {
    let metadata = live.get("metadata");
    let map = |name: &str| {
        metadata
            .and_then(|metadata| metadata.get(name))
            .and_then(Value::as_object)
    };
    let is_owned = owners(live).any(|owner| owner == key.owner);
    let expected = [
        ("label", map("labels"), HELM_MANAGED_BY, HELM),
        ("annotation", map("annotations"), HELM_NAME, key.name.as_str()),
        (
            "annotation",
            map("annotations"),
            HELM_NAMESPACE,
            key.namespace.as_str(),
        ),
    ];
    // An adopted Deployment keeps the annotations of its previous release.
    let expected = expected.iter().filter(|_| !(is_owned && rules::is_adopted(live)));
    let mut errors: Vec<String> = expected
        .filter_map(|(what, found, name, value)| {
            let missing = wrong(*found, name, value, is_owned)?;
            Some(format!("{what} validation error: {missing}"))
        })
        .collect();
    if !is_owned {
        errors.extend(controller(live).map(|other| format!("owner validation error: {other}")));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApplyError::Foreign {
        id: Box::new(id.clone()),
        why: errors.join("; "),
    })
}

/// Helm's message about a wrong annotation. On an object with our owner reference, a missing annotation is
/// ignored.
fn wrong(found: Option<&Map<String, Value>>, name: &str, value: &str, is_owned: bool) -> Option<String> {
    match found.and_then(|map| map.get(name)).and_then(Value::as_str) {
        None if is_owned => None,
        None => Some(format!("missing key {name:?}: must be set to {value:?}")),
        Some(_) if is_owned && name == HELM_MANAGED_BY => None,
        Some(actual) if actual == value => None,
        Some(actual) => Some(format!(
            "key {name:?} must equal {value:?}: current value is {actual:?}"
        )),
    }
}

/// Describes the controlling owner of an object, if there is one.
fn controller(live: &Value) -> Option<String> {
    let owners = live.pointer("/metadata/ownerReferences")?.as_array()?;
    let other = owners
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text = |name: &str| other.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(format!("it is controlled by {} {:?}", text("kind"), text("name")))
}

impl Desired {
    /// Returns every field of a live object that installing the release would change, at most 100.
    #[must_use]
    pub fn differences(&self, id: &ObjectId, live: &Value) -> Vec<Difference> {
        self.get(id)
            .map(|wanted| all_differences(wanted, live))
            .unwrap_or_default()
    }

    /// Returns the drift of an observed object: the difference that the next install would write. Updates of
    /// kinds that platforms change constantly are not drift; the next install reverts them if necessary.
    #[must_use]
    pub fn drift(&self, id: &ObjectId, live: Option<&Value>) -> Option<Difference> {
        let Some(live) = live else {
            return self.contains(id).then_some(Difference::Absent);
        };
        let wanted = self.get(id)?;
        if rules::is_left_to_others(id) {
            return None;
        }
        match decide(wanted, Some(live), self) {
            Ok(Decision::Leave) | Err(ApplyError::Deleting(_)) => None,
            Ok(Decision::Create) => Some(Difference::Absent),
            Ok(Decision::Apply { why, .. } | Decision::Reorder { why, .. }) => Some(why),
            Err(_) => Some(Difference::Unowned),
        }
    }
}
