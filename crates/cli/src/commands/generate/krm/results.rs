//! Results of a KRM function: converts reports and inserts them into the list's text.

use std::fmt::Write as _;
use std::ops::Range;

use mainstay_inject::{Action, Report};
use mainstay_yaml::{Budget, Document, Map, Node, NodeId, NodeKind, Span, Value, parse_map, parse_spanned};
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
pub(super) struct FileRef {
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

    /// Returns the result as JSON on one line, which is also YAML.
    pub(super) fn to_json(&self) -> String {
        // A result has string keys only.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// An item's position in the list and its file.
pub(super) struct Item {
    pub(super) range: Range<usize>,
    pub(super) file: Option<FileRef>,
}

/// Annotations of orchestrators with an item's file and index, newest first.
const PATHS: [&str; 2] = ["internal.config.kubernetes.io/path", "config.kubernetes.io/path"];
const INDEXES: [&str; 2] = [
    "internal.config.kubernetes.io/index",
    "config.kubernetes.io/index",
];

/// Returns the file of an item from the annotations of the orchestrator.
pub(super) fn file(list: &Document<'_>, item: NodeId) -> Option<FileRef> {
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
    let behind = items.partition_point(|item| item.range.start <= report.place.offset);
    let item = behind.checked_sub(1).and_then(|at| items.get(at));
    let item = item.filter(|item| item.range.contains(&report.place.offset));
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

/// Appends results in JSON to a `ResourceList`, after earlier ones and in their style; without results the
/// text is unchanged. Returns `None` if the new text does not parse as the old list with the results
/// appended.
///
/// Every result is parsed separately, and the list only with the first one, because parsing the list with all
/// results would require many times the memory of their text.
pub(super) fn insert(text: &[u8], results: &[String]) -> Option<Vec<u8>> {
    let Some(first) = results.get(..1) else {
        return Some(text.to_vec());
    };
    let documents = parse_spanned(text, &Budget::default()).ok()?;
    let document = documents.first()?;
    let add = |results: &[String]| match document.find(&["results"]).and_then(|id| document.node(id)) {
        Some(earlier) => extend_results(text, document, earlier, results),
        None => Some(with_results(text, document.node(document.root()?)?, results)),
    };
    let is_valid = results.iter().all(|result| is_map(result)) && is_appended(text, &add(first)?);
    is_valid.then(|| add(results))?
}

/// Whether the text of a result parses as a map.
fn is_map(result: &str) -> bool {
    parse_map(result.as_bytes(), &Budget::default()).is_ok()
}

/// Appends results to the list `earlier`.
fn extend_results(
    text: &[u8],
    document: &Document<'_>,
    earlier: &Node<'_>,
    results: &[String],
) -> Option<Vec<u8>> {
    let (start, end) = (earlier.span.start.offset, earlier.span.end.offset);
    match &earlier.kind {
        NodeKind::List { items, flow: false } => {
            let first = document.node(*items.first()?)?;
            let column = dash_column(text, first.span)?;
            Some(appended(text, earlier.span, &block_items(results, column)))
        }
        NodeKind::List { items, .. } => {
            let last = items.last().and_then(|id| document.node(*id));
            let (at, separator) = match last {
                Some(last) => (last.span.end.offset, ", "),
                None => (end.saturating_sub(1), ""),
            };
            let new = format!("{separator}{}", flow_items(results));
            Some(splice(text, at, at, &new))
        }
        NodeKind::Scalar { .. } => {
            let space = if start == end { " " } else { "" };
            let new = format!("{space}[{}]", flow_items(results));
            Some(splice(text, start, end, &new))
        }
        _ => None,
    }
}

/// Adds the field `results` at the end of a list without it.
fn with_results(text: &[u8], root: &Node<'_>, results: &[String]) -> Vec<u8> {
    if let NodeKind::Map { flow: true, entries } = &root.kind {
        let comma = if entries.is_empty() { "" } else { ", " };
        let end = root.span.end.offset.saturating_sub(1);
        let new = format!("{comma}\"results\": [{}]", flow_items(results));
        return splice(text, end, end, &new);
    }
    let column = root.span.start.column.saturating_sub(1);
    let key = format!("{:column$}results:\n", "");
    appended(text, root.span, &(key + &block_items(results, column)))
}

/// Whether `new` parses as `old` with one more result.
fn is_appended(old: &[u8], new: &[u8]) -> bool {
    let read = |text| parse_map(text, &Budget::default()).ok();
    let (Some(mut old), Some(mut new)) = (read(old), read(new)) else {
        return false;
    };
    let results = |map: &mut Map| match map.remove("results") {
        Some(Value::List(items)) => Some(items),
        None | Some(Value::Null) => Some(Vec::new()),
        Some(_) => None,
    };
    let (Some(earlier), Some(all)) = (results(&mut old), results(&mut new)) else {
        return false;
    };
    old == new && all.starts_with(&earlier) && all.len() == earlier.len() + 1
}

/// Returns the column of the dash before an item, if both are on one line.
fn dash_column(text: &[u8], item: Span) -> Option<usize> {
    let before = text.get(..item.start.offset)?;
    let line = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let dash = before.get(line..)?.iter().position(|byte| *byte != b' ')?;
    (before.get(line + dash) == Some(&b'-')).then_some(dash)
}

fn flow_items(results: &[String]) -> String {
    results.join(", ")
}

fn block_items(results: &[String], column: usize) -> String {
    let mut block = String::new();
    for result in results {
        // Writing to memory cannot fail.
        let _ = writeln!(block, "{:column$}- {result}", "");
    }
    block
}

/// Inserts lines after a block collection.
fn appended(text: &[u8], collection: Span, lines: &str) -> Vec<u8> {
    let end = collection.end.offset;
    let behind = text.get(end..).unwrap_or_default();
    let end_of_line = behind.iter().position(|byte| *byte == b'\n');
    let on_its_own = text.get(..end).is_some_and(|before| before.ends_with(b"\n"));
    let (at, line_break) = match end_of_line {
        _ if on_its_own => (end, ""),
        Some(behind) => (end + behind + 1, ""),
        None => (text.len(), "\n"),
    };
    splice(text, at, at, &format!("{line_break}{lines}"))
}

fn splice(text: &[u8], start: usize, end: usize, by: &str) -> Vec<u8> {
    let mut new = text.get(..start).unwrap_or_default().to_vec();
    new.extend_from_slice(by.as_bytes());
    new.extend_from_slice(text.get(end..).unwrap_or_default());
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = insert(
            text.as_bytes(),
            &[KrmResult::failure("no \"x\"".into()).to_json()],
        );
        assert_eq!(String::from_utf8(found.unwrap()).unwrap(), expected);
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
    fn earlier_results_are_kept_in_their_style() {
        check(
            "items: []\nresults: [{message: old}]\n",
            &format!("items: []\nresults: [{{message: old}}, {RESULT}]\n"),
        );
        check(
            "results:\n  - message: |\n      old\n    severity: info\nitems: []\n",
            &format!("results:\n  - message: |\n      old\n    severity: info\n  - {RESULT}\nitems: []\n"),
        );
        check(
            "items: []\nresults:\n- message: old",
            &format!("items: []\nresults:\n- message: old\n- {RESULT}\n"),
        );
        check(
            "results: []\nitems: []\n",
            &format!("results: [{RESULT}]\nitems: []\n"),
        );
        check(
            "results:\nitems: []\n",
            &format!("results: [{RESULT}]\nitems: []\n"),
        );
        check(
            "results: null\nitems: []\n",
            &format!("results: [{RESULT}]\nitems: []\n"),
        );
    }

    #[test]
    fn no_results_change_nothing() {
        assert_eq!(insert(b"items: []\n", &[]).unwrap(), b"items: []\n");
    }

    #[test]
    fn anchors_and_comments_among_earlier_results_are_kept() {
        check(
            "results: &r\n- &a message: |+\n    old\n\n# after\nitems: []\n",
            &format!("results: &r\n- &a message: |+\n    old\n\n- {RESULT}\n# after\nitems: []\n"),
        );
        check(
            "results: [\n  {message: old}, # first\n]\nitems: []\n",
            &format!("results: [\n  {{message: old}}, {RESULT}, # first\n]\nitems: []\n"),
        );
    }

    #[test]
    fn all_results_are_appended_unless_one_is_no_map() {
        let results = ["one", "two"].map(|message| KrmResult::failure(message.into()).to_json());
        let [one, two] = &results;
        let found = insert(b"items: []\n", &results).unwrap();
        assert_eq!(
            String::from_utf8(found).unwrap(),
            format!("items: []\nresults:\n- {one}\n- {two}\n")
        );
        for broken in ["{\"message\": \"\u{7}\"}", "{", "text"] {
            let results = [one.clone(), broken.to_owned()];
            assert_eq!(insert(b"items: []\n", &results), None, "{broken:?}");
        }
    }

    #[test]
    fn results_that_cannot_be_extended_are_rejected() {
        for text in [
            "a: &a [{message: old}]\nresults: *a\n",
            "results: {message: old}\n",
            "results: old\n",
            "results:\n-\n  message: old\n",
        ] {
            let found = insert(text.as_bytes(), &[KrmResult::failure("new".into()).to_json()]);
            assert_eq!(found, None, "{text}");
        }
    }
}
