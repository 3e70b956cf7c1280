//! `reflect.DeepEqual`.

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
    .values(a, b)
}

/// Depth from which compared pairs are recorded; at lower depths comparing twice is cheaper.
const REMEMBERED_DEPTH: usize = 8;

/// A comparison in progress.
struct Comparison<'a> {
    meter: &'a mut Meter,
    depth: usize,
    /// Pairs being compared. Like Go, a pair that occurs again counts as equal: a difference is found by the
    /// comparison in progress.
    seen: HashSet<(usize, usize)>,
}

impl Comparison<'_> {
    fn values(&mut self, a: &Value, b: &Value) -> Result<bool, LimitExceeded> {
        self.meter.consume_fuel(4)?;
        Ok(match (a, b) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a, kind), Value::Int(b, other)) => a == b && kind == other,
            (Value::Uint(a, kind), Value::Uint(b, other)) => a == b && kind == other,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Complex(a, c), Value::Complex(b, d)) => a == b && c == d,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::List(a), Value::List(b)) => self.lists(a, b)?,
            (Value::Map(a), Value::Map(b)) => self.maps(a, b)?,
            (Value::Object(a), Value::Object(b)) => {
                Rc::ptr_eq(a, b)
                    || a.type_name() == b.type_name()
                        && a.print() == b.print()
                        && self.deeper(|inner| inner.values(&a.plain(), &b.plain()))?
            }
            _ => false,
        })
    }

    fn lists(&mut self, a: &List, b: &List) -> Result<bool, LimitExceeded> {
        if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.items().len() != b.items().len() {
            return Ok(false);
        }
        if a.is_same(b) || self.is_known(a.address(), b.address()) {
            return Ok(true);
        }
        self.deeper(|inner| {
            let mut pairs = a.items().iter().zip(b.items());
            all(&mut pairs, |(a, b)| inner.values(a, b))
        })
    }

    fn maps(&mut self, a: &Map, b: &Map) -> Result<bool, LimitExceeded> {
        if a.ty() != b.ty() || a.is_nil() != b.is_nil() || a.entries().len() != b.entries().len() {
            return Ok(false);
        }
        if a.is_same(b) || self.is_known(a.address(), b.address()) {
            return Ok(true);
        }
        self.deeper(|inner| {
            let (a, b) = (a.entries(), b.entries());
            let mut pairs = a.iter().zip(b.iter());
            all(&mut pairs, |((key, a), (other, b))| {
                Ok(key == other && inner.values(a, b)?)
            })
        })
    }

    fn is_known(&mut self, a: usize, b: usize) -> bool {
        self.depth >= REMEMBERED_DEPTH && !self.seen.insert((a, b))
    }

    fn deeper(
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
fn all<T>(
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
