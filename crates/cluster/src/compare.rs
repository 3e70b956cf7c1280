//! Whether an apply would change anything: takes the wanted object, the live one and our name as a field manager, gives the first
//! difference. Asks nobody.
//!
//! What a list is (one value, a set, or entries with keys) is not known from the object. But the server wrote it down when we applied
//! last: our entry in `managedFields` names entries by `k:{…}` and `v:…`, or ends at the list. So our own record is the schema,
//! and it also tells what we once wanted and no longer do.

mod fields;
mod quantity;

use std::fmt;

use serde_json::Value;

use fields::{Element, Fields};

/// Why an apply is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// We own nothing there yet: nobody has applied under our name.
    Unowned,
    /// A value is not what we want.
    Changed(Path),
    /// We want a field that is not there, or that we do not own.
    Missing(Path),
    /// We own a field that we do not want any more.
    Leftover(Path),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unowned => write!(f, "not applied by us yet"),
            Self::Changed(path) => write!(f, "{path} was changed"),
            Self::Missing(path) => write!(f, "{path} is missing"),
            Self::Leftover(path) => write!(f, "{path} is not wanted any more"),
        }
    }
}

/// Where in an object, as the server records it: `f:spec`, `f:ports`, `k:{"port":443}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl fmt::Display for Path {
    /// As people write it: `.spec.ports[port=443].name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|key| match key.strip_prefix("f:") {
            Some(name) => write!(f, ".{name}"),
            None => match Element::parse(key) {
                Some(element) => write!(f, "[{element}]"),
                None => write!(f, "[{key}]"),
            },
        })
    }
}

impl Path {
    fn field(&self, name: &str) -> Self {
        self.below(format!("f:{name}"))
    }

    fn below(&self, key: String) -> Self {
        Self(self.0.iter().cloned().chain([key]).collect())
    }
}

/// The first reason why applying `wanted` as `manager` would change `live`; `None` when the server would leave it as it is.
#[must_use]
pub fn difference(wanted: &Value, live: &Value, manager: &str) -> Option<Difference> {
    let records = Records::of(live);
    let Some(owned) = records.applied_by(manager) else {
        return Some(Difference::Unowned);
    };
    let Value::Object(wanted) = wanted else {
        return None;
    };
    // Who and where it is was settled when it was found; the server never records these.
    let mut wanted = wanted.clone();
    wanted.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    let metadata = wanted
        .get("metadata")
        .map(without_identity)
        .filter(|metadata| !is_empty(metadata));
    match metadata {
        Some(metadata) => wanted.insert("metadata".into(), metadata),
        None => wanted.remove("metadata"),
    };
    let at = Path::default();
    wanted
        .iter()
        .find_map(|(name, value)| field(value, live.get(name), owned.get(name), &at.field(name), &records))
        .or_else(|| leftovers(&Value::Object(wanted.clone()), owned, &at))
}

/// Who owns what, everybody's.
struct Records<'a>(&'a [Value]);

impl<'a> Records<'a> {
    fn of(live: &'a Value) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        Self(entries.map(Vec::as_slice).unwrap_or_default())
    }

    /// What `manager` applied, if it ever did.
    fn applied_by(&self, manager: &str) -> Option<Fields<'a>> {
        let is_ours = |entry: &&Value| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            text("manager") == manager && text("operation") == "Apply" && text("subresource").is_empty()
        };
        self.0.iter().find(is_ours)?.get("fieldsV1").map(Fields::of)
    }

    /// Whether somebody owns single parts of what is at this place, so that nobody owns it as one.
    fn is_shared(&self, at: &Path) -> bool {
        let below = |entry: &'a Value| {
            let record = Fields::of(entry.get("fieldsV1")?);
            at.0.iter().try_fold(record, |fields, key| fields.below(key))
        };
        self.0.iter().filter_map(below).any(|fields| !fields.is_leaf())
    }
}

/// `metadata` without what identifies the object.
fn without_identity(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Value::Object(map) = &mut metadata {
        map.retain(|key, _| !matches!(key.as_str(), "name" | "namespace"));
    }
    metadata
}

fn field(
    wanted: &Value,
    live: Option<&Value>,
    owned: Option<Fields<'_>>,
    at: &Path,
    records: &Records<'_>,
) -> Option<Difference> {
    // Wanting an empty map or list is wanting nothing in it, unless it is ours as one and somebody filled it.
    if is_empty(wanted) && (live.is_none_or(is_empty) || (owned.is_some() && records.is_shared(at))) {
        return None;
    }
    let (Some(live), Some(owned)) = (live, owned) else {
        return Some(Difference::Missing(at.clone()));
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(map)) if !owned.is_leaf() => wanted
            .iter()
            .find_map(|(name, value)| field(value, map.get(name), owned.get(name), &at.field(name), records)),
        (Value::Array(wanted), Value::Array(list)) if !owned.is_leaf() => wanted
            .iter()
            .find_map(|value| entry(value, list, owned, at, records)),
        _ if is_same(wanted, live) => None,
        _ => Some(Difference::Changed(at.clone())),
    }
}

/// One entry of a list with keys, or of a set.
fn entry(
    wanted: &Value,
    list: &[Value],
    owned: Fields<'_>,
    at: &Path,
    records: &Records<'_>,
) -> Option<Difference> {
    let Some((key, element, inner)) = owned.elements().find(|(_, element, _)| element.is(wanted)) else {
        return Some(Difference::Missing(at.below(format!("v:{wanted}"))));
    };
    let at = at.below(key.to_owned());
    let Some(live) = list.iter().find(|live| element.is(live)) else {
        return Some(Difference::Missing(at));
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(map)) => wanted
            .iter()
            .find_map(|(name, value)| field(value, map.get(name), inner.get(name), &at.field(name), records)),
        _ => None,
    }
}

/// What we own and `wanted` does not hold.
fn leftovers(wanted: &Value, owned: Fields<'_>, at: &Path) -> Option<Difference> {
    for (name, inner) in owned.names() {
        let at = at.field(name);
        match wanted.get(name) {
            None => return Some(Difference::Leftover(at)),
            Some(value) => {
                if let Some(found) = leftovers(value, inner, &at) {
                    return Some(found);
                }
            }
        }
    }
    for (key, element, inner) in owned.elements() {
        let at = at.below(key.to_owned());
        let entries = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(value) = entries.iter().find(|entry| element.is(entry)) else {
            return Some(Difference::Leftover(at));
        };
        if let Some(found) = leftovers(value, inner, &at) {
            return Some(found);
        }
    }
    None
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Equal as the server sees it: quantities by their amount, numbers by their value, absent and empty alike inside one value.
fn is_same(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted
                .iter()
                .all(|(key, value)| live.get(key).map_or(is_empty(value), |live| is_same(value, live)))
                && live
                    .iter()
                    .all(|(key, value)| wanted.contains_key(key) || is_empty(value))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| is_same(wanted, live))
        }
        (Value::Number(wanted), Value::Number(live)) => wanted == live || wanted.as_f64() == live.as_f64(),
        (Value::String(wanted), Value::String(live)) => wanted == live || quantity::is_same(wanted, live),
        (Value::Number(wanted), Value::String(live)) => quantity::is_same(&wanted.to_string(), live),
        _ => wanted == live,
    }
}

#[cfg(test)]
mod tests;
