//! Tests edits of objects at paths.

use mainstay_yaml::{Budget, to_json};

use super::*;

/// Applies one patch to an object and compares the result, or the error with its hint.
fn check(object: &str, path: &str, value: Option<&str>, expected: &str) {
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: Budget::default(),
    };
    let read = |text: &str| parse_with(text, &options).unwrap();
    let mut object = read(object);
    let value = value.map(|value| parse_map_text(read(value)));
    let mut steps = Steps::default();
    let done = Path::parse(path)
        .map_err(OverlayError::from)
        .and_then(|path| Editor { steps: &mut steps }.edit(&mut object, &path, value));
    let found = match done {
        Ok(()) => to_json(&object).unwrap(),
        Err(error) => match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        },
    };
    assert_eq!(found, expected, "{path}");
}

#[test]
fn values_are_set_and_created() {
    check("{a: {b: 1}}", "a.b", Some("2"), r#"{"a":{"b":2}}"#);
    check("{}", "a.b.c", Some("x"), r#"{"a":{"b":{"c":"x"}}}"#);
    check("{}", "a[0].b", Some("x"), r#"{"a":[{"b":"x"}]}"#);
    check("{a: null}", "a.b", Some("1"), r#"{"a":{"b":1}}"#);
    check("{a: [1, 2]}", "a[0]", Some("9"), r#"{"a":[9,2]}"#);
    check("{a: [1, 2]}", "a[7]", Some("9"), r#"{"a":[1,2,9]}"#);
    check("{a: [1, 2]}", "a.[-1]", Some("9"), r#"{"a":[1,2,9]}"#);
    check(
        "{a: [{id: x, v: 1}, {id: w}]}",
        "a[id:w].v",
        Some("2"),
        r#"{"a":[{"id":"x","v":1},{"id":"w","v":2}]}"#,
    );
    check(
        "{a: [{id: 80}]}",
        "a[id:80]",
        Some("{id: 81}"),
        r#"{"a":[{"id":81}]}"#,
    );
    check(
        "{a: [--x=30m, --w]}",
        "a.[30m]",
        Some("--x=1h"),
        r#"{"a":["--x=1h","--w"]}"#,
    );
    check("{a: [--x, y:z]}", "a.[y:z]", Some("w"), r#"{"a":["--x","w"]}"#);
}

#[test]
fn values_are_removed() {
    check("{a: {b: 1, c: 2}}", "a.b", None, r#"{"a":{"c":2}}"#);
    check("{a: [1, 2]}", "a[0]", None, r#"{"a":[2]}"#);
    check("{a: [[1, 2]]}", "a[0][1]", None, r#"{"a":[[1]]}"#);
    check(
        "{a: [{id: x}, {id: w}]}",
        "a[id:x]",
        None,
        r#"{"a":[{"id":"w"}]}"#,
    );
    check("{a: [one, two]}", "a[:^t]", None, r#"{"a":["one"]}"#);
}

#[test]
fn text_that_contains_a_map_is_parsed() {
    check("{}", "a", Some("'b: 1'"), r#"{"a":{"b":1}}"#);
    check(
        "{}",
        "a",
        Some("\"b: 1\\nc:\\n- d\""),
        r#"{"a":{"b":1,"c":["d"]}}"#,
    );
    check("{}", "a", Some("'{\"b\": 1}'"), r#"{"a":"{\"b\": 1}"}"#);
    check("{}", "a", Some("'host:80'"), r#"{"a":"host:80"}"#);
}

#[test]
fn missing_paths_are_reported_with_candidates() {
    check(
        "{a: {port: 1}}",
        "a.prot",
        None,
        "a has no \"prot\"; did you mean \"port\"?",
    );
    check(
        "{a: {x: 1, z: 2}}",
        "a.value",
        None,
        "a has no \"value\"; there are x, z",
    );
    check(
        "{a: [{id: x}]}",
        "a[id:q].v",
        Some("1"),
        "no item of a matches [id:q]; there are [id:x]",
    );
    check(
        "{a: [one]}",
        "a[:zzz]",
        Some("1"),
        "no item of a matches [:zzz]; there are [one]",
    );
    check("{a: 1}", "a.b", Some("1"), "a is a number, not a map");
    check("{a: {}}", "a[0]", Some("1"), "a is a map, not a list");
    check(
        "{a: [{id: x}]}",
        "a.n",
        Some("1"),
        "a is a list: select an item with [key:value] or [index]",
    );
    check("{a: [x]}", "a[:(]", Some("1"), "[(] is not a valid pattern");
}
