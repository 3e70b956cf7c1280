//! Hostile templates and values: they fail with an error, on a thread with a small stack, and leak no
//! memory.

// A test may fail by panicking. Functions have the signature of a table row, including those that cannot
// fail.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unnecessary_wraps
)]

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mainstay_template::{
    Call, CycleScope, Error, Failure, Function, GoKind, LimitExceeded, Limits, Map, MapType, Meter, NoHost,
    Object, Str, TemplateSet, Type, Value, execute, print_value,
};

/// Stack size in bytes that is sufficient for debug builds, which use several times the stack of release
/// builds.
const STACK: usize = 1 << 20;

fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(run)
        .expect("a thread");
    thread.join().expect("no panic");
}

const FUNCTIONS: &[Function] = &[
    Function {
        name: "include",
        params: &[Type::String, Type::Any],
        variadic: false,
        run: include,
    },
    Function {
        name: "tpl",
        params: &[Type::String, Type::Any],
        variadic: false,
        run: tpl,
    },
    Function {
        name: "dict",
        params: &[Type::Any],
        variadic: true,
        run: dict,
    },
    Function {
        name: "set",
        params: &[Type::MapOfAny, Type::String, Type::Any],
        variadic: false,
        run: set,
    },
    Function {
        name: "list",
        params: &[Type::Any],
        variadic: true,
        run: list,
    },
];

fn include(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (name, dot) = (call.str(0), call.arg(1));
    let out = call
        .templates
        .execute(&name.to_str_lossy(), dot, call.meter, call.host)?;
    Ok(Value::string(out))
}

fn tpl(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (text, dot) = (call.str(0), call.arg(1));
    let out = call
        .templates
        .execute_text("gotpl", &text, dot, call.meter, call.host)?;
    Ok(Value::string(out))
}

fn dict(call: &mut Call<'_>) -> Result<Value, Failure> {
    let pair = |pair: &[Value]| match pair {
        [Value::String(key), value] => (key.clone(), value.clone()),
        _ => (Str::default(), Value::Nil),
    };
    Ok(Value::map(call.args.chunks(2).map(pair).collect()))
}

fn set(call: &mut Call<'_>) -> Result<Value, Failure> {
    if let Some(map) = call.map(0) {
        map.insert(call.str(1), call.arg(2));
    }
    Ok(call.arg(0))
}

fn list(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::list(call.args.to_vec()))
}

fn run_with(limits: Limits, text: &str, dot: Value) -> Result<Vec<u8>, Error> {
    let mut templates = TemplateSet::new();
    templates.add_functions(FUNCTIONS);
    templates.parse("t", text)?;
    execute(&templates, "t", dot, &mut Meter::new(limits), &mut NoHost)
}

fn check(text: &str, expected: LimitExceeded) {
    let text = text.to_string();
    on_small_stack(move || {
        let limits = Limits {
            fuel: 2_000_000,
            output: 4 << 20,
            string: 2 << 20,
            ..Limits::default()
        };
        let error = run_with(limits, &text, Value::Nil).expect_err("a limit");
        assert_eq!(
            error.limit_exceeded,
            Some(expected),
            "{}",
            error.text.get(..200).unwrap_or(&error.text)
        );
    });
}

#[test]
fn recursive_templates_end_in_an_error() {
    check(
        r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#,
        LimitExceeded::Depth,
    );
    check(
        r#"{{define "a"}}{{if true}}{{range 1}}{{with 1}}{{template "a" .}}{{end}}{{end}}{{end}}{{end}}{{template "a"}}"#,
        LimitExceeded::Depth,
    );
    check(
        r#"{{define "a"}}{{include "a" .}}{{end}}{{include "a" .}}"#,
        LimitExceeded::Depth,
    );
    check(
        r#"{{define "a"}}{{template "b" .}}{{end}}{{define "b"}}{{print (include "a" .)}}{{end}}{{template "a" .}}"#,
        LimitExceeded::Depth,
    );
    check(r#"{{$t := "{{tpl . .}}"}}{{tpl $t $t}}"#, LimitExceeded::Depth);
}

#[test]
fn endless_loops_end_in_an_error() {
    check("{{range 9223372036854775807}}{{end}}", LimitExceeded::Fuel);
    check(
        "{{range 9223372036854775807}}0123456789{{end}}",
        LimitExceeded::Output,
    );
    check(
        "{{range 9223372036854775807}}{{$x := printf \"%1000000d\" 1}}{{end}}",
        LimitExceeded::Fuel,
    );
    check(
        r#"{{$s := "0123456789"}}{{range 64}}{{$s = print $s $s}}{{end}}"#,
        LimitExceeded::String,
    );
    check(
        "{{$l := list 1}}{{range 64}}{{$l = list $l $l}}{{end}}{{$x := print $l}}",
        LimitExceeded::String,
    );
}

#[test]
fn a_map_that_contains_itself_cannot_be_printed() {
    check(
        r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{$d}}"#,
        LimitExceeded::Depth,
    );
    check(
        r#"{{$d := dict}}{{$_ := set $d "d" (list $d)}}{{printf "%v" $d}}"#,
        LimitExceeded::Depth,
    );
    check(
        r#"{{$d := dict}}{{$_ := set $d "d" $d}}{{eq $d $d}}"#,
        LimitExceeded::Depth,
    );
}

#[test]
fn nesting_of_template_text_is_limited() {
    let check = |text: String, expected: &'static str| {
        on_small_stack(move || {
            let found = run_with(Limits::default(), &text, Value::Nil);
            match found {
                Ok(out) => assert_eq!(String::from_utf8_lossy(&out), expected),
                Err(error) => assert_eq!(error.text, expected),
            }
        });
    };
    let parens = |depth: usize| format!("{{{{{}1{}}}}}", "(".repeat(depth), ")".repeat(depth));
    check(parens(9_999), "1");
    check(parens(100_000), "template: t:1: max expression depth exceeded");
    let ifs = |depth: usize| format!("{}x{}", "{{if true}}".repeat(depth), "{{end}}".repeat(depth));
    check(ifs(9_999), "x");
    check(ifs(100_000), "template: t:1: max block depth exceeded");
    let chain = |length: usize| {
        format!(
            "{{{{if false}}}}{}{{{{else}}}}x{{{{end}}}}",
            "{{else if false}}".repeat(length)
        )
    };
    check(chain(9_000), "x");
    check(chain(50_000), "template: t:1: max block depth exceeded");
    check(format!("{{{{.{}}}}}", "a.".repeat(100_000) + "a"), "<no value>");
}

#[test]
fn an_error_shows_deep_nodes_without_overflow() {
    on_small_stack(|| {
        let text = format!(
            "{{{{print {}nil{} | len}}}}",
            "(print ".repeat(5_000),
            ")".repeat(5_000)
        );
        assert!(run_with(Limits::default(), &text, Value::Nil).is_ok());
        let text = format!("{{{{len {}1{}}}}}", "(".repeat(5_000), ")".repeat(5_000));
        let error = run_with(Limits::default(), &text, Value::Nil).expect_err("no length");
        assert!(error.text.ends_with("error calling len: len of type int"));
    });
}

#[test]
fn deep_values_are_rejected_and_dropped() {
    on_small_stack(|| {
        let deep = |depth: usize| (0..depth).fold(Value::Nil, |inner, _| Value::list(vec![inner]));
        let mut meter = Meter::new(Limits::default());
        assert_eq!(
            print_value(&deep(100_000), &mut meter).err(),
            Some(LimitExceeded::Depth)
        );
        let shown = print_value(&deep(4_000), &mut meter).expect("within the limit");
        assert_eq!(shown.len(), 2 * 4_000 + "<nil>".len());
        let nested = |inner, _| Value::map(BTreeMap::from([(Str::from("k"), inner)]));
        drop((0..200_000).fold(Value::Nil, nested));
    });
}

/// Increments a counter when it is dropped.
struct Canary(Rc<Cell<usize>>);

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

impl Object for Canary {
    fn type_name(&self) -> Cow<'static, str> {
        "*test.Canary".into()
    }
    fn go_kind(&self) -> GoKind {
        GoKind::Pointer
    }
    fn field(&self, _: &str) -> Option<Value> {
        None
    }
    fn print(&self) -> Str {
        Str::from("canary")
    }
    fn plain(&self) -> Value {
        Value::Nil
    }
}

#[test]
fn cycles_are_freed_when_the_run_ends() {
    let dropped = Rc::new(Cell::new(0));
    let dot = Value::object(Canary(Rc::clone(&dropped)));
    let text = r#"{{$d := dict "c" .}}{{$_ := set $d "self" $d}}{{$e := dict "l" (list $d)}}{{$_ := set $d "e" $e}}"#;
    run_with(Limits::default(), text, dot).expect("runs");
    assert_eq!(dropped.get(), 1);
}

#[test]
fn maps_held_by_the_caller_are_kept() {
    let dropped = Rc::new(Cell::new(0));
    let root = Map::new(MapType::Any, BTreeMap::new());
    let scope = CycleScope::new();
    root.insert("canary", Value::object(Canary(Rc::clone(&dropped))));
    let text = r#"{{$_ := set . "self" .}}{{$_ := set . "kept" (dict "root" .)}}"#;
    run_with(Limits::default(), text, Value::Map(root.clone())).expect("runs");
    assert_eq!(dropped.get(), 0);
    let Some(Value::Map(kept)) = root.get(b"kept") else {
        panic!("kept")
    };
    assert!(matches!(kept.get(b"root"), Some(Value::Map(map)) if map.is_same(&root)));
    drop((root, kept));
    assert_eq!(dropped.get(), 0, "the cycle keeps the value alive");
    drop(scope);
    assert_eq!(dropped.get(), 1, "the scope frees the cycle");
}

#[test]
fn tpl_can_call_templates_and_does_not_leak_definitions() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let found = run_with(Limits::default(), text, Value::from("dot"))
            .map(|out| String::from_utf8_lossy(&out).into_owned());
        assert_eq!(found.as_deref().map_err(|error| error.text.as_str()), expected);
    };
    check(
        r#"{{define "a"}}<{{.}}>{{end}}{{tpl "{{include \"a\" .}}" .}}"#,
        Ok("<dot>"),
    );
    check(
        r#"{{tpl "{{define \"b\"}}[{{.}}]{{end}}{{template \"b\" .}}{{include \"b\" 1}}" .}}"#,
        Ok("[dot][1]"),
    );
    check(
        r#"{{define "a"}}outer{{end}}{{tpl "{{define \"a\"}}inner{{end}}{{template \"a\"}}" .}}{{template "a"}}"#,
        Ok("innerouter"),
    );
    check(
        r#"{{define "a"}}outer{{end}}{{tpl "{{define \"a\"}} {{end}}{{template \"a\"}}" .}}"#,
        Ok("outer"),
    );
    check(
        r#"{{tpl "{{define \"b\"}}{{end}}" .}}{{include "b" .}}"#,
        Err(
            r#"template: t:1:37: executing "t" at <include "b" .>: error calling include: template: no template "b" associated with template "gotpl""#,
        ),
    );
    check(
        r#"{{tpl "{{nope}}" .}}"#,
        Err(
            r#"template: t:1:2: executing "t" at <tpl "{{nope}}" .>: error calling tpl: template: gotpl:1: function "nope" not defined"#,
        ),
    );
    check(
        "\n{{tpl \"a\\n{{.x.y}}\" .}}",
        Err(
            "template: t:2:2: executing \"t\" at <tpl \"a\\n{{.x.y}}\" .>: error calling tpl: template: gotpl:2:4: executing \"gotpl\" at <.x.y>: can't evaluate field x in type string",
        ),
    );
}

#[test]
fn error_contains_all_positions() {
    let error = run_with(
        Limits::default(),
        "\n  {{include \"a\" .}}{{define \"a\"}}\n{{len 1}}{{end}}",
        Value::Nil,
    );
    let at: Vec<_> = error
        .expect_err("an error")
        .at
        .iter()
        .map(|at| (at.template.clone(), at.line, at.column))
        .collect();
    assert_eq!(at, [("t".to_string(), 2, Some(4)), ("t".to_string(), 3, Some(2))]);
    let error = run_with(Limits::default(), "a\n{{nope}}", Value::Nil).expect_err("an error");
    assert_eq!((error.at[0].line, error.at[0].column), (2, None));
}

/// Appends an item to a copy of the list, as Go does.
fn append(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut items = call.list(0).map(|list| list.items().to_vec()).unwrap_or_default();
    items.push(call.arg(1));
    call.meter.allocate(items.len() * size_of::<Value>())?;
    call.meter.consume_fuel(items.len() as u64)?;
    Ok(Value::list(items))
}

#[test]
fn only_live_values_take_memory() {
    let run = |text: &str| {
        let append = Function {
            name: "append",
            params: &[Type::Any, Type::Any],
            variadic: false,
            run: append,
        };
        let mut templates = TemplateSet::new();
        templates.add_functions(FUNCTIONS);
        templates.add_functions(&[append]);
        templates.parse("t", text).expect("a template");
        let limits = Limits {
            memory: 4 << 20,
            ..Limits::default()
        };
        execute(&templates, "t", Value::Nil, &mut Meter::new(limits), &mut NoHost)
    };
    // Creates 4,000 lists of up to 4,000 items. Two of them are live at a time.
    let out = run("{{$l := list}}{{range 4000}}{{$l = append $l .}}{{end}}{{len $l}}").expect("fits");
    println!(
        "harden live-memory: {} appends within 4 MiB",
        String::from_utf8_lossy(&out)
    );
    assert_eq!(out, b"4000");
    // Creates the same lists, all of them live.
    let kept =
        "{{$l := list}}{{$all := list}}{{range 4000}}{{$l = append $l .}}{{$all = append $all $l}}{{end}}";
    let error = run(kept).expect_err("does not fit");
    assert_eq!(error.limit_exceeded, Some(LimitExceeded::Memory));
    // Creates a map that grows.
    let grown = "{{$d := dict}}{{range 100000}}{{$_ := set $d (print .) (list .)}}{{$_ = print .}}{{end}}";
    let error = run(grown).expect_err("does not fit");
    assert_eq!(error.limit_exceeded, Some(LimitExceeded::Memory));
    // Creates strings of 1 MB, first one at a time, then all at once.
    let one = "{{range 100}}{{$s := printf \"%1000000d\" .}}{{end}}";
    run(one).expect("fits");
    let all = "{{$l := list}}{{range 100}}{{$l = append $l (printf \"%1000000d\" .)}}{{end}}";
    let error = run(all).expect_err("does not fit");
    assert_eq!(error.limit_exceeded, Some(LimitExceeded::Memory));
}
