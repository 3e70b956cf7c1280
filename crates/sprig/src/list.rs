//! Functions for lists. Lists are never changed in place, and each item of a new list consumes fuel. A
//! function and its `must` variant are identical: in Go one panics and the other returns the error, which
//! templates print in the same way.

mod part;

use mainstay_template::Type::{Any, Int};
use mainstay_template::{Call, Failure, Function, List, ListType, Value};

use crate::defaults::is_empty;
use crate::equal::is_equal;
use crate::table::{fixed, variadic};
use crate::text::charge_items;

pub(crate) const TABLES: &[&[Function]] = &[TABLE, part::TABLE];

const TABLE: &[Function] = &[
    variadic("list", &[Any], list),
    variadic("tuple", &[Any], list),
    fixed("append", &[Any, Any], push),
    fixed("push", &[Any, Any], push),
    fixed("mustAppend", &[Any, Any], push),
    fixed("mustPush", &[Any, Any], push),
    fixed("prepend", &[Any, Any], prepend),
    fixed("mustPrepend", &[Any, Any], prepend),
    variadic("concat", &[Any], concat),
    fixed("reverse", &[Any], reverse),
    fixed("mustReverse", &[Any], reverse),
    fixed("compact", &[Any], compact),
    fixed("mustCompact", &[Any], compact),
    fixed("uniq", &[Any], uniq),
    fixed("mustUniq", &[Any], uniq),
    variadic("without", &[Any, Any], without),
    variadic("mustWithout", &[Any, Any], without),
    fixed("has", &[Any, Any], has),
    fixed("mustHas", &[Any, Any], has),
    fixed("chunk", &[Int, Any], chunk),
    fixed("mustChunk", &[Int, Any], chunk),
];

/// Go's message for an attempt to determine the type of nil.
const NIL: &str = "runtime error: invalid memory address or nil pointer dereference";

/// Returns argument `index` as a list for reading. `message` is the error's text before the kind of a value
/// that is not a list.
fn read_list(call: &Call<'_>, index: usize, message: &str) -> Result<List, Failure> {
    match call.args.get(index) {
        Some(Value::List(list)) => Ok(list.clone()),
        None | Some(Value::Nil) => Err(Failure::message(NIL)),
        Some(other) => Err(Failure::message(format!("{message} {}", other.kind_name()))),
    }
}

/// Returns argument `index` as a list for copying. Consumes fuel for its items and `more` additional items.
fn list_arg(call: &mut Call<'_>, index: usize, more: usize, message: &str) -> Result<List, Failure> {
    let list = read_list(call, index, message)?;
    charge_items(call.meter, list.items().len() + more)?;
    Ok(list)
}

fn list(call: &mut Call<'_>) -> Result<Value, Failure> {
    charge_items(call.meter, call.args.len())?;
    Ok(Value::list(call.args.to_vec()))
}

fn push(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 1, "Cannot push on type")?;
    let mut items = Vec::with_capacity(list.items().len() + 1);
    items.extend_from_slice(list.items());
    items.push(call.arg(1));
    Ok(Value::list(items))
}

fn prepend(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 1, "Cannot prepend on type")?;
    let mut items = Vec::with_capacity(list.items().len() + 1);
    items.push(call.arg(1));
    items.extend_from_slice(list.items());
    Ok(Value::list(items))
}

fn concat(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut items = Vec::new();
    for value in call.args {
        match value {
            Value::List(list) => {
                charge_items(call.meter, items.len() + list.items().len())?;
                items.extend_from_slice(list.items());
            }
            Value::Nil => return Err(Failure::message(NIL)),
            other => {
                return Err(Failure::message(format!(
                    "Cannot concat type {} as list",
                    other.kind_name()
                )));
            }
        }
    }
    Ok(if items.is_empty() {
        Value::List(List::nil(ListType::Any))
    } else {
        Value::list(items)
    })
}

fn reverse(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot find reverse on type")?;
    Ok(Value::list(list.items().iter().rev().cloned().collect()))
}

fn compact(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot compact on type")?;
    Ok(Value::list(
        list.items()
            .iter()
            .filter(|item| !is_empty(item))
            .cloned()
            .collect(),
    ))
}

fn uniq(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot find uniq on type")?;
    let mut kept = Vec::new();
    // Strings are the most common items and do not need pairwise comparison.
    let mut strings = std::collections::HashSet::new();
    for item in list.items() {
        let fresh = match item {
            Value::String(text) => strings.insert(text.clone()),
            other => !is_among(call, &kept, other)?,
        };
        if fresh {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn without(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot find without on type")?;
    let omitted = call.args.get(1..).unwrap_or_default();
    let mut kept = Vec::new();
    for item in list.items() {
        if !is_among(call, omitted, item)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn has(call: &mut Call<'_>) -> Result<Value, Failure> {
    if matches!(call.args.get(1), None | Some(Value::Nil)) {
        return Ok(Value::from(false));
    }
    let list = read_list(call, 1, "Cannot find has on type")?;
    let needle = call.arg(0);
    Ok(Value::from(is_among(call, list.items(), &needle)?))
}

fn is_among(call: &mut Call<'_>, items: &[Value], needle: &Value) -> Result<bool, Failure> {
    for item in items {
        if is_equal(call.meter, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Splits a list into chunks of the given size.
fn chunk(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 1, 0, "Cannot chunk type")?;
    let size = chunk_size(list.items().len(), call.int(0))?;
    let pieces = list.items().chunks(size).map(|piece| Value::list(piece.to_vec()));
    let pieces = if call.int(0) < 0 && list.items().len() > 1 {
        Vec::new()
    } else {
        pieces.collect()
    };
    Ok(Value::List(List::new(ListType::ListOfAny, pieces)))
}

/// Returns the chunk size. The result for sizes below one follows Go's arithmetic: it computes the number
/// of chunks first, which may be zero, one or negative, and panics if the length of a chunk is negative.
fn chunk_size(len: usize, size: i64) -> Result<usize, Failure> {
    let panics = match size {
        1.. => false,
        0 => true,
        _ if len == 0 => true,
        _ if len == 1 => size == -1,
        _ => len as u64 - 1 > size.unsigned_abs(),
    };
    if panics {
        return Err(Failure::message("runtime error: makeslice: len out of range"));
    }
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}
