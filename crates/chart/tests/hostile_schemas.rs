//! Tests hostile schemas: each fails with a message, and no document outside of the schema is read.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons
)]

use std::fmt::Write as _;

use mainstay_chart::{ChartError, Dialect, File, KubeVersion, Loaded, PrepareOptions, load_files, prepare};

fn chart(schema: &str, values: &str) -> Loaded {
    let files = vec![
        File::new("Chart.yaml", b"apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        File::new("values.yaml", values.as_bytes()),
        File::new("values.schema.json", schema.as_bytes()),
    ];
    load_files(files, Dialect::Helm4).expect("the chart loads")
}

fn validate(schema: &str, values: &str) -> Result<(), ChartError> {
    let dialect = Dialect::Helm4;
    let kube_version = KubeVersion::parse("v1.36.0", dialect).expect("a version");
    let options = PrepareOptions {
        dialect,
        kube_version,
        skip_schema: false,
    };
    prepare(
        &chart(schema, values),
        &mainstay_yaml::Map::new(),
        &options,
        &mut Vec::new(),
    )
    .map(drop)
}

fn check(schema: &str, values: &str, expected: &str) {
    let text = validate(schema, values).expect_err("rejected").to_string();
    assert!(text.ends_with(expected), "{text}");
}

const OUTSIDE: &str = "references outside the schema are not allowed";

#[test]
fn references_outside_the_schema_are_not_read() {
    let outside = |url: &str| check(&format!("{{\"$ref\":\"{url}\"}}"), "a: 1\n", OUTSIDE);
    outside("file:///etc/passwd");
    outside("other.json");
    outside("../../etc/passwd");
    outside("//host/share");
    outside("http://127.0.0.1:1/x");
    outside("https://example.test/x#/a");
    check("{\"$schema\":\"http://example.test/draft\"}", "a: 1\n", OUTSIDE);
    check(
        "{\"$id\":\"http://example.test/a\",\"$ref\":\"b\"}",
        "a: 1\n",
        OUTSIDE,
    );
    check(
        "{\"$ref\":\"ftp://x\"}",
        "a: 1\n",
        "no URLLoader registered for \"ftp://x\"",
    );
}

#[test]
fn cyclic_and_expensive_schemas_are_rejected() {
    let cycle =
        "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}";
    assert!(
        validate(cycle, "a: 1\n")
            .expect_err("rejected")
            .to_string()
            .contains("causing reference cycle")
    );
    // Every level evaluates the next level three times.
    let mut defs = String::from("\"d0\":{\"type\":\"string\"}");
    for level in 1..40 {
        let below = format!("{{\"$ref\":\"#/$defs/d{}\"}}", level - 1);
        write!(defs, ",\"d{level}\":{{\"anyOf\":[{below},{below},{below}]}}").expect("memory");
    }
    let schema = format!("{{\"$defs\":{{{defs}}},\"properties\":{{\"a\":{{\"$ref\":\"#/$defs/d39\"}}}}}}");
    check(&schema, "a: 1\n", "schema takes too many steps to check");
}

#[test]
fn deep_schemas_fail_with_a_message() {
    let deep = format!("{}1{}", "{\"not\":".repeat(5000), "}".repeat(5000));
    check(&deep, "a: 1\n", "more than 200 levels of nesting");
    // A recursive schema that descends through all levels of the values.
    let follow = "{\"additionalProperties\":{\"$ref\":\"#\"}}";
    let values = format!("{}1{}", "{a: ".repeat(390), "}".repeat(390));
    check(follow, &values, "schema takes too many steps to check");
    assert!(validate(follow, "a: {b: {c: 1}}\n").is_ok());
}

#[test]
fn malformed_schemas_fail_with_a_message() {
    check("", "a: 1\n", "EOF");
    check("{", "a: 1\n", "unexpected EOF");
    check("{} {}", "a: 1\n", "invalid character after top-level value");
    check(
        "{\"$ref\":\"#/a~2b\"}",
        "a: 1\n",
        "invalid json-pointer \"file:///values.schema.json#/a~2b\"",
    );
    check("{\"$ref\":\"#/%zz\"}", "a: 1\n", "invalid URL escape \"%zz\"");
    check(
        "{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}",
        "a: 1\n",
        "duplicate anchor \"x\" in \"file:///values.schema.json\" at \"/$defs/a\" and \"/$defs/b\"",
    );
}
