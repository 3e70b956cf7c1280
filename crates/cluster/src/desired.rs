//! Desired state of a release: rendered objects with ownership marks and identities. Pure.

mod id;
mod kinds;
mod marks;
mod reapplied;

use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::OwnerReference;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

pub use id::ObjectId;
pub use kinds::{Kind, Kinds};
pub use marks::Inventory;
pub(crate) use marks::inventory_id;
pub(crate) use marks::{APPLY_SET_ID, APPLY_SET_PART, INSTALLATION_SELECTOR, set_id};
pub use marks::{HELM, HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE};
use reapplied::ReappliedFields;

/// The desired state of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The release.
    pub key: ReleaseKey,
    /// The owner of all objects; `None` if only the inventory owns them.
    pub owner: Option<OwnerReference>,
    /// The objects in install order, without duplicates.
    pub objects: Vec<DesiredObject>,
    /// The inventory of the release.
    pub inventory: Inventory,
    index: BTreeMap<ObjectId, usize>,
    /// Fields that differ again right after an apply.
    pub(crate) reapplied: ReappliedFields,
    /// Ids of other sets from which objects may move to this one.
    accepted_sets: Vec<String>,
}

/// One object of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// The object.
    pub id: ObjectId,
    /// The object with ownership marks.
    pub body: Value,
    /// Whether an autoscaler of the release sets the number of replicas.
    pub(crate) is_scaled: bool,
}

/// Errors in rendered objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// A document without `apiVersion`, `kind` or `metadata.name`.
    #[error("a rendered object has no {0}")]
    Incomplete(&'static str),
    /// The kind is unknown.
    #[error(
        "resource mapping not found for name: {:?} namespace: {:?} from \"\": no matches for kind {:?} in version {:?}\nensure CRDs are installed first",
        .0.name, .0.namespace, .0.kind, .0.api_version()
    )]
    UnknownKind(Box<ObjectId>),
    /// Secrets are not installed.
    #[error("{0} cannot be installed: this operator neither reads nor writes Secrets")]
    Secret(Box<ObjectId>),
    /// An object is nested too deeply.
    #[error("{0} is nested too deeply")]
    TooDeep(Box<ObjectId>),
    /// An object is rendered twice.
    #[error("{0} is rendered twice")]
    Twice(Box<ObjectId>),
}

impl Desired {
    /// Marks rendered objects with their release and owner. Objects without a namespace get the release's,
    /// cluster-scoped objects lose theirs, lists are expanded, and null fields are removed.
    pub fn new(
        key: ReleaseKey,
        owner: impl Into<Option<OwnerReference>>,
        rendered: Vec<Value>,
        kinds: &Kinds,
    ) -> Result<Self, DesiredError> {
        let owner = owner.into();
        let inventory = Inventory::new(&key, owner.as_ref());
        let mut desired = Self {
            key,
            owner,
            objects: Vec::with_capacity(rendered.len()),
            inventory,
            index: BTreeMap::new(),
            reapplied: ReappliedFields::default(),
            accepted_sets: Vec::new(),
        };
        for object in rendered.into_iter().flat_map(flatten) {
            desired.add(object, kinds)?;
        }
        desired.mark_scaled();
        desired.inventory.cover(&desired.objects);
        Ok(desired)
    }

    fn add(&mut self, body: Value, kinds: &Kinds) -> Result<(), DesiredError> {
        let mut id = ObjectId::from_object(&body)?;
        let Some(body) = without_nulls(body, DEEPEST) else {
            return Err(DesiredError::TooDeep(Box::new(id)));
        };
        if self.owner.is_some() && id.group.is_empty() && id.kind == "Secret" {
            return Err(DesiredError::Secret(Box::new(id)));
        }
        let Some(kind) = kinds.get(&id.group, &id.kind) else {
            return Err(DesiredError::UnknownKind(Box::new(id)));
        };
        id.settle(kind.is_namespaced, &self.key.namespace);
        if self.index.insert(id.clone(), self.objects.len()).is_some() {
            return Err(DesiredError::Twice(Box::new(id)));
        }
        let mut body = marks::marked(body, &id, &self.key, self.owner.as_ref());
        drop_hidden_variables(&mut body);
        self.objects.push(DesiredObject {
            id,
            body,
            is_scaled: false,
        });
        Ok(())
    }

    /// Creates the desired state of an inventory without objects.
    pub(crate) fn for_inventory(key: ReleaseKey, inventory: Inventory) -> Self {
        Self {
            key,
            owner: None,
            objects: Vec::new(),
            inventory,
            index: BTreeMap::new(),
            reapplied: ReappliedFields::default(),
            accepted_sets: Vec::new(),
        }
    }

    /// Allows objects to move from these sets.
    #[must_use]
    pub(crate) fn accepting(mut self, sets: Vec<String>) -> Self {
        self.accepted_sets = sets;
        self
    }

    /// Whether objects may move from this set.
    pub(crate) fn accepts(&self, set: &str) -> bool {
        self.accepted_sets.iter().any(|accepted| accepted == set)
    }

    /// Returns the desired object with this identity.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&DesiredObject> {
        self.index.get(id).and_then(|at| self.objects.get(*at))
    }

    /// Whether the release contains this object or it is the inventory.
    #[must_use]
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.index.contains_key(id) || self.inventory.id == *id
    }

    /// Marks the targets of autoscalers in the release.
    fn mark_scaled(&mut self) {
        let scaled: Vec<ObjectId> = self.objects.iter().filter_map(scale_target).collect();
        for wanted in &mut self.objects {
            wanted.is_scaled = scaled.contains(&wanted.id);
        }
    }
}

/// The target of an autoscaler.
fn scale_target(autoscaler: &DesiredObject) -> Option<ObjectId> {
    if autoscaler.id.kind != "HorizontalPodAutoscaler" {
        return None;
    }
    let target = autoscaler.body.pointer("/spec/scaleTargetRef")?;
    let text = |name: &str| target.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = id::split(text("apiVersion"));
    Some(ObjectId {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("kind").to_owned(),
        namespace: autoscaler.id.namespace.clone(),
        name: text("name").to_owned(),
    })
}

/// The items of a list, or the object itself.
fn flatten(object: Value) -> Vec<Value> {
    let is_list = object
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
    match object {
        Value::Object(mut map) if is_list && map.get("items").is_some_and(Value::is_array) => {
            match map.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        Value::Null => Vec::new(),
        object => vec![object],
    }
}

/// Keeps the last of duplicate environment variables, which an apply rejects: charts append the user's
/// variables to their own.
fn drop_hidden_variables(body: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = body.pointer_mut(&format!("/spec/template/spec/{list}"));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::Array(variables)) = container.get_mut("env") {
                keep_last(variables);
            }
        }
    }
}

/// Keeps the last of entries with the same name.
fn keep_last(entries: &mut Vec<Value>) {
    let mut names = BTreeSet::new();
    entries.reverse();
    entries.retain(|entry| {
        let name = entry.get("name").and_then(Value::as_str);
        name.is_none_or(|name| names.insert(name.to_owned()))
    });
    entries.reverse();
}

/// Maximum nesting depth of an object; the same limit applies to responses.
const DEEPEST: usize = 120;

/// Removes null fields; `None` if the value is nested too deeply.
fn without_nulls(value: Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| Some((name, without_nulls(value, depth)?)))
                .collect::<Option<_>>()?,
        ),
        Value::Array(list) => Value::Array(
            list.into_iter()
                .map(|value| without_nulls(value, depth))
                .collect::<Option<_>>()?,
        ),
        other => other,
    })
}

#[cfg(test)]
mod tests;
