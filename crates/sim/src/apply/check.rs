//! Validates an applied configuration against its type, with the error texts of `structured-merge-diff`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::types::{Form, List, MapOf, Ref, Rule, Scalar};
use crate::show;

/// Returns the validation errors of `value` as one text, or `None` if it is valid.
pub(super) fn validation_errors(kind: Ref<'_>, value: &Value) -> Option<String> {
    let mut errors = Vec::new();
    check_value(kind, value, &FieldPath::Root, &mut errors);
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("errors:\n  {}", several.join("\n  "))),
    }
}

/// Path of the current value. It is formatted only if there is an error.
enum FieldPath<'a> {
    Root,
    Field(&'a FieldPath<'a>, &'a str),
    Item(&'a FieldPath<'a>, &'a Element),
}

impl std::fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, element) => write!(f, "{parent}{element}"),
        }
    }
}

fn report_error(path: &FieldPath<'_>, text: &str, errors: &mut Vec<String>) {
    errors.push(match path {
        FieldPath::Root => text.to_owned(),
        path => format!("{path}: {text}"),
    });
}

fn check_value(kind: Ref<'_>, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<String>) {
    let atom = kind.resolve();
    match (atom.form(Some(value)), &atom.map, &atom.list) {
        _ if value.is_null() => {}
        (Form::Map, Some(map), _) => check_map(map, value, path, errors),
        (Form::List, _, Some(list)) => check_list(list, value, path, errors),
        (Form::Scalar, _, _) => {
            if let Some(text) = atom.scalar.and_then(|kind| check_scalar(kind, value)) {
                report_error(path, &text, errors);
            }
        }
        _ => {}
    }
}

fn check_scalar(kind: Scalar, value: &Value) -> Option<String> {
    match (kind, value) {
        (Scalar::Number, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Number, _) => Some(format!(
            "expected numeric (int or float), got {}",
            show::type_name(value)
        )),
        (Scalar::Text, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            show::syntax(value)
        )),
        (Scalar::Bool, _) => Some(format!("expected boolean, got &{{{}}}", show::plain(value))),
        (Scalar::Any, _) => Some(format!("expected any scalar, got &{{{}}}", show::plain(value))),
    }
}

fn check_map(map: &MapOf<'_>, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<String>) {
    let Value::Object(fields) = value else {
        let text = format!("expected map, got &{{{}}}", show::plain(value));
        report_error(path, &text, errors);
        return;
    };
    for (name, child) in fields {
        let path = FieldPath::Field(path, name);
        let kind = map.child_type(name);
        if kind.is_nothing() {
            report_error(&path, "field not declared in schema", errors);
            return;
        }
        check_value(kind, child, &path, errors);
    }
}

fn check_list(list: &List<'_>, value: &Value, path: &FieldPath<'_>, errors: &mut Vec<String>) {
    let Value::Array(items) = value else {
        let text = format!("expected list, got &{{{}}}", show::plain(value));
        report_error(path, &text, errors);
        return;
    };
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let element = match list.path_element(item) {
            _ if matches!(list.rule, Rule::Atomic) => Element::Index(i64::try_from(at).unwrap_or(i64::MAX)),
            Ok(element) => element,
            Err(text) => {
                report_error(path, &format!("element {at}: {text}"), errors);
                return;
            }
        };
        if seen.contains(&element) {
            report_error(path, &format!("duplicate entries for key {element}"), errors);
        }
        check_value(list.element, item, &FieldPath::Item(path, &element), errors);
        seen.insert(element);
    }
}
