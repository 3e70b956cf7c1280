//! Helm values as an untyped map, so that no key is lost.

use serde_json::{Map, Value};

/// Values of a chart.
pub type Values = Map<String, Value>;

/// Returns the value at `path`. `null` counts as unset, like nil pointers upstream.
#[must_use]
pub fn at<'a>(values: &'a Values, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let start = values.get(*first)?;
    let found = rest
        .iter()
        .try_fold(start, |node, key| node.as_object()?.get(*key))?;
    (!found.is_null()).then_some(found)
}

/// Returns the string at `path`.
#[must_use]
pub fn text<'a>(values: &'a Values, path: &[&str]) -> Option<&'a str> {
    at(values, path)?.as_str()
}

/// Returns the boolean at `path`.
#[must_use]
pub fn flag(values: &Values, path: &[&str]) -> Option<bool> {
    at(values, path)?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, path: &[&str], expected: Option<&str>) {
        let values: Values = serde_json::from_str(json).unwrap();
        let found = at(&values, path).map(ToString::to_string);
        assert_eq!(found.as_deref(), expected, "{json} {path:?}");
    }

    #[test]
    fn a_path_consists_of_map_keys() {
        check(r#"{"a":{"b":1}}"#, &["a", "b"], Some("1"));
        check(r#"{"a":{"b":null}}"#, &["a", "b"], None);
        check(r#"{"a":{"b":1}}"#, &["a", "c"], None);
        check(r#"{"a":[1]}"#, &["a", "b"], None);
        check(r#"{"a":1}"#, &["a", "b"], None);
        check("{}", &[], None);
    }
}
