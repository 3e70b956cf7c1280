//! Functions that return parts of a list: `first`, `rest`, `last`, `initial` and `slice`.

use mainstay_template::Type::Any;
use mainstay_template::{Call, Failure, Function, List, ListType, Value};

use super::{list_arg, read_list};
use crate::cast::to_int;
use crate::table::{fixed, variadic};
use crate::text::charge_items;

pub(super) const TABLE: &[Function] = &[
    fixed("first", &[Any], first),
    fixed("mustFirst", &[Any], first),
    fixed("last", &[Any], last),
    fixed("mustLast", &[Any], last),
    fixed("rest", &[Any], rest),
    fixed("mustRest", &[Any], rest),
    fixed("initial", &[Any], initial),
    fixed("mustInitial", &[Any], initial),
    variadic("slice", &[Any, Any], slice),
    variadic("mustSlice", &[Any, Any], slice),
];

fn first(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(read_list(call, 0, "Cannot find first on type")?
        .items()
        .first()
        .cloned()
        .unwrap_or_default())
}

fn last(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(read_list(call, 0, "Cannot find last on type")?
        .items()
        .last()
        .cloned()
        .unwrap_or_default())
}

fn rest(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot find rest on type")?;
    Ok(copy_part(list.items().split_first().map(|(_, rest)| rest)))
}

fn initial(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = list_arg(call, 0, 0, "Cannot find initial on type")?;
    Ok(copy_part(list.items().split_last().map(|(_, rest)| rest)))
}

/// Copies a part of a list. Returns a nil slice for `None`.
fn copy_part(part: Option<&[Value]>) -> Value {
    part.map_or_else(
        || Value::List(List::nil(ListType::Any)),
        |part| Value::list(part.to_vec()),
    )
}

fn slice(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = read_list(call, 0, "list should be type of slice or array but")?;
    let len = list.items().len() as i64;
    if len == 0 {
        return Ok(Value::Nil);
    }
    let start = call.args.get(1).map_or(0, to_int);
    let end = call.args.get(2).map_or(len, to_int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let Some(part) = range.and_then(|(start, end)| list.items().get(start..end)) else {
        return Err(Failure::message("reflect.Value.Slice: slice index out of bounds"));
    };
    charge_items(call.meter, part.len())?;
    Ok(Value::List(List::new(list.ty(), part.to_vec())))
}
