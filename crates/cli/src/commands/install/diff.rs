//! Shows what an apply would do as a diff of YAML.

use mainstay_cluster::apply::Preview;
use mainstay_cluster::deploy::document;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::ui::style::{ERROR, FRAME, GOOD};

/// Metadata that the server sets.
const HIDDEN: [&str; 5] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
];

/// Lines around a change.
const CONTEXT: usize = 3;

/// Formats a preview: one line for a new object, otherwise a diff. Empty if nothing visible changes.
pub(crate) fn show_preview(preview: &Preview) -> String {
    let id = &preview.id;
    let place = if id.namespace.is_empty() {
        String::new()
    } else {
        format!("{}/", id.namespace)
    };
    let title = format!("{} {place}{}", id.kind, id.name);
    let Some(before) = &preview.before else {
        return format!("{GOOD}+ {title}{GOOD:#}\n");
    };
    let (old, new) = (text(before), text(&preview.after));
    if old == new {
        return String::new();
    }
    let mut out = format!("{FRAME}~ {title}{FRAME:#}\n");
    let diff = TextDiff::from_lines(&old, &new);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            out.push_str("  ...\n");
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            out.push_str(&line(change.tag(), change.value()));
        }
    }
    out
}

fn line(tag: ChangeTag, value: &str) -> String {
    let value = value.trim_end_matches('\n');
    match tag {
        ChangeTag::Delete => format!("{ERROR}  - {value}{ERROR:#}\n"),
        ChangeTag::Insert => format!("{GOOD}  + {value}{GOOD:#}\n"),
        ChangeTag::Equal => format!("    {value}\n"),
    }
}

fn text(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|field, _| !HIDDEN.contains(&field.as_str()));
    }
    if let Value::Object(map) = &mut object {
        map.remove("status");
    }
    document(&object).unwrap_or_default()
}
