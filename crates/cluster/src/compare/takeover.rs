//! Compares the content of objects that other installers applied with the desired objects, regardless of
//! field ownership. A field that an installer recorded and that is no longer desired is a difference.

use serde_json::Value;

use super::fields::Fields;
use super::path::PathRef;
use super::records::Records;
use super::same::{is_empty, is_same};
use super::{Difference, defaults};

/// Returns the first field of `wanted` that differs in `live`.
pub(crate) fn takeover(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    compare_fields(wanted, live, PathRef::root(wanted), records)
}

fn compare_fields(
    wanted: &Value,
    live: &Value,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    wanted
        .as_object()?
        .iter()
        .filter(|(name, _)| !at.is_identity(name))
        .find_map(|(name, value)| compare_field(value, live.get(name), at.field(name), records))
}

fn compare_field(
    wanted: &Value,
    live: Option<&Value>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    if is_empty(wanted) && (live.is_none_or(is_empty) || records.is_shared(at)) {
        return None;
    }
    // The server does not store empty strings. It may store other empty values, and then absent has
    // another meaning.
    if live.is_none() && wanted.as_str() == Some("") {
        return None;
    }
    let Some(live) = live else {
        return records.difference_at(Difference::Missing, at);
    };
    match (wanted, live) {
        (Value::Object(_), Value::Object(_)) if at.is_metadata() || records.is_shared(at) => {
            compare_fields(wanted, live, at, records)
        }
        (Value::Array(wanted), Value::Array(list)) if records.is_shared(at) => wanted
            .iter()
            .find_map(|value| compare_entry(value, list, at, records)),
        _ if is_same(wanted, live, at) => None,
        _ => records.difference_at(Difference::Changed, at),
    }
}

/// Compares one element of a keyed list or set, using the record of any manager.
fn compare_entry(
    wanted: &Value,
    list: &[Value],
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let recorded = records.records_at(at).find_map(|fields| {
        let (key, element, _) = fields
            .elements()
            .find(|(_, element, _)| element.matches(wanted))?;
        Some((key, element))
    });
    let found =
        recorded.and_then(|(key, element)| Some((key, list.iter().rfind(|live| element.matches(live))?)));
    match found {
        None => records.difference_at(Difference::Missing, at.entry(&format!("v:{wanted}"))),
        Some((key, live)) => compare_field(wanted, Some(live), at.entry(key), records),
    }
}

/// Returns the first field that a previous installer recorded, that is no longer desired, and that is not a
/// server default.
pub(crate) fn legacy_leftover(wanted: &Value, live: &Value, records: &Records<'_>) -> Option<Difference> {
    find_leftover(
        Some(wanted),
        live,
        records.legacy_record()?,
        PathRef::root(wanted),
        records,
    )
}

fn find_leftover(
    wanted: Option<&Value>,
    live: &Value,
    recorded: Fields<'_>,
    at: PathRef<'_>,
    records: &Records<'_>,
) -> Option<Difference> {
    let field_leftover = recorded.names().find_map(|(name, inner)| {
        // A recorded field that does not exist need not be removed.
        let value = live.get(name)?;
        let at = at.field(name);
        let wanted = wanted.and_then(|wanted| wanted.get(name));
        if wanted.is_none() && (is_empty(value) || defaults::is_default(at, value, live)) {
            return None;
        }
        if wanted.is_none() && inner.is_leaf() {
            return records.difference_at(Difference::Leftover, at);
        }
        find_leftover(wanted, value, inner, at, records)
    });
    field_leftover.or_else(|| {
        recorded.elements().find_map(|(key, element, inner)| {
            let value = live.as_array()?.iter().rfind(|entry| element.matches(entry))?;
            let at = at.entry(key);
            let entries = wanted.and_then(Value::as_array)?;
            match entries.iter().rfind(|entry| element.matches(entry)) {
                None => records.difference_at(Difference::Leftover, at),
                wanted => find_leftover(wanted, value, inner, at, records),
            }
        })
    })
}
