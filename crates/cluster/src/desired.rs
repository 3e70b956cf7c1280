//! Desired state of a release: the rendered objects with their identities and ownership marks. Pure.

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
    /// Key of the release.
    pub key: ReleaseKey,
    /// The owner of all objects; `None` if only the inventory owns them.
    pub owner: Option<OwnerReference>,
    /// The objects in install order, without duplicates.
    pub objects: Vec<DesiredObject>,
    /// The inventory of the release.
    pub inventory: Inventory,
    index: BTreeMap<ObjectId, usize>,
    /// Paths that differed right after an apply.
    pub(crate) reapplied: ReappliedFields,
    /// IDs of other sets from which objects may move to this one.
    accepted_sets: Vec<String>,
}

/// One object of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Identity of the object.
    pub id: ObjectId,
    /// The object with ownership marks.
    pub body: Value,
    /// Whether an autoscaler of the release sets the number of replicas.
    pub(crate) is_scaled: bool,
}

/// Error in the rendered objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// A document has no `apiVersion`, `kind` or `metadata.name`.
    #[error("a rendered object has no {0}")]
    Incomplete(&'static str),
    /// The kind is unknown.
    #[error(
        "resource mapping not found for name: {:?} namespace: {:?} from \"\": no matches for kind {:?} in version {:?}\nensure CRDs are installed first",
        .0.name, .0.namespace, .0.kind, .0.api_version()
    )]
    UnknownKind(Box<ObjectId>),
    /// The object is a Secret. The operator does not install Secrets.
    #[error("{0} cannot be installed: this operator neither reads nor writes Secrets")]
    Secret(Box<ObjectId>),
    /// An object is nested too deeply.
    #[error("{0} is nested too deeply")]
    TooDeep(Box<ObjectId>),
    /// An object is rendered twice.
    #[error("{0} is rendered twice")]
    Duplicate(Box<ObjectId>),
}

impl Desired {
    /// Creates the desired state from rendered objects. Adds the marks of release and owner, sets a
    /// missing namespace to that of the release, removes the namespace of cluster-scoped objects and null
    /// fields, and expands lists.
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
        for object in rendered.into_iter().flat_map(expand_list) {
            desired.add(object, kinds)?;
        }
        desired.mark_scaled();
        desired.inventory.add_objects(&desired.objects);
        Ok(desired)
    }

    fn add(&mut self, body: Value, kinds: &Kinds) -> Result<(), DesiredError> {
        let mut id = ObjectId::from_object(&body)?;
        let Some(body) = without_nulls(body, MAX_DEPTH) else {
            return Err(DesiredError::TooDeep(Box::new(id)));
        };
        if self.owner.is_some() && id.group.is_empty() && id.kind == "Secret" {
            return Err(DesiredError::Secret(Box::new(id)));
        }
        let Some(kind) = kinds.get(&id.group, &id.kind) else {
            return Err(DesiredError::UnknownKind(Box::new(id)));
        };
        id.set_namespace(kind.is_namespaced, &self.key.namespace);
        if self.index.insert(id.clone(), self.objects.len()).is_some() {
            return Err(DesiredError::Duplicate(Box::new(id)));
        }
        let mut body = marks::with_marks(body, &id, &self.key, self.owner.as_ref());
        remove_duplicate_variables(&mut body);
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
    pub(crate) fn with_accepted_sets(mut self, sets: Vec<String>) -> Self {
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

    /// Whether this is an object of the release or its inventory.
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

/// Returns the target of an autoscaler; `None` if the object is not an autoscaler.
fn scale_target(autoscaler: &DesiredObject) -> Option<ObjectId> {
    if autoscaler.id.kind != "HorizontalPodAutoscaler" {
        return None;
    }
    let target = autoscaler.body.pointer("/spec/scaleTargetRef")?;
    let text = |name: &str| target.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = id::split_api_version(text("apiVersion"));
    Some(ObjectId {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("kind").to_owned(),
        namespace: autoscaler.id.namespace.clone(),
        name: text("name").to_owned(),
    })
}

/// Returns the items of a list, or the object itself.
fn expand_list(object: Value) -> Vec<Value> {
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

/// Keeps only the last of duplicate environment variables, because a server-side apply rejects
/// duplicates. Charts append the user's variables to their own.
fn remove_duplicate_variables(body: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = body.pointer_mut(&format!("/spec/template/spec/{list}"));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(Value::Array(variables)) = container.get_mut("env") {
                keep_last(variables);
            }
        }
    }
}

/// Keeps only the last of the entries with the same name.
fn keep_last(entries: &mut Vec<Value>) {
    let mut names = BTreeSet::new();
    entries.reverse();
    entries.retain(|entry| {
        let name = entry.get("name").and_then(Value::as_str);
        name.is_none_or(|name| names.insert(name.to_owned()))
    });
    entries.reverse();
}

/// Maximum nesting depth of an object. The same limit applies to responses.
const MAX_DEPTH: usize = 120;

/// Returns the value without null fields, or `None` if it is nested too deeply.
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
