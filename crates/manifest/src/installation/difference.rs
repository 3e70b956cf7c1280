//! Compares two sets of objects field by field. YAML in `ConfigMaps` is parsed and compared as a structure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use mainstay_yaml::{Budget, Map, Value, parse};

use crate::merge::put;
use crate::object::Object;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// Path of the field, such as `spec.template.spec.containers[name:discovery].image`.
    pub path: String,
    /// Left value; `None` if the field does not exist.
    pub left: Option<Value>,
    /// Right value; `None` if the field does not exist.
    pub right: Option<Value>,
}

/// Kind of difference between two objects.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedObject {
    /// The object exists only on the left.
    Removed,
    /// The object exists only on the right.
    Added,
    /// The object exists on both sides, and these fields differ.
    Fields(Vec<FieldDifference>),
}

/// An object that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectDifference {
    /// `KIND NAMESPACE/NAME`.
    pub id: String,
    /// Kind of difference, with the fields that differ.
    pub change: ChangedObject,
}

/// Selects objects by kind, namespace and name. An empty part or `*` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSelector {
    kind: String,
    namespace: String,
    name: String,
}

/// Error of parsing an option of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffOptionsError {
    /// The selector does not have three parts.
    #[error("{0:?} is not KIND:NAMESPACE:NAME")]
    Selector(String),
    /// The renaming contains no arrow.
    #[error("{0:?} is not KIND:NAMESPACE:NAME->KIND:NAMESPACE:NAME")]
    Rename(String),
}

impl FromStr for ObjectSelector {
    type Err = DiffOptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let [kind, namespace, name] = parts.as_slice() else {
            return Err(DiffOptionsError::Selector(text.to_owned()));
        };
        let part = |text: &str| {
            if text == "*" {
                String::new()
            } else {
                text.to_owned()
            }
        };
        Ok(Self {
            kind: part(kind),
            namespace: part(namespace),
            name: part(name),
        })
    }
}

impl ObjectSelector {
    fn matches(&self, id: &Id) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        is(&self.kind, &id.kind) && is(&self.namespace, &id.namespace) && is(&self.name, &id.name)
    }
}

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// If not empty, only objects that match one of these are compared.
    pub select: Vec<ObjectSelector>,
    /// Objects that match one of these are not compared.
    pub ignore: Vec<ObjectSelector>,
    /// Objects on the left that have another name on the right.
    pub rename: Vec<(ObjectSelector, ObjectSelector)>,
}

impl DiffOptions {
    /// Parses `FROM->TO`.
    pub fn parse_rename(text: &str) -> Result<(ObjectSelector, ObjectSelector), DiffOptionsError> {
        let (from, to) = text
            .split_once("->")
            .ok_or_else(|| DiffOptionsError::Rename(text.to_owned()))?;
        Ok((from.parse()?, to.parse()?))
    }

    fn includes(&self, id: &Id) -> bool {
        let any = |selectors: &[ObjectSelector]| selectors.iter().any(|one| one.matches(id));
        (self.select.is_empty() || any(&self.select)) && !any(&self.ignore)
    }

    fn renamed(&self, mut id: Id) -> Id {
        if let Some((_, to)) = self.rename.iter().find(|(from, _)| from.matches(&id)) {
            for (part, new) in [
                (&mut id.kind, &to.kind),
                (&mut id.namespace, &to.namespace),
                (&mut id.name, &to.name),
            ] {
                if !new.is_empty() {
                    new.clone_into(part);
                }
            }
        }
        id
    }
}

/// Identity of an object, independent of its API version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Id {
    fn from_object(object: &Object) -> Self {
        Self {
            group: object.group(),
            kind: object.kind(),
            namespace: object.namespace(),
            name: object.name(),
        }
    }
}

impl Id {
    /// Sets kind, namespace and name of an object to this identity.
    fn write_to(&self, object: &mut Value) {
        let Some(map) = object.as_map_mut() else { return };
        put(map, &["kind"], self.kind.as_str().into());
        put(map, &["metadata", "name"], self.name.as_str().into());
        if !self.namespace.is_empty() {
            put(map, &["metadata", "namespace"], self.namespace.as_str().into());
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// Compares two sets of objects. The result is sorted by object.
#[must_use]
pub fn compare_object_sets(
    left: &[Object],
    right: &[Object],
    options: &DiffOptions,
) -> Vec<ObjectDifference> {
    let index = |objects: &[Object], is_left: bool| -> BTreeMap<Id, Value> {
        let ids = objects.iter().map(|object| (Id::from_object(object), object));
        let kept = ids.filter(|(id, _)| options.includes(id));
        kept.map(|(id, object)| {
            let mut value = parse_config_map(object);
            let id = if is_left { options.renamed(id) } else { id };
            id.write_to(&mut value);
            (id, value)
        })
        .collect()
    };
    let (left, right) = (index(left, true), index(right, false));
    let ids: BTreeSet<&Id> = left.keys().chain(right.keys()).collect();
    let compare = |id: &Id| {
        let change = match (left.get(id), right.get(id)) {
            (Some(_), None) => ChangedObject::Removed,
            (None, Some(_)) => ChangedObject::Added,
            (Some(left), Some(right)) => ChangedObject::Fields(compare_values(left, right)),
            (None, None) => return None,
        };
        let is_equal = change == ChangedObject::Fields(Vec::new());
        (!is_equal).then(|| ObjectDifference {
            id: id.to_string(),
            change,
        })
    };
    ids.into_iter().filter_map(compare).collect()
}

/// Returns the object. If it is a `ConfigMap`, texts that contain a map or a list are replaced by the
/// parsed structure.
fn parse_config_map(object: &Object) -> Value {
    let mut value = object.0.clone();
    if object.kind() != "ConfigMap" {
        return value;
    }
    let data = value
        .as_map_mut()
        .and_then(|map| map.get_mut("data")?.as_map_mut());
    for entry in data.into_iter().flat_map(BTreeMap::values_mut) {
        let parsed = entry
            .as_str()
            .and_then(|text| parse(text.as_bytes(), &Budget::default()).ok());
        if let Some(parsed @ (Value::Map(_) | Value::List(_))) = parsed {
            *entry = parsed;
        }
    }
    value
}

/// Returns every field that differs. Items of lists are matched by `name` if all of them have one,
/// otherwise by position.
#[must_use]
pub fn compare_values(left: &Value, right: &Value) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    compare(Some(left), Some(right), String::new(), &mut found);
    found
}

fn compare(left: Option<&Value>, right: Option<&Value>, path: String, found: &mut Vec<FieldDifference>) {
    match (left, right) {
        (Some(Value::Map(a)), Some(Value::Map(b))) => compare_maps(a, b, &path, found),
        (Some(Value::List(a)), Some(Value::List(b))) => compare_lists(a, b, &path, found),
        _ if is_same(left, right) => {}
        _ => found.push(FieldDifference {
            path,
            left: left.cloned(),
            right: right.cloned(),
        }),
    }
}

fn is_same(left: Option<&Value>, right: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| match value {
        Some(Value::Int(_) | Value::Uint(_) | Value::Float(_)) => value.and_then(Value::as_f64),
        _ => None,
    };
    let is_absent = |value: Option<&Value>| value.is_none_or(Value::is_null);
    left == right
        || (is_absent(left) && is_absent(right))
        || (number(left).is_some() && number(left) == number(right))
}

fn compare_maps(left: &Map, right: &Map, path: &str, found: &mut Vec<FieldDifference>) {
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for key in keys {
        let escaped = key.replace('.', "\\.");
        let below = if path.is_empty() {
            escaped
        } else {
            format!("{path}.{escaped}")
        };
        compare(left.get(key), right.get(key), below, found);
    }
}

fn compare_lists(left: &[Value], right: &[Value], path: &str, found: &mut Vec<FieldDifference>) {
    let (Some(a), Some(b)) = (index_by_name(left), index_by_name(right)) else {
        for index in 0..left.len().max(right.len()) {
            compare(
                left.get(index),
                right.get(index),
                format!("{path}[{index}]"),
                found,
            );
        }
        return;
    };
    let names: BTreeSet<&str> = a.keys().chain(b.keys()).copied().collect();
    for name in names {
        let below = format!("{path}[name:{name}]");
        compare(a.get(name).copied(), b.get(name).copied(), below, found);
    }
}

/// Returns the items by `name`, or `None` unless all items have distinct names.
fn index_by_name(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let names: Option<BTreeMap<&str, &Value>> = items
        .iter()
        .map(|item| Some((item.get("name")?.as_str()?, item)))
        .collect();
    names.filter(|names| names.len() == items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(texts: &[&str]) -> Vec<Object> {
        let read = |text: &&str| Object(parse(text.as_bytes(), &Budget::default()).unwrap());
        texts.iter().map(read).collect()
    }

    fn check(left: &[&str], right: &[&str], options: &DiffOptions, expected: &[&str]) {
        let found = compare_object_sets(&objects(left), &objects(right), options);
        let shown: Vec<String> = found
            .iter()
            .flat_map(|one| match &one.change {
                ChangedObject::Removed => vec![format!("- {}", one.id)],
                ChangedObject::Added => vec![format!("+ {}", one.id)],
                ChangedObject::Fields(fields) => fields
                    .iter()
                    .map(|field| format!("{} {}", one.id, field.path))
                    .collect(),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    const A: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {mesh: \"x: {port: 1}\"}}";
    const B: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {mesh: \"x: {port: 2}\"}}";
    const C: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {mesh: \"x:\\n  port: 1\"}}";

    #[test]
    fn yaml_in_config_maps_is_compared_as_a_structure() {
        check(
            &[A],
            &[B],
            &DiffOptions::default(),
            &["ConfigMap ns/a data.mesh.x.port"],
        );
        let renamed = A.replace("\"x: {port: 1}\"", "\"x:\\n  port: 1\\n\"");
        check(&[A], &[&renamed], &DiffOptions::default(), &[]);
    }

    #[test]
    fn objects_on_one_side_are_reported() {
        check(
            &[A],
            &[C],
            &DiffOptions::default(),
            &["- ConfigMap ns/a", "+ ConfigMap ns/c"],
        );
    }

    #[test]
    fn objects_are_selected_ignored_and_renamed() {
        let mut options = DiffOptions {
            ignore: vec!["ConfigMap:*:c".parse().unwrap()],
            ..DiffOptions::default()
        };
        check(&[A], &[C], &options, &["- ConfigMap ns/a"]);
        options.ignore.clear();
        options.rename = vec![DiffOptions::parse_rename("::a->::c").unwrap()];
        check(&[A], &[C], &options, &[]);
        options.select = vec!["Service::".parse().unwrap()];
        check(&[A], &[B], &options, &[]);
        assert!("a:b".parse::<ObjectSelector>().is_err());
        assert!(DiffOptions::parse_rename("a:b:c").is_err());
    }

    #[test]
    fn named_items_are_matched_by_name_and_numbers_by_value() {
        let left = "{kind: X, metadata: {name: a}, list: [{name: p, v: 1}, {name: q, v: 2}], n: 1, m: null}";
        let right = "{kind: X, metadata: {name: a}, list: [{name: q, v: 3}, {name: p, v: 1}], n: 1.0}";
        check(
            &[left],
            &[right],
            &DiffOptions::default(),
            &["X a list[name:q].v"],
        );
        let right = "{kind: X, metadata: {name: a}, list: [{name: p, v: 1}], n: 1, a.b: 1}";
        check(
            &[left],
            &[right],
            &DiffOptions::default(),
            &["X a a\\.b", "X a list[name:q]"],
        );
    }
}
