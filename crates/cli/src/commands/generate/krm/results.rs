//! Results of a KRM function: converts reports and inserts them into the list's text.

use std::fmt::Write as _;

use mainstay_inject::{Action, Report};
use mainstay_yaml::{Budget, Document, NodeId, NodeKind, Span, parse_spanned};
use serde::Serialize;

use super::action_message;
use crate::commands::generate::json_report::severity;

/// A result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KrmResult {
    message: String,
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_ref: Option<ResourceRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Tags>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceRef {
    api_version: String,
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FileRef {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Tags {
    code: &'static str,
}

impl KrmResult {
    /// Creates the result of a failed run.
    pub(super) fn failure(message: String) -> Self {
        Self {
            message,
            severity: "error",
            resource_ref: None,
            file: None,
            tags: None,
        }
    }
}

/// An item's position in the list and its file.
pub(super) struct Item {
    span: Span,
    file: Option<FileRef>,
}

/// Annotations of orchestrators with an item's file and index, newest first.
const PATHS: [&str; 2] = ["internal.config.kubernetes.io/path", "config.kubernetes.io/path"];
const INDEXES: [&str; 2] = [
    "internal.config.kubernetes.io/index",
    "config.kubernetes.io/index",
];

/// Returns the items of a list.
pub(super) fn items(list: &Document<'_>) -> Vec<Item> {
    let node = list.find(&["items"]).and_then(|id| list.node(id));
    let Some(NodeKind::List { items, .. }) = node.map(|node| &node.kind) else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|id| {
            Some(Item {
                span: list.node(*id)?.span,
                file: file(list, *id),
            })
        })
        .collect()
}

fn file(list: &Document<'_>, item: NodeId) -> Option<FileRef> {
    let annotations = list
        .get(item, "metadata")
        .and_then(|id| list.get(id, "annotations"))?;
    let first = |keys: [&str; 2]| {
        keys.iter()
            .find_map(|key| scalar(list, list.get(annotations, key)))
    };
    Some(FileRef {
        path: first(PATHS)?.to_owned(),
        index: first(INDEXES).and_then(|text| text.parse().ok()),
    })
}

/// Returns the text of a scalar.
pub(super) fn scalar<'a>(document: &'a Document<'_>, id: Option<NodeId>) -> Option<&'a str> {
    match &document.node(id?)?.kind {
        NodeKind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

/// Returns the results of one workload: its action and its findings.
pub(super) fn for_report(report: &Report, items: &[Item], check: bool) -> Vec<KrmResult> {
    let item = items
        .iter()
        .find(|item| (item.span.start.offset..item.span.end.offset).contains(&report.place.offset));
    let resource_ref = ResourceRef {
        api_version: report.api_version.clone(),
        kind: report.kind.clone(),
        name: report.name.clone(),
        namespace: report.namespace.clone(),
    };
    let result = |message: String, severity: &'static str, code: &'static str| KrmResult {
        message,
        severity,
        resource_ref: Some(resource_ref.clone()),
        file: item.and_then(|item| item.file.clone()),
        tags: Some(Tags { code }),
    };
    let reason = report.reason.code();
    let weight = if check || report.action == Action::Failed {
        "error"
    } else {
        "info"
    };
    let action =
        action_message(report.action, check).map(|word| result(format!("{word} ({reason})"), weight, reason));
    let findings = report.findings.iter().map(|finding| {
        let help = finding
            .help
            .as_deref()
            .map(|help| format!(" ({help})"))
            .unwrap_or_default();
        result(
            format!("{}{help}", finding.message),
            severity(finding.severity),
            finding.code.code(),
        )
    });
    action.into_iter().chain(findings).collect()
}

/// Inserts results into a `ResourceList`; without results the text is unchanged.
pub(super) fn insert(text: &[u8], results: &[KrmResult]) -> Vec<u8> {
    let documents = parse_spanned(text, &Budget::default()).unwrap_or_default();
    let root = documents.first().and_then(|it| it.node(it.root()?));
    let (Some(document), Some(root), false) = (documents.first(), root, results.is_empty()) else {
        return text.to_vec();
    };
    let json = serde_json::to_string(results).unwrap_or_else(|_| "[]".to_owned());
    let earlier = document.find(&["results"]).and_then(|id| document.node(id));
    match (&root.kind, earlier) {
        (_, Some(node)) => spliced(text, node.span.start.offset, node.span.end.offset, &json),
        (NodeKind::Map { flow: true, entries }, None) => {
            let comma = if entries.is_empty() { "" } else { ", " };
            let end = root.span.end.offset.saturating_sub(1);
            spliced(text, end, end, &format!("{comma}\"results\": {json}"))
        }
        _ => appended(text, root.span, results),
    }
}

/// Appends a block after the last entry of the list.
fn appended(text: &[u8], root: Span, results: &[KrmResult]) -> Vec<u8> {
    let behind = text.get(root.end.offset..).unwrap_or_default();
    let end_of_line = behind.iter().position(|byte| *byte == b'\n');
    let on_its_own = text
        .get(..root.end.offset)
        .is_some_and(|before| before.ends_with(b"\n"));
    let (at, mut block) = match end_of_line {
        _ if on_its_own => (root.end.offset, String::new()),
        Some(end) => (root.end.offset + end + 1, String::new()),
        None => (text.len(), "\n".to_owned()),
    };
    let indent = " ".repeat(root.start.column.saturating_sub(1));
    // Writing to memory cannot fail.
    let _ = writeln!(block, "{indent}results:");
    for result in results {
        let _ = writeln!(
            block,
            "{indent}- {}",
            serde_json::to_string(result).unwrap_or_default()
        );
    }
    spliced(text, at, at, &block)
}

fn spliced(text: &[u8], start: usize, end: usize, by: &str) -> Vec<u8> {
    let mut new = text.get(..start).unwrap_or_default().to_vec();
    new.extend_from_slice(by.as_bytes());
    new.extend_from_slice(text.get(end..).unwrap_or_default());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = insert(text.as_bytes(), &[KrmResult::failure("no \"x\"".into())]);
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }

    const RESULT: &str = r#"{"message":"no \"x\"","severity":"error"}"#;

    #[test]
    fn results_follow_the_items() {
        check(
            "kind: ResourceList\nitems:\n- a: b\n",
            &format!("kind: ResourceList\nitems:\n- a: b\nresults:\n- {RESULT}\n"),
        );
        check(
            "kind: ResourceList\nitems: []",
            &format!("kind: ResourceList\nitems: []\nresults:\n- {RESULT}\n"),
        );
        check(
            "---\nitems: [] # none\n# end\n",
            &format!("---\nitems: [] # none\nresults:\n- {RESULT}\n# end\n"),
        );
    }

    #[test]
    fn json_stays_json() {
        check(
            r#"{"items": []}"#,
            &format!(r#"{{"items": [], "results": [{RESULT}]}}"#),
        );
        check("{}\n", &format!("{{\"results\": [{RESULT}]}}\n"));
    }

    #[test]
    fn earlier_results_are_replaced() {
        check(
            "items: []\nresults: [{message: old}]\n",
            &format!("items: []\nresults: [{RESULT}]\n"),
        );
    }

    #[test]
    fn no_results_change_nothing() {
        assert_eq!(insert(b"items: []\n", &[]), b"items: []\n");
    }
}
