//! Deep copies, which share only immutable values with the original.

use mainstay_template::Type::Any;
use mainstay_template::{Call, Failure, Function, LimitExceeded, List, Map, Meter, Value};

use crate::table::fixed;
use crate::text::{charge_entries, charge_items, run_nested};

pub(super) const TABLE: &[Function] = &[
    fixed("deepCopy", &[Any], deep_copy),
    fixed("mustDeepCopy", &[Any], deep_copy),
];

fn deep_copy(call: &mut Call<'_>) -> Result<Value, Failure> {
    match call.arg(0) {
        Value::Nil => Err(Failure::message(
            "reflect: call of reflect.Value.Type on zero Value",
        )),
        value => Ok(copy(call.meter, &value)?),
    }
}

fn copy(meter: &mut Meter, value: &Value) -> Result<Value, LimitExceeded> {
    Ok(match value {
        Value::Map(map) if !map.is_nil() => Value::Map(run_nested(meter, |meter| copy_map(meter, map))?),
        Value::List(list) if !list.is_nil() => {
            Value::List(run_nested(meter, |meter| copy_list(meter, list))?)
        }
        other => other.clone(),
    })
}

fn copy_map(meter: &mut Meter, map: &Map) -> Result<Map, LimitExceeded> {
    charge_entries(meter, map.entries().len())?;
    let entries = map.entries();
    let copied = entries
        .iter()
        .map(|(key, value)| Ok((key.clone(), copy(meter, value)?)));
    Ok(Map::new(map.ty(), copied.collect::<Result<_, LimitExceeded>>()?))
}

fn copy_list(meter: &mut Meter, list: &List) -> Result<List, LimitExceeded> {
    charge_items(meter, list.items().len())?;
    let mut copied = Vec::with_capacity(list.items().len());
    for item in list.items() {
        copied.push(copy(meter, item)?);
    }
    Ok(List::new(list.ty(), copied))
}
