//! Hostile texts: each results in an error or a value. A text with quadratic cost takes minutes here;
//! `cargo xtask hostile` limits time and memory.

#![allow(clippy::unwrap_used)] // A test fails by panicking.
#![allow(clippy::format_collect, clippy::format_push_string)] // Speed is irrelevant here.

use mainstay_yaml::{Budget, Numbers, Value, parse, parse_json, parse_spanned, to_yaml_v2};

fn check(name: &str, text: &str, expected: &str) {
    let ours = match parse(text, &Budget::default()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert!(
        ours.ends_with(expected) && ours.is_empty() == expected.is_empty(),
        "{name}: {ours:.200}"
    );
    let _ = parse_spanned(text, &Budget::default());
}

#[test]
fn deep_nesting_is_an_error() {
    let too_deep = "more than 400 levels of nesting";
    for piece in [
        "[", "{", "? ", "- ", "[a: ", "{a: ", "- - ", "{? ", "!!a [", "&a [",
    ] {
        check(piece, &piece.repeat(1 << 20 >> piece.len().ilog2()), too_deep);
    }
    let steps: String = (0..1500)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    check("steps", &steps, too_deep);
}

#[test]
fn maximum_nesting_fits_a_2_mib_stack() {
    let text = format!("{}{}", "[".repeat(400), "]".repeat(400));
    let work = move || {
        let value = parse(&text, &Budget::default()).unwrap();
        assert_eq!(value, value.clone());
        assert!(to_yaml_v2(&value).unwrap().ends_with("[]\n"));
        drop(value);
    };
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn hostile_aliases_are_errors() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..40 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    check(
        "a billion laughs",
        &text,
        "yaml: document contains excessive aliasing",
    );
    check("itself", "a: &a [*a]\n", "yaml: anchor 'a' value contains itself");
    check(
        "merged into itself",
        "a: &a {<<: *a}\n",
        "yaml: anchor 'a' value contains itself",
    );
    let chain: String = (1..5000)
        .map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1))
        .collect();
    check(
        "a long chain",
        &format!("a0: &a0 x\n{chain}"),
        "more than 400 levels of nesting",
    );
}

#[test]
fn long_texts_end_in_an_error_or_a_value() {
    let many = 50_000;
    check("spaces", &" ".repeat(many), "");
    check("comments", &"#\n".repeat(many), "");
    check("one key", &"a".repeat(many), "");
    check(
        "a key too long",
        &format!("{}: 1\n", "a".repeat(2000)),
        "mapping values are not allowed in this context",
    );
    check("quotes", &"'".repeat(many), "");
    check(
        "colons",
        &":".repeat(many),
        "mapping values are not allowed in this context",
    );
    check("brackets", &"[]".repeat(many), "");
    check("closing", &"]".repeat(many), "did not find expected node content");
    check("explicit keys", &"?\n".repeat(many), "key: <nil>, value: <nil>");
    check(
        "commas",
        &format!("[{}", ",".repeat(many)),
        "did not find expected node content",
    );
    check(
        "keys in keys",
        &format!("[{}", "[[[[[[[[]: a]: a]: a]: a]: a]: a]: a],".repeat(many / 40)),
        "did not find expected node content",
    );
    check("folded", &format!("a: >\n{}", "  x\n\n".repeat(many)), "");
    check("lines in quotes", &format!("a: \"{}\"", "x\n\n".repeat(many)), "");
    check("words", &format!("a: {}", "x\n ".repeat(many)), "");
    check("tags", &"!a ".repeat(many), "");
    check("entries", &"- a\n".repeat(many), "");
}

#[test]
fn repeated_keys_are_accepted() {
    check("one key", &"a: 1\n".repeat(20_000), "");
    let keys: String = (0..20_000)
        .map(|n| format!("{}a: 1\n", n % 1000 * 7919 + n))
        .collect();
    check("many keys", &keys, "");
    let value = parse(&keys, &Budget::default()).unwrap();
    to_yaml_v2(&value).unwrap();
}

#[test]
fn exceeded_budgets_are_errors() {
    let small = Budget {
        bytes: 100,
        depth: 5,
        nodes: 20,
        alias_expansion: 5,
        expanded_bytes: 30,
        documents: 2,
    };
    let error_text = |text: &str| parse(text, &small).unwrap_err().to_string();
    let prefix = "error converting YAML to JSON: more than";
    assert_eq!(
        error_text(&"a".repeat(101)),
        format!("{prefix} 100 bytes of text")
    );
    assert_eq!(
        error_text("[[[[[[1]]]]]]"),
        format!("{prefix} 5 levels of nesting")
    );
    assert_eq!(
        error_text("[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,0,0]"),
        format!("{prefix} 20 nodes")
    );
    assert_eq!(
        error_text("a: &a [1, 2]\nb: [*a, *a]"),
        format!("{prefix} 5 nodes from aliases")
    );
    assert_eq!(
        error_text("a: &a 0123456789\nb: [*a, *a, *a, *a]"),
        format!("{prefix} 30 bytes from aliases")
    );
    let error = parse_spanned("a\n---\nb\n---\nc\n", &small).unwrap_err();
    assert_eq!(error.to_string(), "more than 2 documents");
}

#[test]
fn hostile_json_is_an_error_or_a_value() {
    let read = |text: &str| parse_json(text, Numbers::Float, &Budget::default());
    let too_deep = "more than 400 levels of nesting";
    assert_eq!(read(&"[".repeat(1 << 20)).unwrap_err().to_string(), too_deep);
    assert_eq!(
        read(&"{\"a\":".repeat(1 << 20)).unwrap_err().to_string(),
        too_deep
    );
    assert_eq!(
        read(&"1".repeat(1 << 20)).unwrap_err().to_string().len(),
        (1 << 20) + 60
    );
    assert_eq!(read("[]").unwrap(), Value::List(vec![]));
}
