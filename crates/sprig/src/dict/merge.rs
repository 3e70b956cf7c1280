//! Merging of maps in place, as in Go's mergo package. Values that are missing in the destination are added
//! by reference, so that both maps share them.

use mainstay_template::Type::MapOfAny;
use mainstay_template::{Call, Failure, Function, GoKind, LimitExceeded, Map, MapType, Meter, Str, Value};

use super::map_arg;
use crate::defaults::is_empty;
use crate::table::variadic;
use crate::text::{charge_entries, run_nested};

pub(super) const TABLE: &[Function] = &[
    variadic("merge", &[MapOfAny, MapOfAny], merge),
    variadic("mustMerge", &[MapOfAny, MapOfAny], must_merge),
    variadic("mergeOverwrite", &[MapOfAny, MapOfAny], merge_overwrite),
    variadic("mustMergeOverwrite", &[MapOfAny, MapOfAny], must_merge_overwrite),
];

fn merge(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_errors(merge_arguments(call, false))
}

fn must_merge(call: &mut Call<'_>) -> Result<Value, Failure> {
    merge_arguments(call, false).map_err(Into::into)
}

fn merge_overwrite(call: &mut Call<'_>) -> Result<Value, Failure> {
    ignore_errors(merge_arguments(call, true))
}

fn must_merge_overwrite(call: &mut Call<'_>) -> Result<Value, Failure> {
    merge_arguments(call, true).map_err(Into::into)
}

/// Reason why a merge stopped.
enum MergeError {
    /// mergo returned an error, which is ignored by `merge`.
    TypesDiffer,
    /// mergo panicked, which is always an error.
    Failed(Failure),
}

impl From<Failure> for MergeError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<LimitExceeded> for MergeError {
    fn from(limit: LimitExceeded) -> Self {
        Self::Failed(limit.into())
    }
}

impl From<MergeError> for Failure {
    fn from(stop: MergeError) -> Self {
        match stop {
            MergeError::TypesDiffer => Self::message("src and dst must be of same type"),
            MergeError::Failed(failure) => failure,
        }
    }
}

fn ignore_errors(result: Result<Value, MergeError>) -> Result<Value, Failure> {
    match result {
        Err(MergeError::TypesDiffer) => Ok(Value::from("")),
        other => other.map_err(Into::into),
    }
}

fn merge_arguments(call: &mut Call<'_>, overwrite: bool) -> Result<Value, MergeError> {
    let mut into = map_arg(call, 0);
    for index in 1..call.args.len() {
        let from = map_arg(call, index);
        if into.is_nil() && !from.is_nil() {
            into = Map::new(MapType::Any, std::collections::BTreeMap::new());
        }
        merge_maps(call.meter, &into, &from, overwrite)?;
    }
    Ok(Value::Map(into))
}

fn merge_maps(meter: &mut Meter, into: &Map, from: &Map, overwrite: bool) -> Result<(), MergeError> {
    // All keys are read before the first value is merged: merging may change `from` if the maps share
    // parts.
    let keys: Vec<Str> = from.entries().keys().cloned().collect();
    run_nested(meter, |meter| {
        keys.into_iter()
            .try_for_each(|key| merge_entry(meter, into, from, key, overwrite))
    })
}

fn merge_entry(
    meter: &mut Meter,
    into: &Map,
    from: &Map,
    key: Str,
    overwrite: bool,
) -> Result<(), MergeError> {
    // Maps with shared parts are merged once for each path to them.
    meter.consume_fuel(32)?;
    let Some(new) = from.get(&key) else { return Ok(()) };
    let old = into.get(&key);
    if matches!(new, Value::Nil) {
        return if overwrite {
            insert_value(meter, into, from, key, new)
        } else {
            Ok(())
        };
    }
    if let Value::List(_) = &new {
        reject_list(into, old.as_ref(), &new)?;
    } else if is_reference(&new) {
        merge_nested(meter, old.as_ref(), &new, overwrite)?;
    }
    let both_maps = matches!((&old, &new), (Some(Value::Map(_)), Value::Map(_)));
    let kept = old.as_ref().is_some_and(|old| !is_mergo_empty(old));
    if kept && (both_maps || !overwrite) {
        return Ok(());
    }
    insert_value(meter, into, from, key, new)
}

/// Whether mergo merges the value like a map. Objects are structs or pointers, for which it does.
fn is_reference(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Object(_))
}

fn merge_nested(
    meter: &mut Meter,
    old: Option<&Value>,
    new: &Value,
    overwrite: bool,
) -> Result<(), MergeError> {
    match (old, new) {
        (Some(Value::Map(into)), Value::Map(from)) if !into.is_nil() => {
            merge_maps(meter, into, from, overwrite)
        }
        (Some(Value::Object(object)), Value::Map(_)) if object.go_kind() == GoKind::Pointer && !overwrite => {
            Err(MergeError::TypesDiffer)
        }
        _ => Ok(()),
    }
}

/// Fails if the destination is a map of strings, which cannot contain a list, even if the list would not be
/// stored.
fn reject_list(into: &Map, old: Option<&Value>, new: &Value) -> Result<(), MergeError> {
    if into.ty() != MapType::String {
        return Ok(());
    }
    Err(match old {
        Some(_) => Failure::message("reflect: call of reflect.Value.IsNil on string Value"),
        None => not_assignable(&new.type_name()),
    }
    .into())
}

fn insert_value(meter: &mut Meter, into: &Map, from: &Map, key: Str, value: Value) -> Result<(), MergeError> {
    if into.ty() == MapType::String && from.ty() != MapType::String {
        return Err(not_assignable("interface {}").into());
    }
    charge_entries(meter, 1)?;
    into.insert(key, value);
    Ok(())
}

fn not_assignable(found: &str) -> Failure {
    Failure::message(format!(
        "reflect.Value.SetMapIndex: value of type {found} is not assignable to type string"
    ))
}

/// Whether mergo treats a value as empty. This is as in Sprig, except that complex numbers are never empty.
fn is_mergo_empty(value: &Value) -> bool {
    !matches!(value, Value::Complex(..)) && is_empty(value)
}
