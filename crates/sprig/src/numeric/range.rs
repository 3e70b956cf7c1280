//! Sequences of integers. Their fuel is consumed before they are created.

use mainstay_template::Type::Int;
use mainstay_template::{Call, Failure, Function, LimitExceeded, List, ListType, Meter, Value};

use crate::table::{fixed, variadic};
use crate::text::{self, LimitedBuffer};

pub(super) const TABLE: &[Function] = &[
    fixed("until", &[Int], until),
    fixed("untilStep", &[Int, Int, Int], until_step),
    variadic("seq", &[Int], seq),
];

fn until(call: &mut Call<'_>) -> Result<Value, Failure> {
    let count = call.int(0);
    list(
        call.meter,
        Steps {
            start: 0,
            stop: count,
            step: if count < 0 { -1 } else { 1 },
        },
    )
}

fn until_step(call: &mut Call<'_>) -> Result<Value, Failure> {
    let steps = Steps {
        start: call.int(0),
        stop: call.int(1),
        step: call.int(2),
    };
    list(call.meter, steps)
}

fn list(meter: &mut Meter, steps: Steps) -> Result<Value, Failure> {
    steps.charge(meter)?;
    Ok(Value::List(List::new(
        ListType::Int,
        steps.values().map(Value::int).collect(),
    )))
}

fn seq(call: &mut Call<'_>) -> Result<Value, Failure> {
    let at = |index| call.int(index);
    let toward = |start, end| if end < start { -1 } else { 1 };
    let (start, step, end) = match call.args.len() {
        1 => (1, toward(1, at(0)), at(0)),
        2 => (at(0), toward(at(0), at(1)), at(1)),
        3 if at(2) < at(0) && at(1) > 0 => return Ok(Value::from("")),
        3 => (at(0), at(1), at(2)),
        _ => return Ok(Value::from("")),
    };
    let steps = Steps {
        start,
        stop: end.wrapping_add(toward(start, end)),
        step,
    };
    steps.charge(call.meter)?;
    let mut out = LimitedBuffer::new(call.meter);
    for (index, value) in steps.values().enumerate() {
        if index > 0 {
            out.push(b" ")?;
        }
        out.push(value.to_string().as_bytes())?;
    }
    out.finish()
}

/// Integers from `start` to `stop`, exclusive. The sequence is empty if `step` has the wrong sign.
#[derive(Clone, Copy)]
struct Steps {
    start: i64,
    stop: i64,
    step: i64,
}

impl Steps {
    fn charge(self, meter: &mut Meter) -> Result<(), LimitExceeded> {
        text::charge_items(meter, usize::try_from(self.count()).unwrap_or(usize::MAX))
    }

    fn count(self) -> u128 {
        let distance = i128::from(self.stop) - i128::from(self.start);
        if self.step == 0 || distance.signum() != i128::from(self.step).signum() {
            return 0;
        }
        distance
            .unsigned_abs()
            .div_ceil(u128::from(self.step.unsigned_abs()))
    }

    fn values(self) -> impl Iterator<Item = i64> {
        (0..self.count()).map(move |index| self.start.wrapping_add((index as i64).wrapping_mul(self.step)))
    }
}
