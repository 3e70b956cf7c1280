//! Values as text, and text that grows within its limit.

use mainstay_template::{Exhausted, Failure, Meter, Str, Value};

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

/// What `toString` makes of a value.
pub(crate) fn of(meter: &mut Meter, value: &Value) -> Result<Str, Failure> {
    let _ = &meter;
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Nil => Str::from("<nil>"),
        Value::Bool(value) => Str::from(value.to_string()),
        Value::Int(value, _) => Str::from(value.to_string()),
        Value::Float(value) => Str::from(value.to_string()),
        _ => Str::default(),
    })
}

/// `%q`.
pub(crate) fn quoted(text: &[u8]) -> Vec<u8> {
    format!("{:?}", String::from_utf8_lossy(text)).into_bytes()
}
