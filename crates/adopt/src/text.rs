//! Conversion of YAML text to JSON values.

use mainstay_yaml::{Error, Numbers, Options, parse_with};
use serde_json::Value;

/// Parses one document. Integers and floats are preserved.
pub(crate) fn parse_document(text: &[u8]) -> Result<Value, Error> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    Ok(parse_with(text, &options)?.into())
}

/// Parses a stream of documents. Documents without a kind are ignored.
pub(crate) fn parse_documents(text: &str) -> Result<Vec<Value>, Error> {
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    let parsed: Result<Vec<Value>, Error> =
        parts.iter().map(|part| parse_document(part.as_bytes())).collect();
    let is_object = |value: &Value| value.get("kind").is_some_and(Value::is_string);
    Ok(parsed?.into_iter().filter(is_object).collect())
}

/// Parses a stream of objects. A `List` is replaced by its items.
pub fn parse_objects(text: &str) -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    for mut document in parse_documents(text)? {
        match document.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => objects.append(items),
            None => objects.push(document),
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_list_are_objects() {
        let text = "kind: Secret\nmetadata: {name: a}\n---\nkind: List\nitems:\n- kind: Secret\n  metadata: {name: b}\n---\n";
        let names: Vec<_> = parse_objects(text)
            .unwrap()
            .iter()
            .map(|object| object.pointer("/metadata/name").cloned())
            .collect();
        assert_eq!(names, [Some("a".into()), Some("b".into())]);
    }
}
