//! The functions `index` and `slice`.

use super::indirect_type;
use crate::function::Failure;
use crate::limit::Meter;
use crate::object::GoKind;
use crate::slot::{Representation, Slot};
use crate::string::Str;
use crate::value::{List, ListType, MapType, UintKind, Value};

/// Evaluates `index x 1 2 3`, which is `x[1][2][3]` in Go.
pub(super) fn index(item: &Slot, indexes: &[Slot], meter: &mut Meter) -> Result<Slot, Failure> {
    if matches!(item.value, Value::Nil) {
        return Err(Failure::message("index of untyped nil"));
    }
    let mut item = if indexes.is_empty() {
        item.clone().unwrap_interface()
    } else {
        item.clone()
    };
    for index in indexes {
        meter.consume_fuel(1)?;
        item = index_once(&item, &index.value)?;
    }
    Ok(item)
}

fn index_once(item: &Slot, index: &Value) -> Result<Slot, Failure> {
    match &item.value {
        Value::Nil => Err(Failure::message("index of nil pointer")),
        Value::String(text) => {
            let at = check_index(index, text.len())?;
            let byte = text
                .get(at)
                .ok_or_else(|| Failure::message("reflect: string index out of range"))?;
            Ok(Slot::concrete(Value::Uint(u64::from(*byte), UintKind::Uint8)))
        }
        Value::List(list) => {
            let at = check_index(index, list.items().len())?;
            let found = list
                .items()
                .get(at)
                .ok_or_else(|| Failure::message("reflect: slice index out of range"))?;
            Ok(element_slot(list.ty() == ListType::Any, found.clone()))
        }
        Value::Map(map) => {
            let key = map_key(index)?;
            let as_interface = map.ty() != MapType::String;
            let zero = || {
                if as_interface {
                    Value::Nil
                } else {
                    Value::String(Str::default())
                }
            };
            Ok(element_slot(as_interface, map.get(key).unwrap_or_else(zero)))
        }
        Value::Object(object) if object.go_kind() == GoKind::Map => {
            let key = map_key(index)?;
            Ok(Slot::result(
                object.field(&String::from_utf8_lossy(key)).unwrap_or_default(),
            ))
        }
        other => Err(Failure::Message(format!(
            "can't index item of type {}",
            indirect_type(other)
        ))),
    }
}

fn element_slot(as_interface: bool, value: Value) -> Slot {
    Slot {
        value,
        representation: if as_interface {
            Representation::Interface
        } else {
            Representation::Concrete
        },
    }
}

fn map_key(index: &Value) -> Result<&[u8], Failure> {
    match index {
        Value::String(key) => Ok(key),
        Value::Nil => Err(Failure::message("value is nil; should be of type string")),
        other => Err(Failure::Message(format!(
            "value has type {}; should be string",
            other.type_name()
        ))),
    }
}

/// Checks an index. The length of the value is also a valid index.
fn check_index(index: &Value, length: usize) -> Result<usize, Failure> {
    let number = match index {
        Value::Int(number, _) => *number,
        Value::Uint(number, _) => *number as i64,
        Value::Nil => return Err(Failure::message("cannot index slice/array with nil")),
        other => {
            return Err(Failure::Message(format!(
                "cannot index slice/array with type {}",
                other.type_name()
            )));
        }
    };
    usize::try_from(number)
        .ok()
        .filter(|&at| at <= length)
        .ok_or_else(|| Failure::Message(format!("index out of range: {number}")))
}

/// Evaluates `slice x 1 2`, which is `x[1:2]` in Go.
pub(super) fn slice(item: &Slot, indexes: &[Slot], meter: &mut Meter) -> Result<Slot, Failure> {
    if matches!(item.value, Value::Nil) {
        return Err(Failure::message("slice of untyped nil"));
    }
    if indexes.len() > 3 {
        return Err(Failure::Message(format!(
            "too many slice indexes: {}",
            indexes.len()
        )));
    }
    let length = match &item.value {
        Value::String(_) if indexes.len() == 3 => {
            return Err(Failure::message("cannot 3-index slice a string"));
        }
        Value::String(text) => text.len(),
        Value::List(list) => list.items().len(),
        other => {
            return Err(Failure::Message(format!(
                "can't slice item of type {}",
                indirect_type(other)
            )));
        }
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = check_bound(index, length)?;
    }
    let [start, end, capacity] = bounds;
    if start > end {
        return Err(Failure::Message(format!("invalid slice index: {start} > {end}")));
    }
    if end > capacity {
        return Err(Failure::Message(format!(
            "invalid slice index: {end} > {capacity}"
        )));
    }
    meter.consume_fuel((end - start) as u64 / 16)?;
    Ok(Slot::concrete(match &item.value {
        Value::String(text) => Value::string(text.get(start..end).unwrap_or_default()),
        Value::List(list) => Value::List(List::new(
            list.ty(),
            list.items().get(start..end).unwrap_or_default().to_vec(),
        )),
        _ => Value::Nil,
    }))
}

/// Checks a bound. Unlike `index`, `slice` rejects a value that is in an interface.
fn check_bound(index: &Slot, length: usize) -> Result<usize, Failure> {
    if index.representation == Representation::Interface {
        return Err(Failure::message(
            "cannot index slice/array with type interface {}",
        ));
    }
    check_index(&index.value, length)
}
