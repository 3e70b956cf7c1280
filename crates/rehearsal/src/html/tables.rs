//! Sections with tables: findings and details.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::{short, text};
use super::{pluralize, section};
use crate::report::{Elapsed, FindingGroup, Report, Severity, SpanResult, group_findings};

/// Maximum number of rows in a table.
const MAX_ROWS: usize = 1_000;

/// Renders the findings, most severe first.
pub(super) fn findings(report: &Report) -> String {
    if report.findings.is_empty() {
        return section("findings", "Findings", "No problems found.", "");
    }
    let mut body = String::new();
    let mut left = MAX_ROWS;
    for group in group_findings(&report.findings) {
        body.push_str(&render_finding_group(&group, &mut left));
    }
    body.push_str(&render_omitted(report.findings.len()));
    let count = |severity| {
        report
            .findings
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let lead = format!(
        "{}, {}, {}.",
        pluralize(count(Severity::Error), "error"),
        pluralize(count(Severity::Warning), "warning"),
        pluralize(count(Severity::Info), "note")
    );
    section("findings", "Findings", &lead, &body)
}

/// Renders the findings of one kind. `left` is the number of objects that may still be listed.
fn render_finding_group(group: &FindingGroup<'_>, left: &mut usize) -> String {
    if *left == 0 {
        return String::new();
    }
    let (class, mark, word) = match group.severity {
        Severity::Error => ("bad", "×", "Error"),
        Severity::Warning => ("warn", "!", "Warning"),
        Severity::Info => ("note", "i", "Note"),
    };
    let mut out = format!(
        "<div class=\"finding\"><h3><span class=\"badge {class}\"><span aria-hidden=\"true\">{mark}</span> {word}</span> {} <span class=\"count\">{}</span></h3>\n<ul>\n",
        group.kind.title(),
        group.count()
    );
    for entry in &group.entries {
        let _ = write!(out, "<li><p>");
        for (index, subject) in entry.subjects.iter().take(*left).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let _ = write!(out, "{comma}<span class=\"name\">{}</span>", text(subject));
        }
        *left = left.saturating_sub(entry.subjects.len());
        let _ = write!(out, ": {}</p>", text(entry.what));
        if !entry.remedy.is_empty() {
            let _ = write!(out, "<p class=\"remedy\">Fix: {}</p>", text(entry.remedy));
        }
        out.push_str("</li>\n");
        if *left == 0 {
            break;
        }
    }
    out.push_str("</ul></div>\n");
    out
}

/// Renders a note with the number of omitted rows.
fn render_omitted(count: usize) -> String {
    match count.saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => format!("<p class=\"lead\">{more} more are in the JSON output.</p>\n"),
    }
}

/// Renders the section with details as expandable tables.
pub(super) fn details(report: &Report) -> String {
    let mut body = String::new();
    body.push_str(&render_table(
        "Workloads by namespace",
        &["Namespace", "Workloads", "Migrated", "Failed", "Start", "End"],
        &namespace_rows(report),
    ));
    let rows: Vec<_> = report
        .skipped
        .iter()
        .map(|one| {
            vec![
                format!("{} {}/{}", one.kind, one.namespace, one.name),
                one.reason.clone(),
            ]
        })
        .collect();
    body.push_str(&render_table("Skipped workloads", &["Workload", "Reason"], &rows));
    let rows: Vec<_> = report
        .namespaces
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                one.from.clone(),
                one.to.clone(),
                one.at.to_string(),
            ]
        })
        .collect();
    body.push_str(&render_table(
        "Relabeled namespaces",
        &["Namespace", "From", "To", "At"],
        &rows,
    ));
    let rows: Vec<_> = report
        .pruned
        .iter()
        .map(|one| {
            vec![
                one.kind.clone(),
                qualified_name(&one.namespace, &one.name),
                one.at.to_string(),
            ]
        })
        .collect();
    body.push_str(&render_table("Pruned objects", &["Kind", "Object", "At"], &rows));
    let rows: Vec<_> = report
        .writes
        .iter()
        .map(|one| vec![one.verb.clone(), one.kind.clone(), one.count.to_string()])
        .collect();
    body.push_str(&render_table(
        "Operator writes",
        &["Verb", "Kind", "Count"],
        &rows,
    ));
    body.push_str(&render_table("Input", &["Kind", "Count"], &input_rows(report)));
    section("details", "Details", "", &body)
}

/// Returns `NAMESPACE/NAME`, or only the name of a cluster-scoped object.
pub(super) fn qualified_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

fn input_rows(report: &Report) -> Vec<Vec<String>> {
    let input = &report.input;
    let mut rows: Vec<Vec<String>> = input
        .objects
        .iter()
        .map(|one| vec![one.kind.clone(), one.count.to_string()])
        .collect();
    rows.extend(
        input
            .missing
            .iter()
            .map(|kind| vec![kind.clone(), "missing".to_owned()]),
    );
    rows.push(vec![
        "observed readiness".to_owned(),
        pluralize(input.observed_readiness, "workload"),
    ]);
    rows.push(vec![
        "default readiness".to_owned(),
        input.default_readiness.to_string(),
    ]);
    rows
}

#[derive(Default)]
struct NamespaceTotals {
    workloads: usize,
    moved: usize,
    failed: usize,
    start: Option<Elapsed>,
    end: Elapsed,
}

fn namespace_rows(report: &Report) -> Vec<Vec<String>> {
    let mut all: BTreeMap<&str, NamespaceTotals> = BTreeMap::new();
    for span in &report.workloads {
        let sums = all.entry(&span.namespace).or_default();
        sums.workloads += 1;
        sums.moved += usize::from(span.result == SpanResult::Migrated);
        sums.failed += usize::from(span.result == SpanResult::Failed);
        sums.start = Some(sums.start.map_or(span.start, |start| start.min(span.start)));
        sums.end = sums.end.max(span.end);
    }
    let row = |(name, sums): (&str, NamespaceTotals)| {
        vec![
            name.to_owned(),
            sums.workloads.to_string(),
            sums.moved.to_string(),
            sums.failed.to_string(),
            sums.start.unwrap_or_default().to_string(),
            sums.end.to_string(),
        ]
    };
    all.into_iter().map(row).collect()
}

fn render_table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<details><summary>{title} <span class=\"count\">{}</span></summary>\n<div class=\"scroll\"><table><thead><tr>",
        rows.len()
    );
    for cell in head {
        let _ = write!(out, "<th>{cell}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows.iter().take(MAX_ROWS) {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", short(cell, 300));
        }
        out.push_str("</tr>\n");
    }
    let _ = write!(
        out,
        "</tbody></table></div>\n{}</details>\n",
        render_omitted(rows.len())
    );
    out
}
