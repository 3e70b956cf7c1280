//! Section with the changes of the control plane: one expandable entry per object with its changed fields.

use std::fmt::Write as _;

use super::pluralize;
use super::tables::qualified_name;
use super::text::{short, text};
use crate::report::{Change, FieldChange, ObjectChange, Report};

/// Maximum number of objects, and of characters in all differences.
const MAX_OBJECTS: usize = 500;
const MAX_CHARS: usize = 600_000;
/// Maximum number of characters in the difference of one field.
const MAX_FIELD_CHARS: usize = 20_000;

/// Renders the section.
pub(super) fn section(report: &Report) -> String {
    if report.objects.is_empty() {
        return String::new();
    }
    let count = |change| report.objects.iter().filter(|one| one.change == change).count();
    let lead = format!(
        "From {} to {}, ignoring the revision name: {} added, {} changed, {} removed.",
        report.upgrade.from_revision,
        report.upgrade.to_revision,
        pluralize(count(Change::Added), "object"),
        count(Change::Changed),
        count(Change::Removed)
    );
    super::section("changes", "Control plane changes", &lead, &render_objects(report))
}

fn render_objects(report: &Report) -> String {
    let mut body = String::new();
    let mut budget = MAX_CHARS;
    for object in report.objects.iter().take(MAX_OBJECTS) {
        body.push_str(&render_object(object, &mut budget));
    }
    let more = report.objects.len().saturating_sub(MAX_OBJECTS);
    if more > 0 {
        let _ = writeln!(body, "<p class=\"lead\">{more} more are in the JSON output.</p>");
    }
    body
}

fn render_object(object: &ObjectChange, budget: &mut usize) -> String {
    let (class, word) = match object.change {
        Change::Added => ("good", "Added"),
        Change::Removed => ("bad", "Removed"),
        Change::Changed => ("note", "Changed"),
    };
    let name = qualified_name(&object.namespace, &object.name);
    let head = format!(
        "<span class=\"badge {class}\">{word}</span> <span class=\"kind\">{}</span> {}",
        short(&object.kind, 100),
        short(&name, 300)
    );
    if object.fields.is_empty() {
        return format!("<p class=\"unfolded\">{head}</p>\n");
    }
    let mut out = format!(
        "<details><summary>{head} <span class=\"count\">{}</span></summary>\n<dl class=\"fields\">\n",
        pluralize(object.fields.len(), "field")
    );
    for (index, field) in object.fields.iter().enumerate() {
        let before = out.len();
        if *budget == 0 {
            let left = object.fields.len() - index;
            let _ = writeln!(out, "<dt>{left} more are in the JSON output</dt>");
            break;
        }
        out.push_str(&render_field(field));
        *budget = budget.saturating_sub(out.len() - before);
    }
    out.push_str("</dl>\n</details>\n");
    out
}

fn render_field(field: &FieldChange) -> String {
    let mut out = format!("<dt>{}</dt><dd><pre>", short(&field.path, 500));
    match &field.diff {
        Some(diff) => out.push_str(&render_diff(diff)),
        None => {
            for (value, class, mark) in [(&field.old, "del", '-'), (&field.new, "ins", '+')] {
                if let Some(value) = value {
                    let _ = writeln!(out, "<span class=\"{class}\">{mark} {}</span>", text(value));
                }
            }
        }
    }
    out.push_str("</pre></dd>\n");
    out
}

fn render_diff(diff: &str) -> String {
    let mut out = String::new();
    for line in diff.lines() {
        if out.len() > MAX_FIELD_CHARS {
            out.push_str("…\n");
            break;
        }
        let class = match line.chars().next() {
            Some('-') if !line.starts_with("---") => "del",
            Some('+') if !line.starts_with("+++") => "ins",
            Some('@') => "at",
            _ => "same",
        };
        let _ = writeln!(out, "<span class=\"{class}\">{}</span>", text(line));
    }
    out
}
