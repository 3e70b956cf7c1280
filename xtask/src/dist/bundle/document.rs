//! YAML text and JSON values.

use anyhow::Context;
use mainstay_yaml::{Budget, Numbers, parse, parse_json, to_json, to_yaml_v3};
use serde_json::Value;

/// Returns the objects of a stream of documents.
pub(super) fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in text.split("\n---") {
        let value = parse(document.trim_start_matches("---"), &Budget::default())?;
        let object: Value = serde_json::from_str(&to_json(&value)?)?;
        if object.is_object() {
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Returns an object as YAML, with sorted keys.
pub(super) fn print(object: &Value) -> anyhow::Result<String> {
    let value = parse_json(object.to_string(), Numbers::Exact, &Budget::default())?;
    to_yaml_v3(&value).context("printing an object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_split() {
        let text = "---\n# Source: a\na: 1\n---\n---\nb: |\n  c\n";
        let found = documents(text).unwrap();
        assert_eq!(
            found,
            [serde_json::json!({"a": 1}), serde_json::json!({"b": "c\n"})]
        );
        assert_eq!(print(&found[0]).unwrap(), "a: 1\n");
    }
}
