//! Conversion of values to text within the limits of a run.

use mainstay_template::{
    CONTAINER_BYTES, ENTRY_BYTES, Failure, LimitExceeded, ListType, Meter, Str, Value, ensure_stack, format,
    print_value,
};

/// A text buffer that enforces the string limit of the run.
pub(crate) struct LimitedBuffer<'a> {
    meter: &'a mut Meter,
    out: Vec<u8>,
}

impl<'a> LimitedBuffer<'a> {
    pub(crate) fn new(meter: &'a mut Meter) -> Self {
        Self {
            meter,
            out: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), LimitExceeded> {
        if bytes.len() > self.meter.limits().string.saturating_sub(self.out.len()) {
            return Err(LimitExceeded::String);
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Value, Failure> {
        self.meter.reserve_string(self.out.len())?;
        Ok(Value::string(self.out))
    }
}

/// Checks the available memory and consumes fuel for a list of `count` items before it is created.
pub(crate) fn charge_items(meter: &mut Meter, count: usize) -> Result<(), LimitExceeded> {
    charge(meter, count, size_of::<Value>())
}

/// Checks the available memory and consumes fuel for a map of `count` entries before it is created.
pub(crate) fn charge_entries(meter: &mut Meter, count: usize) -> Result<(), LimitExceeded> {
    // The first node of a tree has capacity for several entries.
    charge(meter, count.saturating_add(4), ENTRY_BYTES)
}

fn charge(meter: &mut Meter, count: usize, each: usize) -> Result<(), LimitExceeded> {
    meter.allocate(count.saturating_mul(each).saturating_add(CONTAINER_BYTES))?;
    meter.consume_fuel(count as u64)
}

/// Runs one level of a recursion over values. Enforces the depth limit.
pub(crate) fn run_nested<T, E: From<LimitExceeded>>(
    meter: &mut Meter,
    step: impl FnOnce(&mut Meter) -> Result<T, E>,
) -> Result<T, E> {
    meter.enter()?;
    let result = ensure_stack(|| step(meter));
    meter.leave();
    result
}

/// Formats a value as Sprig's `toString` does: as `%v`, except that bytes are treated as text.
pub(crate) fn display(meter: &mut Meter, value: &Value) -> Result<Str, Failure> {
    match value {
        Value::List(list) if list.ty() == ListType::Bytes => Ok(list.to_bytes().into()),
        other => Ok(print_value(other, meter)?),
    }
}

/// Formats a string as `%q` does.
pub(crate) fn format_quoted(meter: &mut Meter, text: &Str) -> Result<Str, Failure> {
    Ok(format(b"%q", &[Value::String(text.clone())], meter)?)
}
