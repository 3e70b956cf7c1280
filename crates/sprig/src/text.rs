//! Values as text, and text that grows within its limit.

use mainstay_template::{Exhausted, Failure, ListType, Meter, Str, Value, format, print_value};

/// Text under construction, bounded by the string limit of the run.
pub(crate) struct Growing<'a> {
    meter: &'a mut Meter,
    out: Vec<u8>,
}

impl<'a> Growing<'a> {
    pub(crate) fn new(meter: &'a mut Meter) -> Self {
        Self {
            meter,
            out: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        if bytes.len() > self.meter.limits().string.saturating_sub(self.out.len()) {
            return Err(Exhausted::String);
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Value, Failure> {
        self.meter.string(self.out.len())?;
        Ok(Value::string(self.out))
    }
}

/// Pays for a list of `count` items before it is made: a step each, and no more than a string of their size may have.
pub(crate) fn pay_for_items(meter: &mut Meter, count: usize) -> Result<(), Exhausted> {
    meter.string(count.saturating_mul(size_of::<Value>()))?;
    meter.burn(count as u64)
}

/// What `toString` makes of a value: `%v`, but that bytes are text already.
pub(crate) fn of(meter: &mut Meter, value: &Value) -> Result<Str, Failure> {
    match value {
        Value::List(list) if list.ty() == ListType::Bytes => {
            let byte = |item: &Value| match item {
                Value::Int(byte, _) => *byte as u8,
                Value::Uint(byte, ..) => *byte as u8,
                _ => 0,
            };
            Ok(list.items().iter().map(byte).collect::<Vec<u8>>().into())
        }
        other => Ok(print_value(other, meter)?),
    }
}

/// `%q` of a string.
pub(crate) fn quoted(meter: &mut Meter, text: &Str) -> Result<Str, Failure> {
    Ok(format(b"%q", &[Value::String(text.clone())], meter)?)
}
