//! Functions for maps. Maps are changed in place, which is visible through all aliases. They are iterated
//! in the order of their keys, where Go's order is random.

mod copy;
mod dig;
mod merge;

use std::collections::BTreeMap;

use mainstay_template::Type::{Any, MapOfAny, String};
use mainstay_template::{Call, Failure, Function, Map, MapType, Str, Value};

use crate::table::{fixed, variadic};
use crate::text::{self, charge_entries, charge_items};

pub(crate) const TABLES: &[&[Function]] = &[TABLE, copy::TABLE, dig::TABLE, merge::TABLE];

const TABLE: &[Function] = &[
    variadic("dict", &[Any], dict),
    fixed("get", &[MapOfAny, String], get),
    fixed("set", &[MapOfAny, String, Any], set),
    fixed("unset", &[MapOfAny, String], unset),
    fixed("hasKey", &[MapOfAny, String], has_key),
    variadic("pluck", &[String, MapOfAny], pluck),
    variadic("keys", &[MapOfAny], keys),
    variadic("pick", &[MapOfAny, String], pick),
    variadic("omit", &[MapOfAny, String], omit),
    fixed("values", &[MapOfAny], values),
];

/// Returns argument `index` as a map. Nil is converted to a nil map.
fn map_arg(call: &Call<'_>, index: usize) -> Map {
    call.map(index).unwrap_or_else(|| Map::nil(MapType::Any))
}

/// Creates a map from alternating keys and values. If the last key has no value, its value is an empty
/// string.
fn dict(call: &mut Call<'_>) -> Result<Value, Failure> {
    charge_entries(call.meter, call.args.len().div_ceil(2))?;
    let mut entries = BTreeMap::new();
    for pair in call.args.chunks(2) {
        let [key, rest @ ..] = pair else { continue };
        let value = rest.first().cloned().unwrap_or_else(|| Value::from(""));
        entries.insert(text::display(call.meter, key)?, value);
    }
    Ok(Value::map(entries))
}

fn get(call: &mut Call<'_>) -> Result<Value, Failure> {
    let found = call.map(0).and_then(|map| map.get(&call.str(1)));
    Ok(found.unwrap_or_else(|| Value::from("")))
}

fn set(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = map_arg(call, 0);
    if map.is_nil() {
        return Err(Failure::message("assignment to entry in nil map"));
    }
    charge_entries(call.meter, 1)?;
    map.insert(call.str(1), call.arg(2));
    Ok(Value::Map(map))
}

fn unset(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = map_arg(call, 0);
    map.entries_mut().remove(call.str(1).as_bytes());
    Ok(Value::Map(map))
}

fn has_key(call: &mut Call<'_>) -> Result<Value, Failure> {
    let key = call.str(1);
    Ok(Value::from(
        call.map(0)
            .is_some_and(|map| map.entries().contains_key(key.as_bytes())),
    ))
}

fn pluck(call: &mut Call<'_>) -> Result<Value, Failure> {
    let key = call.str(0);
    charge_items(call.meter, call.args.len())?;
    let maps = (1..call.args.len()).filter_map(|index| call.map(index));
    Ok(Value::list(maps.filter_map(|map| map.get(&key)).collect()))
}

fn keys(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut keys: Vec<Str> = Vec::new();
    for index in 0..call.args.len() {
        let Some(map) = call.map(index) else { continue };
        charge_items(call.meter, keys.len() + map.entries().len())?;
        keys.extend(map.entries().keys().cloned());
    }
    Ok(Value::strings(keys))
}

fn pick(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = map_arg(call, 0);
    charge_entries(call.meter, call.args.len())?;
    let wanted = (1..call.args.len()).map(|index| call.str(index));
    Ok(Value::map(
        wanted
            .filter_map(|key| map.get(&key).map(|value| (key, value)))
            .collect(),
    ))
}

fn omit(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = map_arg(call, 0);
    charge_entries(call.meter, call.args.len() + map.entries().len())?;
    let mut entries = map.entries().clone();
    for index in 1..call.args.len() {
        entries.remove(call.str(index).as_bytes());
    }
    Ok(Value::map(entries))
}

fn values(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = map_arg(call, 0);
    charge_items(call.meter, map.entries().len())?;
    Ok(Value::list(map.entries().values().cloned().collect()))
}
