//! Columns of custom resources: the printer columns of their definition, with a subset of JSON path.

use serde_json::Value;

use super::cells::{name, name_and_age};
use super::{Column, Printer, age};
use crate::crd::Custom;
use crate::state::State;
use crate::tree;

/// Returns the columns and cells of a custom resource.
pub(super) fn printer(custom: &Custom) -> Printer {
    let described_column = |name: &str, kind: &str, description: &str| Column {
        description: description.to_owned(),
        ..Column::new(name, kind, 0)
    };
    let mut columns = vec![described_column("Name", "string", NAME)];
    if custom.columns.is_empty() {
        columns.push(described_column("Age", "date", CREATED));
        return (columns, Box::new(name_and_age));
    }
    let defined = custom.columns.clone();
    columns.extend(defined.iter().map(column));
    let cells = move |value: &Value, state: &State| {
        let own = defined.iter().map(|column| cell(column, value, state));
        std::iter::once(name(value)).chain(own).collect()
    };
    (columns, Box::new(cells))
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn column(definition: &Value) -> Column {
    let text = |key| tree::text(definition, &[key]).to_owned();
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: match text("description") {
            description if description.is_empty() => {
                let path = text("jsonPath");
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            description => description,
        },
        priority: tree::int(definition, &["priority"]).unwrap_or(0),
    }
}

fn cell(definition: &Value, value: &Value, state: &State) -> Value {
    let found = json_path(value, tree::text(definition, &["jsonPath"]));
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match (tree::text(definition, &["type"]), first) {
        ("date", Value::String(then)) if crate::clock::Instant::parse(then).is_none() => "<invalid>".into(),
        ("date", Value::String(then)) => age(then, state.now()).into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(_) => (*first).clone(),
            None => Value::from(number.as_f64().unwrap_or_default() as i64),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => (*first).clone(),
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", other) => other.to_string().into(),
        _ => Value::Null,
    }
}

/// Returns the values at a path such as `.status.conditions[?(@.type=="Ready")].status`.
fn json_path<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in parse_steps(path) {
        found = found.into_iter().flat_map(|at| apply_step(at, &step)).collect();
    }
    found
}

enum Step {
    Key(String),
    Index(usize),
    All,
    Filter(Vec<String>, String),
}

fn apply_step<'a>(at: &'a Value, step: &Step) -> Vec<&'a Value> {
    match step {
        Step::Key(key) => at.get(key.as_str()).into_iter().collect(),
        Step::Index(index) => at.get(*index).into_iter().collect(),
        Step::All => at.as_array().into_iter().flatten().collect(),
        Step::Filter(path, wanted) => {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            at.as_array()
                .into_iter()
                .flatten()
                .filter(|item| tree::text(item, &path) == wanted)
                .collect()
        }
    }
}

fn parse_steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']').unwrap_or(inside.len());
            let (content, after) = inside.split_at_checked(end).unwrap_or((inside, ""));
            steps.extend(parse_bracket(content));
            rest = after.trim_start_matches(']').trim_start_matches('.');
            continue;
        }
        let end = end_of_key(rest);
        let (key, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        steps.push(Step::Key(key.replace("\\.", ".")));
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    steps
}

/// Returns the byte offset of the end of a key, which ends at a bracket or at an unescaped dot.
fn end_of_key(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            '\\' => escaped = true,
            '.' | '[' if !escaped => return at,
            _ => escaped = false,
        }
    }
    rest.len()
}

fn parse_bracket(content: &str) -> Option<Step> {
    if let Some(filter) = content
        .strip_prefix("?(")
        .and_then(|filter| filter.strip_suffix(')'))
    {
        let (path, wanted) = filter.split_once("==")?;
        let path = path
            .trim()
            .trim_start_matches('@')
            .trim_start_matches('.')
            .split('.')
            .map(str::to_owned)
            .collect();
        return Some(Step::Filter(
            path,
            wanted.trim().trim_matches(['"', '\'']).to_owned(),
        ));
    }
    if content == "*" {
        return Some(Step::All);
    }
    match content.parse() {
        Ok(index) => Some(Step::Index(index)),
        Err(_) => Some(Step::Key(content.trim_matches(['"', '\'']).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_find_fields_items_and_conditions() {
        let value = json!({
            "spec": {"a": [{"b": 1}, {"b": 2}]},
            "metadata": {"annotations": {"x.y/z": "q"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let check =
            |path: &str, expected: Value| assert_eq!(json!(json_path(&value, path)), expected, "{path}");
        check(".spec.a[1].b", json!([2]));
        check(".spec.a[*].b", json!([1, 2]));
        check(".status.conditions[?(@.type==\"Ready\")].status", json!(["True"]));
        check(".metadata.annotations['x.y/z']", json!(["q"]));
        check(".metadata.annotations.x\\.y/z", json!(["q"]));
        check(".nope", json!([]));
    }
}
