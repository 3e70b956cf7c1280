//! Tests the positions of list items.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking.

use mainstay_yaml::{Budget, outline};

/// Compares the text of each item and the text after the list. `-` means that there is no outline.
fn check(text: &str, expected: &[&str]) {
    let found = outline(text, "items", &Budget::default()).unwrap();
    let shown: Vec<&str> = found.as_ref().map_or(vec!["-"], |outline| {
        let items = outline
            .items
            .iter()
            .map(|item| text[item.start..item.end].trim_end());
        items.chain([text[outline.rest..].trim_end()]).collect()
    });
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn items_are_found() {
    check(
        "items:\n- a: 1\n  b: [x]\n- c\nkind: List\n",
        &["a: 1\n  b: [x]", "c", "kind: List"],
    );
    check(
        "kind: List\nitems:\n  # c\n  - a: 1\n  - - b\n    - c\n",
        &["a: 1", "- b\n    - c", ""],
    );
    check(
        "{\"kind\": \"List\", \"items\": [{\"a\": {}}, [1], 2], \"x\": {\"items\": []}}",
        &["{\"a\": {}}", "[1]", "2", "\"x\": {\"items\": []}}"],
    );
    check("items: []\n", &[""]);
    check("{items: [a]}\n", &["a", "}"]);
    check("---\na: {items: [1]}\nitems:\n- x\n...\n", &["x", "..."]);
}

#[test]
fn items_may_have_anchors_and_tags() {
    check("a: &x 1\nitems:\n- *x\n", &["*x", ""]);
    check("items:\n- &x 1\n- *x\n", &["&x 1", "*x", ""]);
    check("items:\n- !!str 1\n", &["!!str 1", ""]);
    let outline = outline("items:\n- &x 1\n- 2\n- *x\n", "items", &Budget::default());
    let outline = outline.unwrap().unwrap();
    assert_eq!(outline.references, [(2, 0)]);
    assert_eq!(outline.shared.get("x"), Some(&0));
}

#[test]
fn text_whose_meaning_depends_on_all_items_has_no_outline() {
    check("items:\n- &x 1\n- &x 2\n- *x\n", &["-"]);
    check("items:\n- &x 1\nlast: *x\n", &["-"]);
    check("items:\n- 1\nitems:\n- 2\n", &["-"]);
    check("items: {a: 1}\n", &["-"]);
    check("items: a\n", &["-"]);
    check("kind: List\n", &["-"]);
    check("- items\n", &["-"]);
    check("? [a]\n: b\nitems: [1]\n", &["-"]);
    check("items: [1]\n---\nitems: [2]\n", &["-"]);
    check("", &["-"]);
}

#[test]
fn invalid_yaml_is_an_error() {
    let error = outline("items:\n- a: [\n", "items", &Budget::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "yaml: line 2: did not find expected node content"
    );
}
