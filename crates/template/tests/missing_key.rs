//! Tests the value of a missing map key with each of Go's three options.

// A test may fail by panicking.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use mainstay_template::{Limits, Map, MapType, Meter, MissingKey, NoHost, Str, TemplateSet, Value, execute};

fn data() -> Value {
    let strings = BTreeMap::from([(Str::from("a"), Value::from("b"))]);
    Value::map(BTreeMap::from([
        (Str::from("m"), Value::map(BTreeMap::new())),
        (Str::from("n"), Value::Nil),
        (Str::from("s"), Value::Map(Map::new(MapType::String, strings))),
    ]))
}

/// Compares with the output of Go 1.26, or with its error without the prefix.
fn check(option: MissingKey, text: &str, expected: Result<&str, &str>) {
    let mut set = TemplateSet::named("t");
    set.set_missing_key(option);
    set.parse("t", text).expect("parses");
    let found = execute(&set, "t", data(), &mut Meter::new(Limits::default()), &mut NoHost);
    let found = found
        .map(|out| String::from_utf8_lossy(&out).into_owned())
        .map_err(|error| error.text);
    let found = found
        .as_deref()
        .map_err(|error| error.strip_prefix("template: t:1:").unwrap_or(error));
    assert_eq!(found, expected, "{option:?} {text}");
}

#[test]
fn by_default_a_missing_key_has_no_value() {
    let check = |text, expected| check(MissingKey::Default, text, expected);
    check("{{.x}}", Ok("<no value>"));
    check("{{.x.y}}", Ok("<no value>"));
    check("{{(.x).y}}", Ok("<no value>"));
    check("{{.m.x}}|{{print .x}}", Ok("<no value>|<nil>"));
    check(
        "{{len .x}}",
        Err(
            r#"2: executing "t" at <len .x>: error calling len: reflect: call of reflect.Value.Type on zero Value"#,
        ),
    );
    check(
        "{{.n.y}}",
        Err(r#"4: executing "t" at <.n.y>: nil pointer evaluating interface {}.y"#),
    );
    check("{{if .x}}1{{else}}2{{end}}", Ok("2"));
    check("{{$.s.x}}", Ok("<no value>"));
}

#[test]
fn the_zero_option_uses_the_element_type() {
    let check = |text, expected| check(MissingKey::Zero, text, expected);
    check("{{.x}}", Ok("<no value>"));
    check(
        "{{.x.y}}",
        Err(r#"4: executing "t" at <.x.y>: nil pointer evaluating interface {}.y"#),
    );
    check("{{(.x).y}}", Ok("<no value>"));
    check("{{.m.x}}|{{print .x}}", Ok("<no value>|<nil>"));
    check(
        "{{len .x}}",
        Err(r#"2: executing "t" at <len .x>: error calling len: len of nil pointer"#),
    );
    check("{{if .x}}1{{else}}2{{end}}", Ok("2"));
    check("[{{$.s.x}}]", Ok("[]"));
    check(r#"{{(index .m "q").z}}"#, Ok("<no value>"));
}

#[test]
fn the_error_option_names_the_key() {
    let check = |text, expected| check(MissingKey::Error, text, Err(expected));
    check(
        "{{.x}}",
        r#"2: executing "t" at <.x>: map has no entry for key "x""#,
    );
    check(
        "{{.x.y}}",
        r#"4: executing "t" at <.x.y>: map has no entry for key "x""#,
    );
    check(
        "{{(.x).y}}",
        r#"3: executing "t" at <.x>: map has no entry for key "x""#,
    );
    check(
        "{{.m.x}}",
        r#"4: executing "t" at <.m.x>: map has no entry for key "x""#,
    );
    check(
        "{{len .x}}",
        r#"6: executing "t" at <.x>: map has no entry for key "x""#,
    );
    check(
        "{{if .x}}{{end}}",
        r#"5: executing "t" at <.x>: map has no entry for key "x""#,
    );
    check(
        "{{$.s.x}}",
        r#"3: executing "t" at <$.s.x>: map has no entry for key "x""#,
    );
    check(
        r#"{{(index .m "q").z}}"#,
        r#"12: executing "t" at <"q">: nil data; no entry for key "z""#,
    );
}
