//! Parses arbitrary bytes as YAML and as JSON. No parser may panic, every parsed value must be writable, and
//! the syntax check must return the same errors as the parser.

use mainstay_yaml::{
    Budget, Numbers, Options, check_syntax, parse_json, parse_spanned, parse_with, to_json, to_yaml_v2,
    to_yaml_v3,
};

pub(super) fn check(text: &[u8]) {
    let budget = Budget {
        nodes: 100_000,
        alias_expansion: 20_000,
        ..Budget::default()
    };
    for strict in [false, true] {
        let options = Options {
            numbers: Numbers::Exact,
            strict,
            budget,
        };
        if let Ok(value) = parse_with(text, &options) {
            let _ = to_yaml_v2(&value);
            assert!(to_yaml_v3(&value).is_ok());
            let json = to_json(&value).expect("a parsed value has a JSON form");
            assert!(parse_json(json, Numbers::Exact, &budget).is_ok());
        }
    }
    // Spans of UTF-16 text refer to its UTF-8 form.
    let wide = text.starts_with(b"\xFF\xFE") || text.starts_with(b"\xFE\xFF");
    let parsed = parse_spanned(text, &budget);
    assert_eq!(
        check_syntax(text, &budget).err().as_ref(),
        parsed.as_ref().err(),
        "the syntax check differs from parsing"
    );
    for document in parsed.unwrap_or_default() {
        for node in &document.nodes {
            assert!(wide || node.span.start.offset <= node.span.end.offset);
            assert!(wide || node.span.end.offset <= text.len());
        }
    }
    let _ = parse_json(text, Numbers::Float, &budget);
}
