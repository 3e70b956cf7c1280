//! Functions. Core functions are implemented here, the Kubernetes libraries by `kube-cel`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::{KubeCelExt, cel};
use regex::Regex;

use cel::common::ast::{CallExpr, Expr as LibraryExpr, IdedExpr};

use super::ast::{Expr, Kind};
use super::eval::{Failure, NO_OVERLOAD, Outcome, evaluate_comparison};
use super::number;
use super::value::Val;
use crate::crd::pattern;

/// Compiled patterns of the calls of `matches` with a literal pattern.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Regex>);

impl Patterns {
    pub(super) fn new(expr: &Expr) -> Self {
        let mut all = Self::default();
        all.add_from(expr);
        all
    }

    fn add_from(&mut self, expr: &Expr) {
        if let Kind::Call(name, _, arguments) = &expr.kind
            && name == "matches"
            && let Some(Kind::Text(text)) = arguments.last().map(|last| &last.kind)
            && let Ok(regex) = pattern::compile(text)
        {
            self.0.insert(text.clone(), regex);
        }
        for child in expr.children() {
            self.add_from(child);
        }
    }

    fn matches(&self, text: &str, expression: &str) -> Result<bool, Failure> {
        if let Some(regex) = self.0.get(expression) {
            return Ok(regex.is_match(text));
        }
        match pattern::compile(expression) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(error) => Failure::error(error.to_string()),
        }
    }
}

/// Names of types that expressions can refer to.
const TYPE_NAMES: [&str; 11] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "type",
    "null_type",
    "optional_type",
];

/// Returns the name if it is the name of a type.
pub(super) fn type_name(name: &str) -> Option<&'static str> {
    TYPE_NAMES.into_iter().find(|known| *known == name)
}

/// Returns whether `namespace.name` is a library function.
pub(super) fn is_namespace(namespace: &str, name: &str) -> bool {
    super::overloads::is_function(&format!("{namespace}.{name}"))
}

/// Calls a function with a namespace, such as `optional.of`.
pub(super) fn call_qualified<'a>(namespace: &str, name: &str, mut values: Vec<Val<'a>>) -> Outcome<'a> {
    match (namespace, name, values.len()) {
        ("optional", "none", 0) => Ok(Val::Optional(None)),
        ("optional", "of", 1) => Ok(Val::Optional(values.pop().map(Rc::new))),
        ("optional", "ofNonZeroValue", 1) => {
            let value = values.pop().unwrap_or(Val::Null);
            let zero = match &value {
                Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) => true,
                Val::Double(number) => *number == 0.0,
                other => other.len() == Some(0),
            };
            Ok(Val::Optional((!zero).then(|| Rc::new(value))))
        }
        _ => call_library(name, Some(namespace), false, values),
    }
}

/// Calls a function of `kube-cel` by its name, which may have a namespace.
pub(super) fn call_by_name<'a>(name: &str, values: Vec<Val<'a>>) -> Outcome<'a> {
    match name.split_once('.') {
        Some((namespace, name)) => call_library(name, Some(namespace), false, values),
        None => call_library(name, None, false, values),
    }
}

/// Calls a function or operator.
pub(super) fn call_function<'a>(
    name: &str,
    member: bool,
    values: Vec<Val<'a>>,
    patterns: &Patterns,
) -> Outcome<'a> {
    let core = match (name, values.as_slice()) {
        ("_==_", [a, b]) => Some(Ok(Val::Bool(a.equals(b)))),
        ("_!=_", [a, b]) => Some(Ok(Val::Bool(!a.equals(b)))),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
            evaluate_comparison(name, a, b).map(|flag| Ok(Val::Bool(flag)))
        }
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [a, b]) => apply_operator(name, a, b),
        ("!_", [Val::Bool(flag)]) => Some(Ok(Val::Bool(!flag))),
        ("-_", [Val::Int(number)]) => Some(match number.checked_neg() {
            Some(number) => Ok(Val::Int(number)),
            None => Failure::error("integer overflow"),
        }),
        ("-_", [Val::Double(number)]) => Some(Ok(Val::Double(-number))),
        ("@in", [item, container]) => is_in(item, container),
        ("_[_]", [operand, index]) => Some(element_at(operand, index)),
        ("_[?_]", [operand, index]) => Some(optional_element_at(operand, index)),
        ("size", [operand]) => operand.len().map(|len| Ok(Val::Int(len as i64))),
        ("matches", [Val::Text(text), Val::Text(expression)]) => {
            Some(patterns.matches(text, expression).map(Val::Bool))
        }
        ("contains", [Val::Text(text), Val::Text(part)]) => Some(Ok(Val::Bool(text.contains(part.as_ref())))),
        ("startsWith", [Val::Text(text), Val::Text(part)]) => {
            Some(Ok(Val::Bool(text.starts_with(part.as_ref()))))
        }
        ("endsWith", [Val::Text(text), Val::Text(part)]) => {
            Some(Ok(Val::Bool(text.ends_with(part.as_ref()))))
        }
        ("dyn", [value]) => Some(Ok(value.clone())),
        ("type", [value]) => Some(Ok(Val::Type(value.type_name()))),
        ("first" | "last", [list]) if member => list.items().map(|mut items| {
            let item = if name == "last" {
                items.pop()
            } else {
                (!items.is_empty()).then(|| items.swap_remove(0))
            };
            Ok(Val::Optional(item.map(Rc::new)))
        }),
        ("hasValue" | "value" | "or" | "orValue", [Val::Optional(inner), rest @ ..]) => {
            call_optional_method(name, inner.as_ref(), rest)
        }
        ("int" | "uint" | "double" | "string" | "bool", [value]) if !member => convert_to(name, value),
        _ => None,
    };
    match core.or_else(|| super::url::call_function(name, &values)) {
        Some(outcome) => outcome,
        None if name.starts_with(['_', '@', '!', '-'])
            && !values.iter().any(|one| matches!(one, Val::Library(_))) =>
        {
            Failure::error(NO_OVERLOAD)
        }
        None => call_library(name, None, member, values),
    }
}

fn apply_operator<'a>(name: &str, a: &Val<'a>, b: &Val<'a>) -> Option<Outcome<'a>> {
    if let (Some(a), Some(b)) = (a.as_number(), b.as_number()) {
        return number::apply_operator(name, a, b)
            .map(|result| result.map_err(|detail| Failure::Error(detail.into())));
    }
    match (name, a, b) {
        ("_+_", Val::Text(a), Val::Text(b)) => Some(Ok(Val::text(format!("{a}{b}")))),
        ("_+_", Val::Bytes(a), Val::Bytes(b)) => Some(Ok(Val::Bytes([&**a, &**b].concat().into()))),
        ("_+_", a, b) => {
            let (mut all, more) = (a.items()?, b.items()?);
            // The concatenation of two sets is a set.
            let is_set =
                matches!(a, Val::Tree(_, Some(schema)) if schema.list == crate::crd::schema::List::Set);
            for item in more {
                if !is_set || !all.iter().any(|existing| existing.equals(&item)) {
                    all.push(item);
                }
            }
            Some(Ok(Val::List(Rc::new(all))))
        }
        _ => None,
    }
}

fn is_in<'a>(item: &Val<'a>, container: &Val<'a>) -> Option<Outcome<'a>> {
    if let Some(items) = container.items() {
        return Some(Ok(Val::Bool(items.iter().any(|one| one.equals(item)))));
    }
    match container {
        Val::Map(_) | Val::Tree(..) => Some(Ok(Val::Bool(container.entry(item).is_some()))),
        _ => None,
    }
}

fn element_at<'a>(operand: &Val<'a>, index: &Val<'a>) -> Outcome<'a> {
    if let Val::Optional(inner) = operand {
        return match inner {
            Some(inner) => optional_element_at(inner, index),
            None => Ok(Val::Optional(None)),
        };
    }
    if let Some(mut items) = operand.items() {
        let position = match index {
            Val::Int(at) => usize::try_from(*at).ok(),
            Val::Uint(at) => usize::try_from(*at).ok(),
            Val::Double(at) if at.fract() == 0.0 && *at >= 0.0 => Some(*at as usize),
            Val::Double(_) => None,
            _ => return Failure::error(NO_OVERLOAD),
        };
        return match position.filter(|position| *position < items.len()) {
            Some(position) => Ok(items.swap_remove(position)),
            None => Failure::error(format!("index out of bounds: {}", to_text(index))),
        };
    }
    match operand {
        Val::Map(_) | Val::Tree(..) => match operand.entry(index) {
            Some(value) => Ok(value),
            None => Failure::error(format!("no such key: {}", to_text(index))),
        },
        _ => Failure::error(NO_OVERLOAD),
    }
}

fn optional_element_at<'a>(operand: &Val<'a>, index: &Val<'a>) -> Outcome<'a> {
    match operand {
        Val::Optional(None) => Ok(Val::Optional(None)),
        Val::Optional(Some(inner)) => optional_element_at(inner, index),
        operand => match element_at(operand, index) {
            Ok(value) => Ok(Val::Optional(Some(Rc::new(value)))),
            Err(Failure::Error(detail)) if detail == NO_OVERLOAD => Failure::error(detail),
            Err(_) => Ok(Val::Optional(None)),
        },
    }
}

fn call_optional_method<'a>(
    name: &str,
    inner: Option<&Rc<Val<'a>>>,
    rest: &[Val<'a>],
) -> Option<Outcome<'a>> {
    Some(match (name, inner, rest) {
        ("hasValue", inner, []) => Ok(Val::Bool(inner.is_some())),
        ("value", Some(inner), []) | ("orValue", Some(inner), [_]) => Ok((**inner).clone()),
        ("value", None, []) => Failure::error("optional.none() dereference"),
        ("or", Some(_), [_]) => Ok(Val::Optional(inner.cloned())),
        ("or" | "orValue", None, [other]) => Ok(other.clone()),
        _ => return None,
    })
}

fn to_text(value: &Val<'_>) -> String {
    match value {
        Val::Text(text) => text.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Bool(flag) => flag.to_string(),
        Val::Double(number) => crate::show::float(*number),
        _ => String::new(),
    }
}

/// Converts a value to the type `name`.
fn convert_to<'a>(name: &str, value: &Val<'a>) -> Option<Outcome<'a>> {
    let invalid = || Failure::error(format!("type conversion error from 'string' to '{name}'"));
    Some(match (name, value) {
        ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::Text(_)) => Ok(value.clone()),
        ("int", Val::Uint(number)) => match i64::try_from(*number) {
            Ok(number) => Ok(Val::Int(number)),
            Err(_) => Failure::error("integer overflow"),
        },
        ("int", Val::Double(number)) => {
            if number.abs() < 9.223_372_036_854_775e18 {
                Ok(Val::Int(*number as i64))
            } else {
                Failure::error("integer overflow")
            }
        }
        ("int", Val::Text(text)) => match text.parse() {
            Ok(number) => Ok(Val::Int(number)),
            Err(_) => invalid(),
        },
        ("uint", Val::Int(number)) => match u64::try_from(*number) {
            Ok(number) => Ok(Val::Uint(number)),
            Err(_) => Failure::error("unsigned integer overflow"),
        },
        ("uint", Val::Text(text)) => match text.parse() {
            Ok(number) => Ok(Val::Uint(number)),
            Err(_) => invalid(),
        },
        ("double", Val::Int(number)) => Ok(Val::Double(*number as f64)),
        ("double", Val::Uint(number)) => Ok(Val::Double(*number as f64)),
        ("double", Val::Text(text)) => match text.parse() {
            Ok(number) => Ok(Val::Double(number)),
            Err(_) => invalid(),
        },
        ("string", Val::Int(_) | Val::Uint(_) | Val::Bool(_) | Val::Double(_)) => {
            Ok(Val::text(to_text(value)))
        }
        ("bool", Val::Bool(flag)) => Ok(Val::Bool(*flag)),
        ("bool", Val::Text(text)) => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => invalid(),
        },
        _ => return None,
    })
}

thread_local! {
    /// Functions of `kube-cel`. They are created once per thread, because this is expensive.
    static LIBRARY: cel::Context<'static> = cel::Context::default().with_all();
}

/// Calls a function of `kube-cel`. The arguments are passed as variables.
fn call_library<'a>(name: &str, namespace: Option<&str>, member: bool, values: Vec<Val<'a>>) -> Outcome<'a> {
    let mut library_values = Vec::with_capacity(values.len());
    for value in values {
        library_values.push(to_library(value)?);
    }
    let names: Vec<String> = (0..library_values.len()).map(|at| format!("a{at}")).collect();
    let ident = |name: &str| IdedExpr {
        id: 0,
        expr: LibraryExpr::Ident(name.to_owned()),
    };
    let mut arguments: Vec<IdedExpr> = names.iter().map(|name| ident(name)).collect();
    let target = match namespace {
        Some(namespace) => Some(Box::new(ident(namespace))),
        None if member && !arguments.is_empty() => Some(Box::new(arguments.remove(0))),
        None => None,
    };
    let call = IdedExpr {
        id: 0,
        expr: LibraryExpr::Call(CallExpr {
            func_name: name.to_owned(),
            target,
            args: arguments,
        }),
    };
    let result = LIBRARY.with(|library| {
        let mut scope = library.new_inner_scope();
        for (name, value) in names.into_iter().zip(library_values) {
            scope.add_variable_from_value(name, value);
        }
        scope.resolve(&call)
    });
    match result {
        Ok(value) => Ok(from_library(value)),
        Err(error) => Failure::error(error_text(error)),
    }
}

fn error_text(error: cel::ExecutionError) -> String {
    use cel::ExecutionError as Error;
    match error {
        Error::FunctionError { message, .. } => message,
        Error::NoSuchKey(key) => format!("no such key: {key}"),
        Error::DivisionByZero(_) => "division by zero".into(),
        Error::RemainderByZero(_) => "modulus by zero".into(),
        Error::Overflow(..) => "integer overflow".into(),
        _ => NO_OVERLOAD.into(),
    }
}

fn to_library(value: Val<'_>) -> Result<cel::Value, Failure> {
    if let Some(items) = value.items() {
        let items: Result<Vec<_>, _> = items.into_iter().map(to_library).collect();
        return Ok(cel::Value::List(Arc::new(items?)));
    }
    if let Some(entries) = value.entries() {
        let mut map = HashMap::with_capacity(entries.len());
        for (key, value) in entries {
            let key = match key {
                Val::Text(text) => cel::objects::Key::String(Arc::new(text.into_owned())),
                Val::Int(number) => cel::objects::Key::Int(number),
                Val::Uint(number) => cel::objects::Key::Uint(number),
                Val::Bool(flag) => cel::objects::Key::Bool(flag),
                _ => return Failure::error(NO_OVERLOAD),
            };
            map.insert(key, to_library(value)?);
        }
        return Ok(cel::Value::Map(cel::objects::Map { map: Arc::new(map) }));
    }
    Ok(match value {
        Val::Null => cel::Value::Null,
        Val::Bool(flag) => cel::Value::Bool(flag),
        Val::Int(number) => cel::Value::Int(number),
        Val::Uint(number) => cel::Value::UInt(number),
        Val::Double(number) => cel::Value::Float(number),
        Val::Text(text) => cel::Value::String(Arc::new(text.into_owned())),
        Val::Bytes(bytes) => cel::Value::Bytes(Arc::new(bytes.to_vec())),
        Val::Library(value) => value,
        Val::Type(name) => cel::Value::String(Arc::new(name.to_owned())),
        _ => return Failure::error(NO_OVERLOAD),
    })
}

fn from_library<'a>(value: cel::Value) -> Val<'a> {
    match value {
        cel::Value::Null => Val::Null,
        cel::Value::Bool(flag) => Val::Bool(flag),
        cel::Value::Int(number) => Val::Int(number),
        cel::Value::UInt(number) => Val::Uint(number),
        cel::Value::Float(number) => Val::Double(number),
        cel::Value::String(text) => Val::Text(Cow::Owned(text.to_string())),
        cel::Value::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
        cel::Value::List(items) => Val::List(Rc::new(items.iter().cloned().map(from_library).collect())),
        cel::Value::Map(map) => {
            let entry = |(key, value): (&cel::objects::Key, &cel::Value)| {
                let key = match key {
                    cel::objects::Key::String(text) => Val::Text(Cow::Owned(text.to_string())),
                    cel::objects::Key::Int(number) => Val::Int(*number),
                    cel::objects::Key::Uint(number) => Val::Uint(*number),
                    cel::objects::Key::Bool(flag) => Val::Bool(*flag),
                };
                (key, from_library(value.clone()))
            };
            let mut entries: Vec<(Val<'a>, Val<'a>)> = map.map.iter().map(entry).collect();
            // Sorted, because the maps of the library are unordered and the result must be deterministic.
            entries.sort_by_key(|(key, _)| to_text(key));
            Val::Map(Rc::new(entries))
        }
        other => Val::Library(other),
    }
}
