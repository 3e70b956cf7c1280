//! Ownership marks of objects, and the inventory of a release. The inventory lists the kinds of the
//! release, so that any tool can find its objects (it is the parent of an `ApplySet`).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mainstay_api::{OwnerReference, names};
use mainstay_mesh::plan::ReleaseKey;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{DesiredObject, ObjectId};

/// Helm's ownership label.
pub const HELM_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`HELM_MANAGED_BY`].
pub const HELM: &str = "Helm";
/// Annotation with the name of the Helm release.
pub const HELM_NAME: &str = "meta.helm.sh/release-name";
/// Annotation with the namespace of the Helm release.
pub const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// Label of a member of a set: the ID of the set.
pub(crate) const APPLY_SET_PART: &str = "applyset.kubernetes.io/part-of";
/// Label of an inventory: the ID of its set.
pub(crate) const APPLY_SET_ID: &str = "applyset.kubernetes.io/id";
const TOOLING: &str = "applyset.kubernetes.io/tooling";
const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// Labels of the inventory of a set without an owner.
const INSTALLATION_LABELS: [(&str, &str); 2] = [
    ("app.kubernetes.io/managed-by", "mainstay"),
    ("app.kubernetes.io/component", "istio-installation"),
];
/// Selector of the inventories of sets without an owner.
pub(crate) const INSTALLATION_SELECTOR: &str =
    "app.kubernetes.io/managed-by=mainstay,app.kubernetes.io/component=istio-installation";

/// Returns an object with the marks of its release and owner, and with the name and namespace of `id`.
pub(super) fn with_marks(
    body: Value,
    id: &ObjectId,
    key: &ReleaseKey,
    owner: Option<&OwnerReference>,
) -> Value {
    let Value::Object(mut body) = body else {
        return body;
    };
    let mut metadata = take_map(&mut body, "metadata");
    metadata.insert("name".into(), id.name.clone().into());
    if id.namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".into(), id.namespace.clone().into());
    }
    if let Some(owner) = owner {
        add_owner_marks(&mut metadata, key, owner);
    }
    let mut labels = take_map(&mut metadata, "labels");
    labels.insert(APPLY_SET_PART.into(), set_id(key).into());
    metadata.insert("labels".into(), labels.into());
    body.insert("metadata".into(), metadata.into());
    body.into()
}

/// Adds the ownership marks of Helm and of the Sail Operator.
fn add_owner_marks(metadata: &mut Map<String, Value>, key: &ReleaseKey, owner: &OwnerReference) {
    let mut labels = take_map(metadata, "labels");
    labels.insert(names::MANAGED_BY_LABEL.into(), names::MANAGED_BY.into());
    labels.insert(HELM_MANAGED_BY.into(), HELM.into());
    metadata.insert("labels".into(), labels.into());
    let mut annotations = take_map(metadata, "annotations");
    annotations.insert(HELM_NAME.into(), key.name.clone().into());
    annotations.insert(HELM_NAMESPACE.into(), key.namespace.clone().into());
    metadata.insert("annotations".into(), annotations.into());
    let mut owners = match metadata.remove("ownerReferences") {
        Some(Value::Array(owners)) => owners,
        _ => Vec::new(),
    };
    owners.push(json!(owner));
    metadata.insert("ownerReferences".into(), owners.into());
}

/// Removes and returns the map under `name`; empty if there is none.
fn take_map(map: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match map.remove(name) {
        Some(Value::Object(found)) => found,
        _ => Map::new(),
    }
}

/// Inventory of a release: a `ConfigMap` that lists its kinds and namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    /// Identity of the `ConfigMap`.
    pub id: ObjectId,
    metadata: Map<String, Value>,
    group_kinds: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    /// Data of the `ConfigMap`.
    data: Map<String, Value>,
}

impl Inventory {
    /// Creates the inventory of a release without objects.
    pub(super) fn new(key: &ReleaseKey, owner: Option<&OwnerReference>) -> Self {
        let id = inventory_id(key);
        let mut metadata = Map::new();
        if let Some(owner) = owner {
            add_owner_marks(&mut metadata, key, owner);
        }
        let mut labels = take_map(&mut metadata, "labels");
        if owner.is_none() {
            labels.extend(INSTALLATION_LABELS.map(|(name, value)| (name.to_owned(), value.into())));
        }
        labels.insert(APPLY_SET_ID.into(), set_id(key).into());
        metadata.insert("labels".into(), labels.into());
        metadata.insert("name".into(), id.name.clone().into());
        metadata.insert("namespace".into(), id.namespace.clone().into());
        Self {
            id,
            metadata,
            group_kinds: BTreeSet::new(),
            namespaces: BTreeSet::new(),
            data: Map::new(),
        }
    }

    /// Creates the inventory of a set without an owner, with data about the set.
    pub(crate) fn for_set(key: &ReleaseKey, data: Map<String, Value>) -> Self {
        Self {
            data,
            ..Self::new(key, None)
        }
    }

    /// Adds the kind and namespace of an object.
    pub(crate) fn add(&mut self, id: &ObjectId) {
        self.add_id(id);
    }

    /// Adds the kinds and namespaces that a live inventory lists.
    pub(crate) fn add_listed(&mut self, live: &Value) {
        self.group_kinds.extend(parse_list(live, GROUP_KINDS));
        self.namespaces.extend(parse_list(live, NAMESPACES));
    }

    /// Returns the kinds that a live inventory lists, such as `Deployment.apps`.
    pub(crate) fn listed_kinds(live: &Value) -> BTreeSet<String> {
        parse_list(live, GROUP_KINDS)
    }

    /// Adds the kinds and namespaces of these objects.
    pub(super) fn add_objects(&mut self, objects: &[DesiredObject]) {
        for wanted in objects {
            self.add_id(&wanted.id);
        }
    }

    fn add_id(&mut self, id: &ObjectId) {
        self.group_kinds.insert(id.group_kind());
        if !id.namespace.is_empty() && id.namespace != self.id.namespace {
            self.namespaces.insert(id.namespace.clone());
        }
    }

    /// Whether `live` is this inventory, lists at least its kinds and namespaces, and has its data.
    pub(crate) fn is_covered_by(&self, live: &Value) -> bool {
        let id = live
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(APPLY_SET_ID));
        let own_id = self
            .metadata
            .get("labels")
            .and_then(|labels| labels.get(APPLY_SET_ID));
        id == own_id
            && self.group_kinds.is_subset(&parse_list(live, GROUP_KINDS))
            && self.namespaces.is_subset(&parse_list(live, NAMESPACES))
            && (self.data.is_empty() || live.get("data").and_then(Value::as_object) == Some(&self.data))
    }

    /// Returns the object to apply. It also lists the kinds and namespaces of the objects in `leftovers`,
    /// which are about to be deleted.
    pub(crate) fn body<'a>(&self, leftovers: impl Iterator<Item = &'a ObjectId>) -> Value {
        let mut all = self.clone();
        leftovers.for_each(|id| all.add_id(id));
        let mut metadata = all.metadata;
        let mut annotations = take_map(&mut metadata, "annotations");
        annotations.insert(TOOLING.into(), "mainstay/v1".into());
        annotations.insert(GROUP_KINDS.into(), join_list(&all.group_kinds).into());
        if !all.namespaces.is_empty() {
            annotations.insert(NAMESPACES.into(), join_list(&all.namespaces).into());
        }
        metadata.insert("annotations".into(), annotations.into());
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        if let (false, Value::Object(body)) = (all.data.is_empty(), &mut body) {
            body.insert("data".into(), all.data.into());
        }
        body
    }
}

/// Returns the identity of a release's inventory.
pub(crate) fn inventory_id(key: &ReleaseKey) -> ObjectId {
    ObjectId {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: key.namespace.clone(),
        name: format!("mainstay-{}", key.name),
    }
}

fn parse_list(live: &Value, annotation: &str) -> BTreeSet<String> {
    let text = live
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(annotation))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn join_list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// Returns the `ApplySet` ID as KEP-3659 defines it: a hash of the parent's name, namespace, kind and
/// group.
pub(crate) fn set_id(key: &ReleaseKey) -> String {
    let parent = inventory_id(key);
    let text = format!(
        "{}.{}.{}.{}",
        parent.name, parent.namespace, parent.kind, parent.group
    );
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(Sha256::digest(text)))
}
