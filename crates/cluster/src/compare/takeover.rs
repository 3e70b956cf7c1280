//! Compares objects of other installers with the desired ones: returns the first difference in content.
//! Ownership of a field is not a difference here; a field that an installer recorded and that is no longer
//! desired is.

use serde_json::Value;

use super::at::At;
use super::fields::Fields;
use super::records::Records;
use super::same::{is_empty, is_same};
use super::{Difference, defaults};

/// Returns the first field of `wanted` that differs in `live`.
pub(crate) fn takeover(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    fields(wanted, live, At::root(wanted), records)
}

fn fields(wanted: &Value, live: &Value, at: At<'_>, records: &Records<'_>) -> Option<Difference> {
    wanted
        .as_object()?
        .iter()
        .filter(|(name, _)| !at.is_identity(name))
        .find_map(|(name, value)| field(value, live.get(name), at.field(name), records))
}

fn field(wanted: &Value, live: Option<&Value>, at: At<'_>, records: &Records<'_>) -> Option<Difference> {
    if is_empty(wanted) && (live.is_none_or(is_empty) || records.is_shared(at)) {
        return None;
    }
    // An empty string is not stored; other empty values may be, and then absent means something else.
    if live.is_none() && wanted.as_str() == Some("") {
        return None;
    }
    let Some(live) = live else {
        return records.differ(Difference::Missing, at);
    };
    match (wanted, live) {
        (Value::Object(_), Value::Object(_)) if at.is_metadata() || records.is_shared(at) => {
            fields(wanted, live, at, records)
        }
        (Value::Array(wanted), Value::Array(list)) if records.is_shared(at) => {
            wanted.iter().find_map(|value| entry(value, list, at, records))
        }
        _ if is_same(wanted, live, at) => None,
        _ => records.differ(Difference::Changed, at),
    }
}

/// Compares one element of a keyed list or set, as any manager recorded it.
fn entry(wanted: &Value, list: &[Value], at: At<'_>, records: &Records<'_>) -> Option<Difference> {
    let recorded = records.below(at).find_map(|fields| {
        let (key, element, _) = fields.elements().find(|(_, element, _)| element.is(wanted))?;
        Some((key, element))
    });
    let found = recorded.and_then(|(key, element)| Some((key, list.iter().rfind(|live| element.is(live))?)));
    match found {
        None => records.differ(Difference::Missing, at.entry(&format!("v:{wanted}"))),
        Some((key, live)) => field(wanted, Some(live), at.entry(key), records),
    }
}

/// Returns the first field that a previous installer recorded, that is no longer desired, and that is not a
/// server default.
pub(crate) fn legacy_leftover(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    leftover(Some(wanted), live, records.before()?, At::root(wanted), records)
}

fn leftover(
    wanted: Option<&Value>,
    live: &Value,
    recorded: Fields<'_>,
    at: At<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let of_fields = recorded.names().find_map(|(name, inner)| {
        // A recorded field that no longer exists does not need to be removed.
        let value = live.get(name)?;
        let at = at.field(name);
        let wanted = wanted.and_then(|wanted| wanted.get(name));
        if wanted.is_none() && (is_empty(value) || defaults::is_default(at, value, live)) {
            return None;
        }
        if wanted.is_none() && inner.is_leaf() {
            return records.differ(Difference::Leftover, at);
        }
        leftover(wanted, value, inner, at, records)
    });
    of_fields.or_else(|| {
        recorded.elements().find_map(|(key, element, inner)| {
            let value = live.as_array()?.iter().rfind(|entry| element.is(entry))?;
            let at = at.entry(key);
            let entries = wanted.and_then(Value::as_array)?;
            match entries.iter().rfind(|entry| element.is(entry)) {
                None => records.differ(Difference::Leftover, at),
                wanted => leftover(wanted, value, inner, at, records),
            }
        })
    })
}
