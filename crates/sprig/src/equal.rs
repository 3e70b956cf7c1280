//! Deep comparison as in `reflect.DeepEqual`.

use std::collections::HashSet;
use std::rc::Rc;

use mainstay_template::{LimitExceeded, List, Map, Meter, Value, ensure_stack};

/// Whether `a` and `b` are deeply equal. Numbers of different types are never equal.
pub(crate) fn is_equal(meter: &mut Meter, a: &Value, b: &Value) -> Result<bool, LimitExceeded> {
    Comparison {
        meter,
        depth: 0,
        seen: HashSet::new(),
    }
    .compare_values(a, b)
}

/// Depth at which the recording of compared pairs starts. At lower depths, comparing a pair twice is
/// cheaper.
const PAIR_RECORDING_DEPTH: usize = 8;

/// A comparison in progress.
struct Comparison<'a> {
    meter: &'a mut Meter,
    depth: usize,
    /// Recorded pairs. As in Go, a pair that occurs again is treated as equal: the first comparison of the
    /// pair finds any difference.
    seen: HashSet<(usize, usize)>,
}

impl Comparison<'_> {
    fn compare_values(&mut self, a: &Value, b: &Value) -> Result<bool, LimitExceeded> {
        self.meter.consume_fuel(4)?;
        Ok(match (a, b) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a, kind), Value::Int(b, other)) => a == b && kind == other,
            (Value::Uint(a, kind), Value::Uint(b, other)) => a == b && kind == other,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Complex(a, c), Value::Complex(b, d)) => a == b && c == d,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::List(a), Value::List(b)) => self.compare_lists(a, b)?,
            (Value::Map(a), Value::Map(b)) => self.compare_maps(a, b)?,
            (Value::Object(a), Value::Object(b)) => {
                Rc::ptr_eq(a, b)
                    || a.type_name() == b.type_name()
                        && a.print() == b.print()
                        && self.compare_nested(|inner| inner.compare_values(&a.plain(), &b.plain()))?
            }
            _ => false,
        })
    }

    fn compare_lists(&mut self, a: &List, b: &List) -> Result<bool, LimitExceeded> {
        if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.items().len() != b.items().len() {
            return Ok(false);
        }
        if a.is_same(b) || self.is_known(a.address(), b.address()) {
            return Ok(true);
        }
        self.compare_nested(|inner| {
            let mut pairs = a.items().iter().zip(b.items());
            all_true(&mut pairs, |(a, b)| inner.compare_values(a, b))
        })
    }

    fn compare_maps(&mut self, a: &Map, b: &Map) -> Result<bool, LimitExceeded> {
        if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.entries().len() != b.entries().len() {
            return Ok(false);
        }
        if a.is_same(b) || self.is_known(a.address(), b.address()) {
            return Ok(true);
        }
        self.compare_nested(|inner| {
            let (a, b) = (a.entries(), b.entries());
            let mut pairs = a.iter().zip(b.iter());
            all_true(&mut pairs, |((key, a), (other, b))| {
                Ok(key == other && inner.compare_values(a, b)?)
            })
        })
    }

    fn is_known(&mut self, a: usize, b: usize) -> bool {
        self.depth >= PAIR_RECORDING_DEPTH && !self.seen.insert((a, b))
    }

    fn compare_nested(
        &mut self,
        compare: impl FnOnce(&mut Self) -> Result<bool, LimitExceeded>,
    ) -> Result<bool, LimitExceeded> {
        self.meter.enter()?;
        self.depth += 1;
        let equal = ensure_stack(|| compare(self));
        self.depth -= 1;
        self.meter.leave();
        equal
    }
}

/// Whether `test` returns true for every item.
fn all_true<T>(
    items: &mut impl Iterator<Item = T>,
    mut test: impl FnMut(T) -> Result<bool, LimitExceeded>,
) -> Result<bool, LimitExceeded> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}
