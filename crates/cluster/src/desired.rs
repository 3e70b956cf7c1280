//! What a release should consist of: takes rendered objects and whose they are, gives them marked as ours, each with its identity.
//! Knows no cluster.

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
pub(crate) use marks::{APPLY_SET_PART, HELM, HELM_MANAGED_BY, HELM_NAME, HELM_NAMESPACE};
use reapplied::ReappliedFields;

/// What a release should consist of.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Which release.
    pub key: ReleaseKey,
    /// Who owns all its objects.
    pub owner: OwnerReference,
    /// Its objects, in the order they are installed. No two are the same.
    pub objects: Vec<DesiredObject>,
    /// The object that says what belongs to the release.
    pub inventory: Inventory,
    index: BTreeMap<ObjectId, usize>,
    /// What the server makes of them otherwise.
    pub(crate) insisted: ReappliedFields,
}

/// One object of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Which.
    pub id: ObjectId,
    /// All of it, marks included.
    pub body: Value,
    /// Whether something else of the release decides how many replicas there are.
    pub(crate) is_scaled: bool,
}

/// Why rendered objects make no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// A document without `apiVersion`, `kind` or `metadata.name`.
    #[error("a rendered object has no {0}")]
    Incomplete(&'static str),
    /// Nobody knows the kind.
    #[error(
        "resource mapping not found for name: {:?} namespace: {:?} from \"\": no matches for kind {:?} in version {:?}\nensure CRDs are installed first",
        .0.name, .0.namespace, .0.kind, .0.api_version()
    )]
    UnknownKind(Box<ObjectId>),
    /// Secrets are none of our business.
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
    /// Marks what was rendered for a release as its owner's. Objects without a namespace go to the release's, those of kinds without
    /// namespaces lose theirs, lists become their items, and fields that are null are fields that are not there.
    pub fn new(
        key: ReleaseKey,
        owner: OwnerReference,
        rendered: Vec<Value>,
        kinds: &Kinds,
    ) -> Result<Self, DesiredError> {
        let inventory = Inventory::new(&key, &owner);
        let mut desired = Self {
            key,
            owner,
            objects: Vec::with_capacity(rendered.len()),
            inventory,
            index: BTreeMap::new(),
            insisted: ReappliedFields::default(),
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
        if id.group.is_empty() && id.kind == "Secret" {
            return Err(DesiredError::Secret(Box::new(id)));
        }
        let Some(kind) = kinds.get(&id.group, &id.kind) else {
            return Err(DesiredError::UnknownKind(Box::new(id)));
        };
        id.settle(kind.is_namespaced, &self.key.namespace);
        if self.index.insert(id.clone(), self.objects.len()).is_some() {
            return Err(DesiredError::Twice(Box::new(id)));
        }
        let mut body = marks::marked(body, &id, &self.key, &self.owner);
        drop_hidden_variables(&mut body);
        self.objects.push(DesiredObject {
            id,
            body,
            is_scaled: false,
        });
        Ok(())
    }

    /// The wanted object of this identity.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&DesiredObject> {
        self.index.get(id).and_then(|at| self.objects.get(*at))
    }

    /// Whether this is one of its objects, its inventory included.
    #[must_use]
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.index.contains_key(id) || self.inventory.id == *id
    }

    /// Finds what autoscalers of this very release scale.
    fn mark_scaled(&mut self) {
        let scaled: Vec<ObjectId> = self.objects.iter().filter_map(scale_target).collect();
        for wanted in &mut self.objects {
            wanted.is_scaled = scaled.contains(&wanted.id);
        }
    }
}

/// What an autoscaler scales.
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

/// Of variables that are set twice the last one counts, and an apply refuses both: charts append what users set to what they set
/// themselves.
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

/// Of entries with one name, the last.
fn keep_last(entries: &mut Vec<Value>) {
    let mut names = BTreeSet::new();
    entries.reverse();
    entries.retain(|entry| {
        let name = entry.get("name").and_then(Value::as_str);
        name.is_none_or(|name| names.insert(name.to_owned()))
    });
    entries.reverse();
}

/// How deep an object may be; what a server answers is read no deeper either.
const DEEPEST: usize = 120;

/// The value without fields that are null, unless it is too deep.
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
