//! Tests of positions: spans of the nodes of a stream, and positions of errors.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking.

use mainstay_yaml::{Budget, Document, NodeId, NodeKind, parse, parse_spanned};

const TEXT: &str = "\
# first
a: &x 1
b:
- 'two é'
- {c: [d]}
e: |
  block
---
*x
";

/// Formats each node as `line:column text-of-its-span`.
fn shown(text: &str, document: &Document<'_>) -> Vec<String> {
    let line = |node: &mainstay_yaml::Node<'_>| {
        let slice = &text[node.span.start.offset..node.span.end.offset];
        format!("{}:{} {slice:?}", node.span.start.line, node.span.start.column)
    };
    document.nodes.iter().map(line).collect()
}

#[test]
fn nodes_have_spans() {
    let text = TEXT.split("---").next().unwrap();
    let documents = parse_spanned(text, &Budget::default()).unwrap();
    assert_eq!(
        shown(text, &documents[0]),
        [
            "2:1 \"a: &x 1\\nb:\\n- 'two é'\\n- {c: [d]}\\ne: |\\n  block\\n\"",
            "2:1 \"a\"",
            "2:4 \"&x 1\"",
            "3:1 \"b\"",
            "4:1 \"- 'two é'\\n- {c: [d]}\"",
            "4:3 \"'two é'\"",
            "5:3 \"{c: [d]}\"",
            "5:4 \"c\"",
            "5:7 \"[d]\"",
            "5:8 \"d\"",
            "6:1 \"e\"",
            "6:4 \"|\\n  block\\n\"",
        ]
    );
}

#[test]
fn values_are_found_by_their_keys() {
    let text = "a: &x {b: 1}\nc: *x\na2: [1]\n";
    let documents = parse_spanned(text, &Budget::default()).unwrap();
    let found = documents[0]
        .find(&["c", "b"])
        .and_then(|id| documents[0].node(id))
        .unwrap();
    assert_eq!(found.span.start.offset, 10);
    assert_eq!(documents[0].find(&["a2", "b"]), None);
    let alias = &documents[0].node(NodeId(6)).unwrap().kind;
    assert!(
        matches!(alias, NodeKind::Alias { name, target: NodeId(2) } if name == "x"),
        "{alias:?}"
    );
}

#[test]
fn every_document_is_parsed() {
    let count = |text: &str| parse_spanned(text, &Budget::default()).unwrap().len();
    assert_eq!(count(""), 0);
    assert_eq!(count("a\n---\nb\n...\n---\n"), 3);
}

#[test]
fn anchors_end_with_their_document() {
    let error = parse_spanned(TEXT, &Budget::default()).unwrap_err();
    assert_eq!(error.to_string(), "yaml: unknown anchor 'x' referenced");
    assert_eq!((error.at.line, error.at.column), (9, 1));
}

fn check_error(text: &[u8], expected: &str) {
    let error = parse(text, &Budget::default()).unwrap_err();
    let (message, at) = (error.to_string(), error.at);
    let message = message.strip_prefix("error converting YAML to JSON: ").unwrap();
    assert_eq!(
        format!("{}:{} @{} {message}", at.line, at.column, at.offset),
        expected
    );
}

#[test]
fn errors_have_a_position_and_the_line_go_prints() {
    check_error(
        b"a: b: c\n",
        "1:5 @4 yaml: mapping values are not allowed in this context",
    );
    check_error(
        b"x: 1\na: b: c\n",
        "2:5 @9 yaml: line 2: mapping values are not allowed in this context",
    );
    check_error(
        b"a: [1\nb: 2\n",
        "2:2 @7 yaml: line 1: did not find expected ',' or ']'",
    );
    check_error(
        b"a:\n\t- b\n",
        "2:1 @3 yaml: line 2: found character that cannot start any token",
    );
    check_error(
        "é: 'x\n".as_bytes(),
        "2:1 @7 yaml: line 2: found unexpected end of stream",
    );
    check_error(b"a: *b\n", "1:4 @3 yaml: unknown anchor 'b' referenced");
    check_error(b"a: !!int x\n", "1:4 @3 yaml: cannot decode !!str `x` as a !!int");
    check_error(
        b"a: {{ .x }}\n",
        "1:5 @4 yaml: invalid map key: map[interface {}]interface {}{\".x\":interface {}(nil)}",
    );
    let mixed = "? {1: a, b: c, yes: d, 1.5: e, 18446744073709551615: f, ~: [g]}\n";
    let printed = "interface {}(nil):[]interface {}{\"g\"}, \"b\":\"c\", 0xffffffffffffffff:\"f\", 1:\"a\", 1.5:\"e\", true:\"d\"";
    let invalid = format!("1:3 @2 yaml: invalid map key: map[interface {{}}]interface {{}}{{{printed}}}");
    check_error(mixed.as_bytes(), &invalid);
    check_error(
        b"~: {a: 1}\n",
        "1:1 @0 unsupported map key of type: %!s(<nil>), key: <nil>, value: map[interface {}]interface {}{\"a\":1}",
    );
    check_error(b"a: \x01\n", "1:1 @3 yaml: control characters are not allowed");
    check_error(
        b"\xEF\xBB\xBFa: b: c\n",
        "1:5 @7 yaml: mapping values are not allowed in this context",
    );
    check_error(b"a: .inf\n", "1:1 @0 json: unsupported value: +Inf");
}

#[test]
fn strict_parsing_rejects_repeated_keys() {
    let options = mainstay_yaml::Options {
        strict: true,
        ..Default::default()
    };
    let error = mainstay_yaml::parse_with("a: 1\nb: {c: 1, c: 2}\na: 3\n1: x\n1: y\n", &options).unwrap_err();
    let expected = "error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"c\" already set in map\n  \
                    line 3: key \"a\" already set in map\n  line 5: key 1 already set in map";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn spans_and_values_come_from_one_parse() {
    let text = "a: &x 1\nb: *x\na: 0x10\n---\n<<: 1\n";
    let both = mainstay_yaml::parse_spanned_values(text, &Budget::default()).unwrap();
    let spans: Vec<Document> = both.iter().map(|spanned| spanned.document.clone()).collect();
    assert_eq!(spans, parse_spanned(text, &Budget::default()).unwrap());
    let shown: Vec<String> = both
        .iter()
        .map(|spanned| format!("{:?}", spanned.value))
        .collect();
    assert_eq!(shown[0], r#"Ok(Map({"a": Int(16), "b": Int(1)}))"#);
    assert!(shown[1].contains("Merge"), "{}", shown[1]);
}

#[test]
fn syntax_can_be_checked_without_values() {
    let check = |text: &str| mainstay_yaml::check_syntax(text, &Budget::default());
    assert_eq!(
        check("a: 1\n---\nb: *x\n").unwrap_err(),
        parse_spanned("a: 1\n---\nb: *x\n", &Budget::default()).unwrap_err()
    );
    assert_eq!(check("a: 1\n---\nb: 2\n"), Ok(()));
}
