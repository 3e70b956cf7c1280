//! Decides whether to create, apply, reorder or skip one object, with the reason. Pure.

use std::fmt;

use mainstay_api::names;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::{Map, Value, json};

use super::error::ApplyError;
use super::{LEGACY_MANAGERS, rules, webhook_order};
use crate::compare::{self, Difference, Path, Records};
use crate::connect::MANAGER;
use crate::desired::{
    APPLY_SET_PART, Desired, DesiredObject, HELM, HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE, ObjectId,
    set_id,
};
use crate::live::{annotation, is_part_of, owners, set_label, uid};

/// Decision about one object.
pub(super) enum Decision {
    /// The object is up to date, or an annotation excludes it.
    Skip,
    /// The object does not exist.
    Create,
    /// The object differs.
    Apply {
        /// The body to apply.
        body: Value,
        reason: Difference,
        /// JSON patch that transfers field ownership from previous installers to our manager. Sent before
        /// the apply.
        records: Option<Value>,
    },
    /// Only the order of webhooks differs.
    Reorder {
        /// JSON patch that reorders the list.
        patch: Value,
        reason: Difference,
    },
}

/// Returns the decision about `wanted` for its live object. Fails if the object is foreign or being
/// deleted.
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
        return Ok(Decision::Skip);
    }
    let mut paths = desired.reapplied.paths(&wanted.id, uid(live));
    paths.extend(rules::unmanaged_paths(&wanted.id));
    Ok(match compare_fields(wanted, live, &paths) {
        Decision::Skip => compare_order(wanted, live, &paths),
        other => other,
    })
}

fn compare_order(wanted: &DesiredObject, live: &Value, paths: &[Path]) -> Decision {
    let list = webhook_order::path();
    match webhook_order::patch(wanted, live) {
        Some(patch) if !paths.contains(&list) => Decision::Reorder {
            patch,
            reason: Difference::Changed(list),
        },
        _ => Decision::Skip,
    }
}

/// Returns the path of the webhooks if they are out of order right after they were reordered.
pub(super) fn disordered_path(wanted: &DesiredObject, live: &Value) -> Option<Path> {
    webhook_order::patch(wanted, live).map(|_| webhook_order::path())
}

/// Returns the paths at which an object differs right after it was applied.
pub(super) fn reverted_paths(wanted: &DesiredObject, live: &Value) -> Vec<Path> {
    let found = all_differences(wanted, live);
    found.iter().filter_map(|one| one.path().cloned()).collect()
}

/// Returns the differences of an object, in the order of its fields, up to a maximum number.
fn all_differences(wanted: &DesiredObject, live: &Value) -> Vec<Difference> {
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    while paths.len() < MAX_PATHS {
        let Decision::Apply { reason, .. } = compare_fields(wanted, live, &paths) else {
            break;
        };
        let path = reason.path().cloned();
        found.push(reason);
        match path {
            Some(path) => paths.push(path),
            None => break,
        }
    }
    found
}

/// Maximum number of paths that are recorded per object. Fields beyond it are applied again each time.
const MAX_PATHS: usize = 100;

fn compare_fields(wanted: &DesiredObject, live: &Value, paths: &[Path]) -> Decision {
    let records = Records::parse(live, MANAGER, LEGACY_MANAGERS).excluding(paths);
    let body = rules::without_shared_fields(wanted, live, &records);
    let leftover = compare::legacy_leftover(&body, live, &records);
    let changed = if records.has_own_record() {
        compare::difference_in(&body, live, &records)
    } else {
        compare::takeover(&without_set_label(&body), live, &records)
    };
    let patch = leftover.is_some().then(|| records_patch(live, &records));
    match changed.or(leftover) {
        None => Decision::Skip,
        Some(reason) => Decision::Apply {
            body: body.into_owned(),
            reason,
            records: patch,
        },
    }
}

/// Returns the object without the label of its set. A missing label alone is no reason to write an object
/// that another tool installed.
fn without_set_label(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(Value::Object(labels)) = body.pointer_mut("/metadata/labels") {
        labels.remove(APPLY_SET_PART);
    }
    body
}

/// Returns a JSON patch that removes the `managedFields` entries of previous installers and adds their
/// fields to our entry, as `kubectl` does when it migrates from client-side apply. The patch fails on any
/// other version of the object.
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

/// Whether an object belongs to this owner and release, and is not being deleted.
pub(super) fn may_delete(live: &Value, key: &ReleaseKey) -> bool {
    let has_owner = key.owner.is_empty() || owners(live).any(|owner| owner == key.owner);
    has_owner && is_part_of(live, key) && !uid(live).is_empty() && !is_deleting(live)
}

/// Checks that an object of a set without an owner is not foreign: it must be a member of this set, of an
/// accepted set, or of no set, and belong to neither a Helm release nor a controller.
fn check_membership(id: &ObjectId, live: &Value, desired: &Desired) -> Result<(), ApplyError> {
    let set = set_label(live).filter(|set| *set != set_id(&desired.key) && !desired.accepts(set));
    let set = set.map(|set| format!("it is a member of the set {set:?}"));
    let release = annotation(live, HELM_NAME).map(|name| format!("it belongs to the Helm release {name:?}"));
    match set.or(release).or_else(|| describe_controller(live)) {
        Some(reason) => Err(ApplyError::Foreign {
            id: Box::new(id.clone()),
            reason,
        }),
        None => Ok(()),
    }
}

/// Checks that an object belongs to the release: either it has our owner reference and no marks of
/// another release, or it has Helm's marks of this release and no other controlling owner.
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
            let missing = mark_error(*found, name, value, is_owned)?;
            Some(format!("{what} validation error: {missing}"))
        })
        .collect();
    if !is_owned {
        errors.extend(describe_controller(live).map(|other| format!("owner validation error: {other}")));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApplyError::Foreign {
        id: Box::new(id.clone()),
        reason: errors.join("; "),
    })
}

/// Returns Helm's message about a missing or wrong ownership label or annotation. On an object with our
/// owner reference, a missing one is accepted, and so is any value of the label.
fn mark_error(found: Option<&Map<String, Value>>, name: &str, value: &str, is_owned: bool) -> Option<String> {
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

/// Describes the controlling owner of an object; `None` if it has none.
fn describe_controller(live: &Value) -> Option<String> {
    let owners = live.pointer("/metadata/ownerReferences")?.as_array()?;
    let other = owners
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text = |name: &str| other.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(format!("it is controlled by {} {:?}", text("kind"), text("name")))
}

/// Drift of an observed object.
#[derive(Debug)]
pub enum Drift {
    /// The next install writes this difference.
    Difference(Difference),
    /// The next install fails with this error, because the object is foreign.
    Blocked(ApplyError),
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Difference(difference) => difference.fmt(f),
            Self::Blocked(error) => error.fmt(f),
        }
    }
}

impl Desired {
    /// Returns the fields of a live object that installing the release would change, at most 100.
    #[must_use]
    pub fn differences(&self, id: &ObjectId, live: &Value) -> Vec<Difference> {
        self.get(id)
            .map(|wanted| all_differences(wanted, live))
            .unwrap_or_default()
    }

    /// Returns the drift of an observed object: the difference that the next install would write, or the
    /// error with which it would fail. Updates of kinds that platforms change constantly are not drift,
    /// although the next install may revert them.
    #[must_use]
    pub fn drift(&self, id: &ObjectId, live: Option<&Value>) -> Option<Drift> {
        let Some(live) = live else {
            return self.contains(id).then_some(Drift::Difference(Difference::Absent));
        };
        let wanted = self.get(id)?;
        if rules::ignores_updates(id) {
            return None;
        }
        match decide(wanted, Some(live), self) {
            Ok(Decision::Skip) | Err(ApplyError::Deleting(_)) => None,
            Ok(Decision::Create) => Some(Drift::Difference(Difference::Absent)),
            Ok(Decision::Apply { reason, .. } | Decision::Reorder { reason, .. }) => {
                Some(Drift::Difference(reason))
            }
            Err(error) => Some(Drift::Blocked(error)),
        }
    }
}
