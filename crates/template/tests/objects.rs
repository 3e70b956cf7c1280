//! Tests of native objects: fields, methods with Go's argument checks, and ranges over objects that are
//! maps.

// A test may fail by panicking.
#![allow(clippy::expect_used)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use mainstay_template::{
    Call, Failure, GoKind, Limits, Meter, NoHost, Object, Signature, Str, TemplateSet, Type, Value, execute,
};

/// A pointer to a struct with a field and methods.
struct Version;

impl Object for Version {
    fn type_name(&self) -> Cow<'static, str> {
        "*test.Version".into()
    }
    fn go_kind(&self) -> GoKind {
        GoKind::Pointer
    }
    fn field(&self, name: &str) -> Option<Value> {
        (name == "Major").then(|| Value::from("1"))
    }
    fn method(&self, name: &str) -> Option<Signature> {
        let params: &'static [Type] = match name {
            "Fail" => &[],
            "Join" => &[Type::String, Type::Int],
            _ => return None,
        };
        Some(Signature {
            params,
            variadic: false,
        })
    }
    fn call(&self, name: &str, call: &mut Call<'_>) -> Result<Value, Failure> {
        match name {
            "Join" => Ok(Value::from(format!("{}/{}", call.str(0), call.int(1)))),
            _ => Err(Failure::message("broken")),
        }
    }
    fn print(&self) -> Str {
        Str::from("v1")
    }
    fn is_stringer(&self) -> bool {
        true
    }
    fn plain(&self) -> Value {
        Value::Nil
    }
}

/// A named map.
struct Files;

impl Object for Files {
    fn type_name(&self) -> Cow<'static, str> {
        "test.Files".into()
    }
    fn go_kind(&self) -> GoKind {
        GoKind::Map
    }
    fn field(&self, name: &str) -> Option<Value> {
        matches!(name, "a" | "b").then(|| Value::from(name.to_uppercase()))
    }
    fn print(&self) -> Str {
        Str::from("files")
    }
    fn plain(&self) -> Value {
        Value::Nil
    }
    fn map_keys(&self) -> Vec<Str> {
        vec![Str::from("a"), Str::from("b")]
    }
}

/// Compares the output, or the error without its prefix.
fn check(text: &str, expected: Result<&str, &str>) {
    let data = Value::map(BTreeMap::from([
        (Str::from("V"), Value::object(Version)),
        (Str::from("F"), Value::object(Files)),
    ]));
    let mut set = TemplateSet::named("t");
    set.parse("t", text).expect("parses");
    let found = execute(&set, "t", data, &mut Meter::new(Limits::default()), &mut NoHost);
    let found = found
        .map(|out| String::from_utf8_lossy(&out).into_owned())
        .map_err(|error| error.text);
    let found = found
        .as_deref()
        .map_err(|error| error.strip_prefix("template: t:1:").unwrap_or(error));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn fields_and_methods_are_reached_by_name() {
    check(
        "{{.V}} {{.V.Major}} {{printf \"%s %q %T\" .V .V .V}}",
        Ok("v1 1 v1 \"v1\" *test.Version"),
    );
    check(
        "{{.V.Join \"a\" 2}} {{3 | .V.Join \"b\"}} {{(.V).Join \"c\" 4}}",
        Ok("a/2 b/3 c/4"),
    );
    check(
        "{{with $v := .V}}{{$v.Join \"a\" 1}}{{end}}{{if .V}}true{{end}}",
        Ok("a/1true"),
    );
    check(
        "{{range $k, $v := .F}}{{$k}}{{$v}} {{end}}{{.F.a}} {{len .F}} {{index .F \"a\"}} {{.F.zz}}",
        Ok("aA bB A 2 A <no value>"),
    );
    check("{{.F}} {{printf \"%T\" .F}}", Ok("map[a:A b:B] test.Files"));
}

#[test]
fn argument_errors_equal_gos() {
    let check = |text, expected| check(text, Err(expected));
    check(
        "{{.V.Nope}}",
        r#"4: executing "t" at <.V.Nope>: can't evaluate field Nope in type interface {}"#,
    );
    check(
        "{{(.V).Nope}}",
        r#"3: executing "t" at <.V>: can't evaluate field Nope in type *test.Version"#,
    );
    check(
        "{{.V.Join}}",
        r#"4: executing "t" at <.V.Join>: wrong number of args for Join: want 2 got 0"#,
    );
    check(
        "{{.V.Join 1 2}}",
        r#"10: executing "t" at <1>: expected string; found 1"#,
    );
    check(
        "{{.V.Join \"a\" .F}}",
        r#"14: executing "t" at <.F>: wrong type for value; expected int; got test.Files"#,
    );
    check(
        "{{.V.Fail}}",
        r#"4: executing "t" at <.V.Fail>: error calling Fail: broken"#,
    );
    check(
        "{{.V.Major 1}}",
        r#"4: executing "t" at <.V.Major>: Major has arguments but cannot be invoked as function"#,
    );
    check(
        "{{.F.a 1}}",
        r#"4: executing "t" at <.F.a>: a is not a method but has arguments"#,
    );
    check(
        "{{len .V}}",
        r#"2: executing "t" at <len .V>: error calling len: len of type test.Version"#,
    );
}
