//! Compares a desired object with the live one and returns the first difference that an apply would
//! write. Pure.
//!
//! The object does not show whether a list is atomic, a set or keyed, but our `managedFields` entry of
//! the last apply does: it contains elements as `k:{…}` or `v:…`, or ends at the list. So our entry
//! serves as the schema. It also shows which fields were desired before and no longer are. If we never
//! applied the object, the entries of other managers are used.

mod defaults;
mod fields;
mod path;
mod quantity;
mod records;
mod same;
mod takeover;

use std::fmt;

use serde_json::{Map, Value};

pub(crate) use records::Records;
pub(crate) use takeover::{legacy_leftover, takeover};

use fields::Fields;
pub use path::Path;
use path::PathRef;
use same::{is_empty, is_same, is_zero};

/// Reason why a write is necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The object does not exist.
    Absent,
    /// The object exists and is not desired.
    Unwanted,
    /// Our field manager has never applied the object.
    Unowned,
    /// A value differs from the desired one.
    Changed(Path),
    /// A desired field is missing, or we do not own it.
    Missing(Path),
    /// We own a field that is no longer desired.
    Leftover(Path),
}

impl Difference {
    /// Returns the name of the variant, used as a metric label.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Absent => "Absent",
            Self::Unwanted => "Unwanted",
            Self::Unowned => "Unowned",
            Self::Changed(_) => "Changed",
            Self::Missing(_) => "Missing",
            Self::Leftover(_) => "Leftover",
        }
    }

    /// Returns the path of the difference; `None` if it concerns the whole object.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Absent | Self::Unwanted | Self::Unowned => None,
            Self::Changed(path) | Self::Missing(path) | Self::Leftover(path) => Some(path),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "the object does not exist"),
            Self::Unwanted => write!(f, "the object is no longer desired"),
            Self::Unowned => write!(f, "the object was never applied by our field manager"),
            Self::Changed(path) => write!(f, "{path} was changed"),
            Self::Missing(path) => write!(f, "{path} is missing"),
            Self::Leftover(path) => write!(f, "{path} is no longer desired"),
        }
    }
}

/// Returns the first difference that applying `wanted` as `manager` would write to `live`, or `None` if
/// the apply would change nothing.
#[must_use]
pub fn difference(wanted: &Value, live: &Value, manager: &str) -> Option<Difference> {
    difference_in(wanted, live, &Records::parse(live, manager, &[]))
}

/// Maximum number of differences reported for one object.
const MAX_DIFFERENCES: usize = 100;

/// Returns every field of `wanted` that differs in `live`, regardless of its owner.
#[must_use]
pub fn content_differences(wanted: &Value, live: &Value) -> Vec<Difference> {
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    while paths.len() < MAX_DIFFERENCES {
        let records = Records::parse(live, "", &[]).excluding(&paths);
        let Some(difference) = takeover(wanted, live, &records) else {
            break;
        };
        let path = difference.path().cloned();
        found.push(difference);
        paths.extend(path);
        if found.len() > paths.len() {
            break;
        }
    }
    found
}

/// Returns the first difference, like [`difference`], for parsed records.
pub(crate) fn difference_in(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    let Some(owned) = records.own_record() else {
        return Some(Difference::Unowned);
    };
    let root = PathRef::root(wanted);
    let Value::Object(map) = wanted else { return None };
    compare_fields(map, live, owned, root, records).or_else(|| find_leftovers(wanted, owned, root, records))
}

/// Compares the fields of a map. Identity fields are skipped, because the server never records them.
fn compare_fields(
    wanted: &Map<String, Value>,
    live: &Value,
    owned: Fields<'_>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    wanted
        .iter()
        .filter(|(name, _)| !at.is_identity(name))
        .find_map(|(name, value)| {
            let (live, owned, at) = (live.get(name), owned.get(name), at.field(name));
            match value {
                Value::Object(map) if at.is_metadata() => {
                    compare_fields(map, live?, owned.unwrap_or_default(), at, records)
                }
                _ => compare_field(value, live, owned, at, records),
            }
        })
}

fn compare_field(
    wanted: &Value,
    live: Option<&Value>,
    owned: Option<Fields<'_>>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    // An empty desired map or list equals an absent or empty one. If another writer filled it, it is
    // still equal if we own it and it is not atomic.
    if is_empty(wanted) && (live.is_none_or(is_empty) || (owned.is_some() && records.is_shared(at))) {
        return None;
    }
    // We own a field that is absent: the server drops empty values if empty and absent have the same
    // meaning.
    if owned.is_some() && live.is_none() && is_zero(wanted) {
        return None;
    }
    let (Some(live), Some(owned)) = (live, owned) else {
        let is_changed = live.is_some_and(|live| !is_same(wanted, live, at));
        let what = if is_changed {
            Difference::Changed
        } else {
            Difference::Missing
        };
        return records.difference_at(what, at);
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(_)) if !owned.is_leaf() => {
            compare_fields(wanted, live, owned, at, records)
        }
        (Value::Array(wanted), Value::Array(list)) if !owned.is_leaf() => wanted
            .iter()
            .find_map(|value| compare_entry(value, list, owned, at, records)),
        _ if is_same(wanted, live, at) => None,
        _ => records.difference_at(Difference::Changed, at),
    }
}

/// Compares one element of a keyed list or set.
fn compare_entry(
    wanted: &Value,
    list: &[Value],
    owned: Fields<'_>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let Some((key, element, inner)) = owned.elements().find(|(_, element, _)| element.matches(wanted)) else {
        return records.difference_at(Difference::Missing, at.entry(&format!("v:{wanted}")));
    };
    let at = at.entry(key);
    let Some(live) = list.iter().rfind(|live| element.matches(live)) else {
        return records.difference_at(Difference::Missing, at);
    };
    match wanted {
        Value::Object(wanted) if !inner.is_leaf() => compare_fields(wanted, live, inner, at, records),
        // The element is owned as a whole, such as an owner reference.
        _ if is_same(wanted, live, at) => None,
        _ => records.difference_at(Difference::Changed, at),
    }
}

/// Finds fields that we own and that `wanted` lacks.
fn find_leftovers(
    wanted: &Value,
    owned: Fields<'_>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let field_leftover = owned.names().find_map(|(name, inner)| {
        let at = at.field(name);
        match wanted.get(name) {
            None => records.difference_at(Difference::Leftover, at),
            Some(value) => find_leftovers(value, inner, at, records),
        }
    });
    let entries = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    let entry_leftover = || {
        owned.elements().find_map(|(key, element, inner)| {
            let at = at.entry(key);
            match entries.iter().rfind(|entry| element.matches(entry)) {
                None => records.difference_at(Difference::Leftover, at),
                Some(value) => find_leftovers(value, inner, at, records),
            }
        })
    };
    field_leftover.or_else(entry_leftover)
}

#[cfg(test)]
mod tests;
