//! Reports annotation values that are not strings, because Kubernetes accepts strings only, and values
//! without effect.

use mainstay_yaml::{Budget, Node, NodeKind, ScalarStyle, Value, parse};

use super::context::{AnnotationContext, Entry, finding_at, warning};
use crate::profile::{ANNOTATION_PREFIX, SKIP_INITIALIZER};
use crate::workload::place_from_span;
use crate::{Code, Finding, Severity, Skip};

/// Reports Contrast annotations with a wrong value.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let ours = |entry: &&Entry<'_>| entry.key.starts_with(ANNOTATION_PREFIX);
    let all = context.template.iter().chain(&context.object);
    all.filter(ours)
        .filter_map(|entry| check_type(entry).or_else(|| check_skip_value(entry, context)))
        .collect()
}

fn check_type(entry: &Entry<'_>) -> Option<Finding> {
    let (what, quotable) = non_string_type(entry.value)?;
    let message = format!("the value of {} is {what}, not a string", entry.key);
    let finding = match quotable {
        // The meaning is clear, and the API server rejects the value anyway.
        Some(text) => Finding {
            help: Some(format!("quote it: \"{text}\"")),
            ..warning(Code::AnnotationType, entry.value, message)
        },
        None => finding_at(
            Code::AnnotationType,
            Severity::Error,
            place_from_span(entry.value.span),
            message,
        ),
    };
    Some(finding)
}

/// Returns the type of a value that is not a string, and its text if quotes would turn it into a string. An
/// empty value is the empty string.
fn non_string_type<'a>(node: &'a Node<'_>) -> Option<(&'static str, Option<&'a str>)> {
    match &node.kind {
        NodeKind::List { .. } => Some(("a list", None)),
        NodeKind::Map { .. } => Some(("a map", None)),
        NodeKind::Scalar {
            text,
            style: ScalarStyle::Plain,
        } if node.tag.is_none() => scalar_type(text).map(|what| (what, Some(&**text))),
        _ => None,
    }
}

fn scalar_type(text: &str) -> Option<&'static str> {
    match parse(text, &Budget::default()) {
        Ok(Value::Bool(_)) => Some("a boolean"),
        Ok(Value::Int(_) | Value::Uint(_) | Value::Float(_)) => Some("a number"),
        _ => None,
    }
}

/// Reports a value of `skip-initializer` without effect in profiles in which only `true` opts out.
fn check_skip_value(entry: &Entry<'_>, context: &AnnotationContext<'_>) -> Option<Finding> {
    let NodeKind::Scalar { text, .. } = &entry.value.kind else {
        return None;
    };
    let has_no_effect = match context.options.profile.skip {
        Skip::True => text != "true" && text != "false",
        Skip::Present => false,
    };
    (entry.key == SKIP_INITIALIZER && has_no_effect).then(|| Finding {
        help: Some("only \"true\" skips the initializer".to_owned()),
        ..warning(
            Code::AnnotationType,
            entry.value,
            format!("{text:?} skips nothing"),
        )
    })
}
