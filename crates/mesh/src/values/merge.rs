//! Merges maps; all other values, including lists and `null`, are replaced.

use mainstay_api::Values;
use serde_json::Value;

/// Merges `over` into `base`. Both come from parsers with a depth limit, so recursion is safe.
pub(crate) fn merge(base: &mut Values, over: &Values) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (Some(base), value) => *base = value.clone(),
            (None, value) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns the map at `path`. Creates it if it is missing or `null`; returns `None` if the path contains a
/// value of another type.
pub(crate) fn map_at<'a>(values: &'a mut Values, path: &[&str]) -> Option<&'a mut Values> {
    path.iter().try_fold(values, |map, key| {
        let entry = map.entry((*key).to_owned()).or_insert(Value::Null);
        if entry.is_null() {
            *entry = Value::Object(Values::new());
        }
        entry.as_object_mut()
    })
}

/// Sets `key` if it is missing or `null`.
pub(crate) fn set_if_unset(map: &mut Values, key: &str, value: Value) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    fn check(name: &str, base: &str, over: &str, expected: &str) {
        let mut merged = map(base);
        merge(&mut merged, &map(over));
        assert_eq!(to_json(&merged), expected, "{name}");
    }

    #[test]
    fn maps_merge_and_all_else_is_replaced() {
        check("both empty", "{}", "{}", "{}");
        check("nil overrides", r#"{"a":1}"#, "{}", r#"{"a":1}"#);
        check("nil base", "{}", r#"{"a":1}"#, r#"{"a":1}"#);
        check(
            "adds toplevel keys",
            r#"{"a":1}"#,
            r#"{"b":2}"#,
            r#"{"a":1,"b":2}"#,
        );
        check(
            "adds nested keys",
            r#"{"a":{"b":1}}"#,
            r#"{"a":{"c":2}}"#,
            r#"{"a":{"b":1,"c":2}}"#,
        );
        check(
            "overrides overrides base",
            r#"{"a":{"b":1,"c":2},"d":3}"#,
            r#"{"a":{"b":4},"d":5}"#,
            r#"{"a":{"b":4,"c":2},"d":5}"#,
        );
        check(
            "mismatched types",
            r#"{"a":{"b":1},"c":3}"#,
            r#"{"a":2,"c":{"d":4}}"#,
            r#"{"a":2,"c":{"d":4}}"#,
        );
        check(
            "lists are replaced",
            r#"{"a":[1,2]}"#,
            r#"{"a":[3]}"#,
            r#"{"a":[3]}"#,
        );
        check(
            "null replaces",
            r#"{"a":{"b":1}}"#,
            r#"{"a":null}"#,
            r#"{"a":null}"#,
        );
    }

    #[test]
    fn a_missing_path_is_created() {
        let mut values = map(r#"{"a":null,"b":"text"}"#);
        assert!(map_at(&mut values, &["a", "x"]).is_some());
        assert!(map_at(&mut values, &["b", "x"]).is_none());
        assert_eq!(to_json(&values), r#"{"a":{"x":{}},"b":"text"}"#);
    }
}
