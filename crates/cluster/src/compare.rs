//! Whether an apply would change anything: takes the wanted object, the live one and our name as a field manager, gives the first
//! difference. Asks nobody.
//!
//! What a list is (one value, a set, or entries with keys) is not known from the object. But the server wrote it down when we applied
//! last: our entry in `managedFields` names entries by `k:{…}` and `v:…`, or ends at the list. So our own record is the schema,
//! and it also tells what we once wanted and no longer do. Where we never applied, the records of whoever did serve as well.

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
    /// It is not there.
    Absent,
    /// It is there, and should not be.
    Unwanted,
    /// We own nothing there yet: nobody has applied under our name.
    Unowned,
    /// A value is not what we want.
    Changed(Path),
    /// We want a field that is not there, or that we do not own.
    Missing(Path),
    /// We own a field that we do not want any more.
    Leftover(Path),
}

impl Difference {
    /// In one word, for counters: without the place, of which there are many.
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

    /// Where it is, if it is in one place.
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

/// The first reason why applying `wanted` as `manager` would change `live`; `None` when the server would leave it as it is.
#[must_use]
pub fn difference(wanted: &Value, live: &Value, manager: &str) -> Option<Difference> {
    difference_in(wanted, live, &Records::of(live, manager, &[]))
}

/// The same, by records that were read already.
pub(crate) fn difference_in(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    let Some(owned) = records.own() else {
        return Some(Difference::Unowned);
    };
    let root = At::root(wanted);
    let Value::Object(map) = wanted else { return None };
    fields(map, live, owned, root, records).or_else(|| leftovers(wanted, owned, root, records))
}

/// Every field of a map. Who and where an object is was settled when it was found; the server never records these.
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
    // Wanting an empty map or list is wanting nothing in it, unless it is ours as one and somebody filled it.
    if is_empty(wanted) && (live.is_none_or(is_empty) || (owned.is_some() && records.is_shared(at))) {
        return None;
    }
    // A record of what is not there: the server drops what is empty where empty and absent mean the same.
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

/// One entry of a list with keys, or of a set.
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
        // An entry that is owned as one, such as an owner.
        _ if is_same(wanted, live, at) => None,
        _ => records.differ(Difference::Changed, at),
    }
}

/// What we own and `wanted` does not hold.
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
