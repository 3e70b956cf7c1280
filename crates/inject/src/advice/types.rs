//! Annotation values that are not strings: a finding for each, because Kubernetes accepts strings only.

use mainstay_yaml::{Budget, Node, NodeKind, ScalarStyle, Value, parse};

use super::context::{AnnotationContext, Entry, at, warning};
use crate::profile::{ANNOTATION_PREFIX, SKIP_INITIALIZER};
use crate::workload::place;
use crate::{Code, Finding, Severity, Skip};

/// Finds Contrast annotations with a wrong value.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let ours = |entry: &&Entry<'_>| entry.key.starts_with(ANNOTATION_PREFIX);
    let all = context.template.iter().chain(&context.object);
    all.filter(ours)
        .filter_map(|entry| not_a_string(entry).or_else(|| skips_nothing(entry, context)))
        .collect()
}

fn not_a_string(entry: &Entry<'_>) -> Option<Finding> {
    let (what, quotable) = kind(entry.value)?;
    let message = format!("the value of {} is {what}, not a string", entry.key);
    let finding = match quotable {
        // What it means is clear, and the API server will say the rest.
        Some(text) => Finding {
            help: Some(format!("quote it: \"{text}\"")),
            ..warning(Code::AnnotationType, entry.value, message)
        },
        None => at(
            Code::AnnotationType,
            Severity::Error,
            place(entry.value.span),
            message,
        ),
    };
    Some(finding)
}

/// The type of a value that is not a string, and its text if quotes would make it one. An empty value is the
/// empty string.
fn kind<'a>(node: &'a Node<'_>) -> Option<(&'static str, Option<&'a str>)> {
    match &node.kind {
        NodeKind::List { .. } => Some(("a list", None)),
        NodeKind::Map { .. } => Some(("a map", None)),
        NodeKind::Scalar {
            text,
            style: ScalarStyle::Plain,
        } if node.tag.is_none() => scalar(text).map(|what| (what, Some(&**text))),
        _ => None,
    }
}

fn scalar(text: &str) -> Option<&'static str> {
    match parse(text, &Budget::default()) {
        Ok(Value::Bool(_)) => Some("a boolean"),
        Ok(Value::Int(_) | Value::Uint(_) | Value::Float(_)) => Some("a number"),
        _ => None,
    }
}

/// Where only the word `true` skips, anything else is probably a mistake.
fn skips_nothing(entry: &Entry<'_>, context: &AnnotationContext<'_>) -> Option<Finding> {
    let NodeKind::Scalar { text, .. } = &entry.value.kind else {
        return None;
    };
    let idle = match context.options.profile.skip {
        Skip::True => text != "true" && text != "false",
        Skip::Present => false,
    };
    (entry.key == SKIP_INITIALIZER && idle).then(|| Finding {
        help: Some("only \"true\" skips the initializer".to_owned()),
        ..warning(
            Code::AnnotationType,
            entry.value,
            format!("{text:?} skips nothing"),
        )
    })
}
