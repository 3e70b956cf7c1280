//! Go's built-in functions, on values as they are represented by reflection.

mod compare;
mod escape;
mod index;

pub(crate) use compare::quick_equal;

use crate::fmt;
use crate::function::{Failure, Type};
use crate::limit::Meter;
use crate::object::GoKind;
use crate::slot::{Representation, Slot};
use crate::string::Str;
use crate::value::Value;

/// A built-in function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Html,
    Index,
    Slice,
    Js,
    Len,
    Not,
    Or,
    Print,
    Printf,
    Println,
    UrlQuery,
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    Ne,
}

/// All built-in functions.
pub(crate) const ALL: [Builtin; 19] = [
    Builtin::And,
    Builtin::Call,
    Builtin::Html,
    Builtin::Index,
    Builtin::Slice,
    Builtin::Js,
    Builtin::Len,
    Builtin::Not,
    Builtin::Or,
    Builtin::Print,
    Builtin::Printf,
    Builtin::Println,
    Builtin::UrlQuery,
    Builtin::Eq,
    Builtin::Ge,
    Builtin::Gt,
    Builtin::Le,
    Builtin::Lt,
    Builtin::Ne,
];

impl Builtin {
    /// Returns the name in templates.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Call => "call",
            Self::Html => "html",
            Self::Index => "index",
            Self::Slice => "slice",
            Self::Js => "js",
            Self::Len => "len",
            Self::Not => "not",
            Self::Or => "or",
            Self::Print => "print",
            Self::Printf => "printf",
            Self::Println => "println",
            Self::UrlQuery => "urlquery",
            Self::Eq => "eq",
            Self::Ge => "ge",
            Self::Gt => "gt",
            Self::Le => "le",
            Self::Lt => "lt",
            Self::Ne => "ne",
        }
    }

    /// Returns the number of parameters without the variadic one, and whether there is a variadic one.
    pub(crate) fn arity(self) -> (usize, bool) {
        match self {
            Self::And | Self::Or | Self::Call | Self::Index | Self::Slice | Self::Printf | Self::Eq => {
                (1, true)
            }
            Self::Html | Self::Js | Self::UrlQuery | Self::Print | Self::Println => (0, true),
            Self::Len | Self::Not => (1, false),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, false),
        }
    }

    /// Whether the function builds text from plain values.
    pub(crate) fn is_text(self) -> bool {
        self.argument_type(0).is_some()
    }

    /// Returns the type of parameter `index`, or `None` for `reflect.Value`.
    pub(crate) fn argument_type(self, index: usize) -> Option<Type> {
        match self {
            Self::Printf if index == 0 => Some(Type::String),
            Self::Printf | Self::Html | Self::Js | Self::UrlQuery | Self::Print | Self::Println => {
                Some(Type::Any)
            }
            _ => None,
        }
    }
}

/// Runs a function of reflected values. `and`, `or` and `call` are not included, because they need the
/// argument expressions.
pub(crate) fn run(builtin: Builtin, args: &[Slot], meter: &mut Meter) -> Result<Slot, Failure> {
    let nothing = Slot::NO_VALUE;
    let first = args.first().unwrap_or(&nothing);
    let second = args.get(1).unwrap_or(&nothing);
    let rest = args.get(1..).unwrap_or_default();
    let truth = |value: bool| Ok(Slot::concrete(Value::Bool(value)));
    match builtin {
        Builtin::Not => truth(!first.value.is_true()),
        Builtin::Len => length(first),
        Builtin::Index => index::index(first, rest, meter),
        Builtin::Slice => index::slice(first, rest, meter),
        Builtin::Eq => truth(compare::equal_any(first, rest, meter)?),
        Builtin::Ne => truth(!compare::equal_any(first, rest, meter)?),
        Builtin::Lt => truth(compare::less(first, second)?),
        Builtin::Ge => truth(!compare::less(first, second)?),
        Builtin::Le => truth(compare::less_or_equal(first, second, meter)?),
        Builtin::Gt => truth(!compare::less_or_equal(first, second, meter)?),
        _ => Ok(nothing),
    }
}

/// Runs a function that builds text. `scratch` is a reusable buffer.
pub(crate) fn build_text(
    builtin: Builtin,
    values: &mut [Value],
    scratch: &mut Vec<u8>,
    meter: &mut Meter,
) -> Result<Str, Failure> {
    scratch.clear();
    match (builtin, &*values) {
        (Builtin::Print, _) => fmt::print_into(values, scratch, meter)?,
        (Builtin::Println, _) => fmt::print_line_into(values, scratch, meter)?,
        (Builtin::Printf, [Value::String(format), rest @ ..]) => {
            fmt::format_into(format, rest, scratch, meter)?;
        }
        _ => return escape_values(builtin, values, scratch, meter),
    }
    meter.reserve_string(scratch.len())?;
    Ok(Str::from(scratch.as_slice()))
}

/// Formats the arguments as a template prints them, including nil, and escapes the result.
fn escape_values(
    builtin: Builtin,
    values: &mut [Value],
    scratch: &mut Vec<u8>,
    meter: &mut Meter,
) -> Result<Str, Failure> {
    for value in values.iter_mut() {
        if matches!(value, Value::Nil) {
            *value = Value::from("<no value>");
        }
    }
    fmt::print_into(values, scratch, meter)?;
    let text = match builtin {
        Builtin::Html => escape::html(scratch),
        Builtin::Js => escape::js(scratch),
        _ => escape::url_query(scratch),
    };
    meter.reserve_string(text.len())?;
    Ok(text)
}

fn length(item: &Slot) -> Result<Slot, Failure> {
    let length = match &item.value {
        Value::String(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.entries().len(),
        Value::Object(object) if object.go_kind() == GoKind::Map => object.map_keys().len(),
        Value::Nil if item.representation == Representation::Interface => {
            return Err(Failure::message("len of nil pointer"));
        }
        Value::Nil => return Err(zero_value("Type")),
        other => return Err(Failure::message(format!("len of type {}", indirect_type(other)))),
    };
    Ok(Slot::concrete(Value::int(length as i64)))
}

/// Returns the name of the type that a pointer refers to, or of the value's own type.
fn indirect_type(value: &Value) -> String {
    let name = value.type_name();
    name.strip_prefix('*').unwrap_or(&name).to_string()
}

/// Creates the error for a panic of Go's reflection on a zero value.
fn zero_value(method: &str) -> Failure {
    Failure::Message(format!("reflect: call of reflect.Value.{method} on zero Value"))
}

/// Creates the error of the function `call`: no value of a template is a function.
pub(crate) fn call_error(name: Option<String>, callee: Option<&Slot>) -> Failure {
    let Some(callee) = callee.filter(|slot| !matches!(slot.value, Value::Nil)) else {
        return Failure::message("call of nil");
    };
    let type_name = callee.value.type_name();
    let name = name.unwrap_or_else(|| match &callee.value {
        Value::String(text) => text.to_str_lossy().into_owned(),
        _ => format!("<{type_name} Value>"),
    });
    Failure::Message(format!("non-function {name} of type {type_name}"))
}
