//! Times, durations, months and weekdays as template values, with the methods of Go's types.

use std::borrow::Cow;
use std::cmp::Ordering;

use mainstay_gostd::time::{HOUR, MINUTE, SECOND, format_duration, round_duration};
use mainstay_template::{Call, Failure, GoKind, Object, Signature, Str, Type, Value};

use super::format::{month, weekday};
use super::time::{Time, Zone};

pub(super) const TIME: Type = Type::Object("time.Time");
const LOCATION: Type = Type::Object("*time.Location");
const NONE: &[Type] = &[];

/// Parameters of type `time.Duration`. They accept any value, since Go's templates also convert literal
/// numbers.
const DURATION_ARGUMENT: &[Type] = &[Type::Any];

const TIME_METHODS: &[(&str, &[Type])] = &[
    ("Add", DURATION_ARGUMENT),
    ("AddDate", &[Type::Int, Type::Int, Type::Int]),
    ("After", &[TIME]),
    ("Before", &[TIME]),
    ("Compare", &[TIME]),
    ("Day", NONE),
    ("Equal", &[TIME]),
    ("Format", &[Type::String]),
    ("Hour", NONE),
    ("In", &[LOCATION]),
    ("IsDST", NONE),
    ("IsZero", NONE),
    ("Local", NONE),
    ("Location", NONE),
    ("Minute", NONE),
    ("Month", NONE),
    ("Nanosecond", NONE),
    ("Round", DURATION_ARGUMENT),
    ("Second", NONE),
    ("String", NONE),
    ("Sub", &[TIME]),
    ("Truncate", DURATION_ARGUMENT),
    ("UTC", NONE),
    ("Unix", NONE),
    ("UnixMicro", NONE),
    ("UnixMilli", NONE),
    ("UnixNano", NONE),
    ("Weekday", NONE),
    ("Year", NONE),
    ("YearDay", NONE),
];

fn signature(methods: &'static [(&str, &[Type])], name: &str) -> Option<Signature> {
    let (_, params) = methods.iter().find(|(method, _)| *method == name)?;
    Some(Signature {
        params,
        variadic: false,
    })
}

impl Object for Time {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("time.Time")
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Struct
    }

    fn method(&self, name: &str) -> Option<Signature> {
        signature(TIME_METHODS, name)
    }

    fn call(&self, name: &str, call: &mut Call<'_>) -> Result<Value, Failure> {
        self.calendar_field(name)
            .or_else(|| self.unix_time(name))
            .map_or_else(|| self.call_other(name, call), Ok)
    }

    fn print(&self) -> Str {
        self.text().into()
    }

    fn is_stringer(&self) -> bool {
        true
    }

    fn plain(&self) -> Value {
        Value::string(self.json())
    }
}

impl Time {
    fn calendar_field(&self, name: &str) -> Option<Value> {
        let civil = self.civil();
        let number = match name {
            "Year" => civil.year,
            "Day" => civil.day.into(),
            "Hour" => civil.hour.into(),
            "Minute" => civil.minute.into(),
            "Second" => civil.second.into(),
            "Nanosecond" => self.nanos.into(),
            "YearDay" => civil.year_day.into(),
            "Month" => {
                return Some(Value::object(NamedNumber {
                    type_name: "time.Month",
                    number: civil.month,
                }));
            }
            "Weekday" => {
                return Some(Value::object(NamedNumber {
                    type_name: "time.Weekday",
                    number: civil.weekday,
                }));
            }
            _ => return None,
        };
        Some(Value::int(number))
    }

    fn unix_time(&self, name: &str) -> Option<Value> {
        let per = match name {
            "Unix" => 1,
            "UnixMilli" => 1_000,
            "UnixMicro" => 1_000_000,
            "UnixNano" => 1_000_000_000,
            _ => return None,
        };
        let fraction = i64::from(self.nanos) / (1_000_000_000 / per);
        let fraction = if per == 1 { 0 } else { fraction };
        Some(Value::int64(
            self.seconds.wrapping_mul(per).wrapping_add(fraction),
        ))
    }

    fn call_other(&self, name: &str, call: &Call<'_>) -> Result<Value, Failure> {
        let shown_in = |zone: Zone| Value::object(Self { zone, ..self.clone() });
        Ok(match name {
            "String" => Value::string(self.text()),
            "Format" => Value::string(self.format(&call.str(0))),
            "IsZero" => self.is_zero().into(),
            "IsDST" => false.into(),
            "UTC" => shown_in(Zone::Utc),
            "Local" => shown_in(Zone::Local),
            "Location" => Value::object(Location(self.zone.clone())),
            "In" => match call.args.first().and_then(Value::native::<Location>) {
                Some(Location(zone)) => shown_in(zone.clone()),
                None => return Err(Failure::message("time: missing Location in call to Time.In")),
            },
            "Add" => Value::object(self.add(duration_argument(call)?)),
            "Round" => Value::object(self.truncate(duration_argument(call)?, true)),
            "Truncate" => Value::object(self.truncate(duration_argument(call)?, false)),
            "AddDate" => Value::object(self.add_date(call.int(0), call.int(1), call.int(2))),
            _ => return self.compare_with(name, call),
        })
    }

    fn compare_with(&self, name: &str, call: &Call<'_>) -> Result<Value, Failure> {
        let other = call.args.first().and_then(Value::native::<Self>);
        let other = other.ok_or_else(|| Failure::message("wrong type for value; expected time.Time"))?;
        let order = self.rank().cmp(&other.rank());
        Ok(match name {
            "Sub" => Value::object(Duration(self.since(other))),
            "Compare" => Value::int(order as i64),
            "Before" => (order == Ordering::Less).into(),
            "After" => (order == Ordering::Greater).into(),
            _ => (order == Ordering::Equal).into(),
        })
    }
}

fn duration_argument(call: &Call<'_>) -> Result<i64, Failure> {
    match call.args.first() {
        Some(Value::Int(nanos, _)) => Ok(*nanos),
        Some(other) => other
            .native::<Duration>()
            .map(|duration| duration.0)
            .ok_or_else(|| Failure::message("wrong type for value; expected time.Duration")),
        None => Ok(0),
    }
}

/// A `time.Duration` in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Duration(pub(super) i64);

const DURATION_METHODS: &[(&str, &[Type])] = &[
    ("Abs", NONE),
    ("Hours", NONE),
    ("Microseconds", NONE),
    ("Milliseconds", NONE),
    ("Minutes", NONE),
    ("Nanoseconds", NONE),
    ("Round", DURATION_ARGUMENT),
    ("Seconds", NONE),
    ("String", NONE),
    ("Truncate", DURATION_ARGUMENT),
];

impl Object for Duration {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("time.Duration")
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Number
    }

    fn method(&self, name: &str) -> Option<Signature> {
        signature(DURATION_METHODS, name)
    }

    fn call(&self, name: &str, call: &mut Call<'_>) -> Result<Value, Failure> {
        let nanos = self.0;
        let fraction = |unit: i64| Value::Float((nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64);
        Ok(match name {
            "Hours" => fraction(HOUR),
            "Minutes" => fraction(MINUTE),
            "Seconds" => fraction(SECOND),
            "Milliseconds" => Value::int64(nanos / 1_000_000),
            "Microseconds" => Value::int64(nanos / 1_000),
            "Nanoseconds" => Value::int64(nanos),
            "Abs" => Value::object(Self(nanos.saturating_abs())),
            "Round" => Value::object(Self(round_duration(nanos, duration_argument(call)?))),
            "Truncate" => match duration_argument(call)? {
                unit @ 1.. => Value::object(Self(nanos - nanos % unit)),
                _ => Value::object(*self),
            },
            _ => format_duration(nanos).into(),
        })
    }

    fn print(&self) -> Str {
        format_duration(self.0).into()
    }

    fn is_stringer(&self) -> bool {
        true
    }

    fn plain(&self) -> Value {
        Value::int64(self.0)
    }
}

/// A `time.Month` or a `time.Weekday`: a number that is printed as a name.
#[derive(Clone, Copy, Debug)]
struct NamedNumber {
    type_name: &'static str,
    number: u32,
}

impl Object for NamedNumber {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.type_name)
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Number
    }

    fn method(&self, name: &str) -> Option<Signature> {
        signature(&[("String", NONE)], name)
    }

    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Ok(Value::String(self.print()))
    }

    fn print(&self) -> Str {
        let name = if self.type_name == "time.Month" {
            month(self.number)
        } else {
            weekday(self.number)
        };
        name.into()
    }

    fn is_stringer(&self) -> bool {
        true
    }

    fn plain(&self) -> Value {
        Value::int(self.number.into())
    }
}

/// A `*time.Location`.
struct Location(Zone);

impl Object for Location {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("*time.Location")
    }

    fn go_kind(&self) -> GoKind {
        GoKind::Pointer
    }

    fn method(&self, name: &str) -> Option<Signature> {
        signature(&[("String", NONE)], name)
    }

    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Ok(Value::String(self.print()))
    }

    fn print(&self) -> Str {
        self.0.name().into()
    }

    fn is_stringer(&self) -> bool {
        true
    }

    fn plain(&self) -> Value {
        Value::map(std::collections::BTreeMap::new())
    }
}
