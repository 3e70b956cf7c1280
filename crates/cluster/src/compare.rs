//! Finds the first difference that an apply would write, from the desired object, the live one and the field
//! manager. Pure.
//!
//! The object does not say whether a list is atomic, a set or keyed. The server recorded it at the last
//! apply: our `managedFields` entry names elements by `k:{…}` and `v:…`, or ends at the list. So our record
//! serves as the schema, and also shows what was desired before and no longer is. Where we never applied,
//! other managers' records are used.

mod at;
mod defaults;
mod fields;
mod quantity;
mod records;
mod same;
mod takeover;

use std::fmt;

use serde_json::{Map, Value};

pub(crate) use records::Records;
pub(crate) use takeover::{legacy_leftover, takeover};

use at::At;
pub use at::Path;
use fields::Fields;
use same::{is_empty, is_same, is_zero};

/// Why a write is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The object does not exist.
    Absent,
    /// The object exists and must be deleted.
    Unwanted,
    /// Nothing was applied under our field manager yet.
    Unowned,
    /// A value differs from the desired one.
    Changed(Path),
    /// A desired field is missing, or not owned by us.
    Missing(Path),
    /// We own a field that is no longer desired.
    Leftover(Path),
}

impl Difference {
    /// A metric label: the kind of difference without its path.
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

    /// The path of the difference, if it has one.
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
            Self::Absent => write!(f, "not there"),
            Self::Unwanted => write!(f, "not wanted any more"),
            Self::Unowned => write!(f, "not applied by us yet"),
            Self::Changed(path) => write!(f, "{path} was changed"),
            Self::Missing(path) => write!(f, "{path} is missing"),
            Self::Leftover(path) => write!(f, "{path} is not wanted any more"),
        }
    }
}

/// Returns the first reason why applying `wanted` as `manager` would change `live`, or `None` if it would
/// not.
#[must_use]
pub fn difference(wanted: &Value, live: &Value, manager: &str) -> Option<Difference> {
    difference_in(wanted, live, &Records::parse(live, manager, &[]))
}

/// Maximum number of differences of one object.
const MOST_DIFFERENCES: usize = 100;

/// Returns every field of `wanted` that differs in `live`, regardless of its owner.
#[must_use]
pub fn content_differences(wanted: &Value, live: &Value) -> Vec<Difference> {
    let (mut places, mut found) = (Vec::new(), Vec::new());
    while places.len() < MOST_DIFFERENCES {
        let records = Records::parse(live, "", &[]).except(&places);
        let Some(difference) = takeover(wanted, live, &records) else {
            break;
        };
        let place = difference.path().cloned();
        found.push(difference);
        places.extend(place);
        if found.len() > places.len() {
            break;
        }
    }
    found
}

/// Like [`difference`], with parsed records.
pub(crate) fn difference_in(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    let Some(owned) = records.own() else {
        return Some(Difference::Unowned);
    };
    let root = At::root(wanted);
    let Value::Object(map) = wanted else { return None };
    fields(map, live, owned, root, records).or_else(|| leftovers(wanted, owned, root, records))
}

/// Compares every field of a map. Identity fields are skipped: the server never records them.
fn fields(
    wanted: &Map<String, Value>,
    live: &Value,
    owned: Fields<'_>,
    at: At<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    wanted
        .iter()
        .filter(|(name, _)| !at.is_identity(name))
        .find_map(|(name, value)| {
            let (live, owned, at) = (live.get(name), owned.get(name), at.field(name));
            match value {
                Value::Object(map) if at.is_metadata() => {
                    fields(map, live?, owned.unwrap_or_default(), at, records)
                }
                _ => field(value, live, owned, at, records),
            }
        })
}

fn field(
    wanted: &Value,
    live: Option<&Value>,
    owned: Option<Fields<'_>>,
    at: At<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    // An empty desired map or list is equal to absent, unless it is atomic, ours and was filled by another
    // writer.
    if is_empty(wanted) && (live.is_none_or(is_empty) || (owned.is_some() && records.is_shared(at))) {
        return None;
    }
    // A record of an absent field: the server drops empty values where empty and absent mean the same.
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
        return records.differ(what, at);
    };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(_)) if !owned.is_leaf() => {
            fields(wanted, live, owned, at, records)
        }
        (Value::Array(wanted), Value::Array(list)) if !owned.is_leaf() => wanted
            .iter()
            .find_map(|value| entry(value, list, owned, at, records)),
        _ if is_same(wanted, live, at) => None,
        _ => records.differ(Difference::Changed, at),
    }
}

/// Compares one element of a keyed list or set.
fn entry(
    wanted: &Value,
    list: &[Value],
    owned: Fields<'_>,
    at: At<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let Some((key, element, inner)) = owned.elements().find(|(_, element, _)| element.is(wanted)) else {
        return records.differ(Difference::Missing, at.entry(&format!("v:{wanted}")));
    };
    let at = at.entry(key);
    let Some(live) = list.iter().rfind(|live| element.is(live)) else {
        return records.differ(Difference::Missing, at);
    };
    match wanted {
        Value::Object(wanted) if !inner.is_leaf() => fields(wanted, live, inner, at, records),
        // An element that is owned as a whole, such as an owner reference.
        _ if is_same(wanted, live, at) => None,
        _ => records.differ(Difference::Changed, at),
    }
}

/// Finds fields that we own and that `wanted` lacks.
fn leftovers(wanted: &Value, owned: Fields<'_>, at: At<'_>, records: &Records<'_>) -> Option<Difference> {
    let of_fields = owned.names().find_map(|(name, inner)| {
        let at = at.field(name);
        match wanted.get(name) {
            None => records.differ(Difference::Leftover, at),
            Some(value) => leftovers(value, inner, at, records),
        }
    });
    let entries = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    let of_entries = || {
        owned.elements().find_map(|(key, element, inner)| {
            let at = at.entry(key);
            match entries.iter().rfind(|entry| element.is(entry)) {
                None => records.differ(Difference::Leftover, at),
                Some(value) => leftovers(value, inner, at, records),
            }
        })
    };
    of_fields.or_else(of_entries)
}

#[cfg(test)]
mod tests;
