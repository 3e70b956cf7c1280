//! Compares two objects field by field. Items of named lists are compared by name, multi-line strings by
//! line.

use std::collections::BTreeSet;

use serde_json::Value;
use similar::TextDiff;

use crate::report::FieldChange;

/// Maximum depth of a comparison. No object in a chart is deeper.
const MAX_DEPTH: usize = 64;
/// Minimum length of strings that are shown as a diff.
const MIN_DIFF_LEN: usize = 200;

/// Labels that only contain the chart version. They differ between any two versions.
const VERSION_LABELS: [&str; 2] = ["labels[app.kubernetes.io/version]", "labels[helm.sh/chart]"];

/// Returns the changed fields, except version labels.
pub(super) fn find_differences(old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(String::new(), (Some(old), Some(new)), MAX_DEPTH, &mut found);
    found.retain(|field| !VERSION_LABELS.iter().any(|label| field.path.ends_with(label)));
    found
}

/// Replaces a name throughout an object.
pub(super) fn renamed(value: Value, from: &str, to: &str) -> Value {
    rename(value, from, to, MAX_DEPTH)
}

fn rename(value: Value, from: &str, to: &str, depth: usize) -> Value {
    if from.is_empty() || depth == 0 {
        return value;
    }
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| rename(item, from, to, depth - 1))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key.replace(from, to), rename(value, from, to, depth - 1)))
            .collect(),
        other => other,
    }
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

fn compare(path: String, pair: Pair<'_>, depth: usize, found: &mut Vec<FieldChange>) {
    if pair.0 == pair.1 {
        return;
    }
    match pair {
        (Some(Value::Object(old)), Some(Value::Object(new))) if depth > 0 => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                compare(
                    child_path(&path, key),
                    (old.get(key), new.get(key)),
                    depth - 1,
                    found,
                );
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if depth > 0 && is_named(old) && is_named(new) => {
            let names: Vec<&str> = old.iter().chain(new).map(name_of).collect();
            let mut seen = BTreeSet::new();
            for name in names.into_iter().filter(|name| seen.insert(*name)) {
                let find = |list: &[Value]| list.iter().position(|item| name_of(item) == name);
                let pair = (
                    find(old).and_then(|at| old.get(at)),
                    find(new).and_then(|at| new.get(at)),
                );
                compare(format!("{path}[{name}]"), pair, depth - 1, found);
            }
        }
        (old, new) => found.push(field_change(path, old, new)),
    }
}

fn child_path(path: &str, key: &str) -> String {
    let key = if key.contains(['.', '/']) {
        format!("[{key}]")
    } else {
        key.to_owned()
    };
    match path {
        "" => key,
        _ if key.starts_with('[') => format!("{path}{key}"),
        _ => format!("{path}.{key}"),
    }
}

fn name_of(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Whether all items have unique names.
fn is_named(items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    items
        .iter()
        .all(|item| !name_of(item).is_empty() && seen.insert(name_of(item)))
}

fn field_change(path: String, old: Option<&Value>, new: Option<&Value>) -> FieldChange {
    if let (Some(Value::String(old)), Some(Value::String(new))) = (old, new)
        && (old.contains('\n') || new.contains('\n') || old.len().max(new.len()) > MIN_DIFF_LEN)
    {
        let diff = TextDiff::from_lines(old, new);
        return FieldChange {
            path,
            old: None,
            new: None,
            diff: Some(
                diff.unified_diff()
                    .context_radius(2)
                    .header("old", "new")
                    .to_string(),
            ),
        };
    }
    FieldChange {
        path,
        old: old.map(Value::to_string),
        new: new.map(Value::to_string),
        diff: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(old: &Value, new: &Value, expected: &[&str]) {
        let shown: Vec<String> = find_differences(old, new)
            .into_iter()
            .map(|field| {
                let side = |text: Option<String>| text.unwrap_or_else(|| "-".into());
                match field.diff {
                    Some(diff) => format!("{}\n{diff}", field.path),
                    None => format!("{} {} {}", field.path, side(field.old), side(field.new)),
                }
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn named_items_are_compared_by_name() {
        let list = |items: &[(&str, i32)]| {
            let items = items
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}));
            json!({"env": items.collect::<Vec<_>>()})
        };
        check(&list(&[("a", 1), ("b", 2)]), &list(&[("b", 2), ("a", 1)]), &[]);
        check(
            &list(&[("a", 1), ("b", 2)]),
            &list(&[("b", 3), ("c", 4)]),
            &[
                r#"env[a] {"name":"a","value":1} -"#,
                "env[b].value 2 3",
                r#"env[c] - {"name":"c","value":4}"#,
            ],
        );
    }

    #[test]
    fn keys_with_dots_are_bracketed_and_lines_are_compared() {
        check(
            &json!({"labels": {"istio.io/x": "1", "helm.sh/chart": "a", "x": [1]}}),
            &json!({"labels": {"istio.io/x": "2", "helm.sh/chart": "b", "x": [1, 2]}}),
            &["labels[istio.io/x] \"1\" \"2\"", "labels.x [1] [1,2]"],
        );
        check(
            &json!({"mesh": "a: 1\nb: 2\n"}),
            &json!({"mesh": "a: 1\nb: 3\n"}),
            &["mesh\n--- old\n+++ new\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"],
        );
    }

    #[test]
    fn a_replaced_name_is_no_difference() {
        let old = renamed(json!({"istiod-r1": ["rev=r1"]}), "r1", "r2");
        assert_eq!(old, json!({"istiod-r2": ["rev=r2"]}));
    }
}
