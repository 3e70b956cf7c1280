//! Conversions between strings, lists and maps of strings.

use std::collections::BTreeMap;

use mainstay_template::Type::{Any, Int, String};
use mainstay_template::{Call, Failure, Function, List, ListType, Map, MapType, Meter, Str, Value};

use crate::bytes;
use crate::table::fixed;
use crate::text::{self, LimitedBuffer};

pub(super) const TABLE: &[Function] = &[
    fixed("split", &[String, String], split),
    fixed("splitn", &[String, Int, String], splitn),
    fixed("splitList", &[String, String], split_list),
    fixed("join", &[String, Any], join),
    fixed("toStrings", &[Any], to_strings),
    fixed("sortAlpha", &[Any], sort_alpha),
];

fn split_list(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (separator, text) = (call.str(0), call.str(1));
    let parts = split_text(call.meter, &text, &separator, None)?;
    Ok(Value::strings(parts))
}

fn split(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (separator, text) = (call.str(0), call.str(1));
    Ok(numbered_map(&split_text(call.meter, &text, &separator, None)?))
}

fn splitn(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (separator, text) = (call.str(0), call.str(2));
    let limit = usize::try_from(call.int(1)).ok();
    Ok(numbered_map(&split_text(call.meter, &text, &separator, limit)?))
}

fn split_text<'a>(
    meter: &mut Meter,
    text: &'a [u8],
    separator: &[u8],
    limit: Option<usize>,
) -> Result<Vec<&'a [u8]>, Failure> {
    meter.reserve_string(text.len())?;
    // The parts are counted before they are stored, because each is a separate string.
    let count = bytes::count(text, separator).min(limit.unwrap_or(usize::MAX));
    text::charge_entries(meter, count)?;
    let parts = bytes::split(text, separator, limit);
    Ok(parts)
}

/// Returns the parts as a `map[string]string` with the keys `_0`, `_1`, ….
fn numbered_map(parts: &[&[u8]]) -> Value {
    let entry = |(index, part): (usize, &&[u8])| (Str::from(format!("_{index}")), Value::string(*part));
    let entries: BTreeMap<Str, Value> = parts.iter().enumerate().map(entry).collect();
    Value::Map(Map::new(MapType::String, entries))
}

fn join(call: &mut Call<'_>) -> Result<Value, Failure> {
    let separator = call.str(0);
    let list = string_list(call.meter, &call.arg(1))?;
    let mut out = LimitedBuffer::new(call.meter);
    for (index, item) in list.items().iter().enumerate() {
        if index > 0 {
            out.push(&separator)?;
        }
        if let Value::String(text) = item {
            out.push(text)?;
        }
    }
    out.finish()
}

fn to_strings(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::List(string_list(call.meter, &call.arg(0))?))
}

fn sort_alpha(call: &mut Call<'_>) -> Result<Value, Failure> {
    let value = call.arg(0);
    let list = match &value {
        Value::List(_) => string_list(call.meter, &value)?,
        other => List::new(
            ListType::String,
            vec![Value::String(text::display(call.meter, other)?)],
        ),
    };
    call.meter.consume_fuel(list.items().len() as u64)?;
    list.sort();
    Ok(Value::List(list))
}

/// Converts a value to a `[]string`. A `[]string` is returned unchanged. Nil items of other lists are
/// omitted, and their other items are converted to text.
fn string_list(meter: &mut Meter, value: &Value) -> Result<List, Failure> {
    let mut texts = Vec::new();
    match value {
        Value::List(list) if list.ty() == ListType::String => return Ok(list.clone()),
        Value::List(list) => {
            text::charge_items(meter, list.items().len())?;
            for item in list.items().iter().filter(|item| !matches!(item, Value::Nil)) {
                texts.push(Value::String(text::display(meter, item)?));
            }
        }
        Value::Nil => {}
        other => texts.push(Value::String(text::display(meter, other)?)),
    }
    Ok(List::new(ListType::String, texts))
}
