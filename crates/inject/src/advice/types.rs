//! Values that are not strings: takes the scene, gives a finding for each, because Kubernetes takes strings
//! only.

use mainstay_yaml::{Budget, Node, NodeKind, ScalarStyle, Value, parse};

use super::scene::{Entry, Scene, at, warning};
use crate::profile::{ANNOTATION_PREFIX, SKIP_INITIALIZER};
use crate::workload::place;
use crate::{Code, Finding, Severity, Skip};

/// Every annotation of ours whose value is not what it should be.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let ours = |entry: &&Entry<'_>| entry.key.starts_with(ANNOTATION_PREFIX);
    let all = scene.template.iter().chain(&scene.object);
    all.filter(ours)
        .filter_map(|entry| not_a_string(entry).or_else(|| skips_nothing(entry, scene)))
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

/// What a value is if not a string, and its text if quotes would make it one. Nothing at all stands for the
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
fn skips_nothing(entry: &Entry<'_>, scene: &Scene<'_>) -> Option<Finding> {
    let NodeKind::Scalar { text, .. } = &entry.value.kind else {
        return None;
    };
    let idle = match scene.options.profile.skip {
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
