//! Compares this crate with Go's standard library: every code point, and random numbers.

// A test fails by panicking.
#![allow(clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use mainstay_gostd::float::format_float;
use mainstay_gostd::quote::{quote, quote_rune, quote_to_ascii};
use mainstay_gostd::unicode::is_print;
use mainstay_gostd::url::query_escape;
use mainstay_testkit::{Oracle, OracleRequest, Random};

/// Code points per request.
const CHUNK: usize = 0x4000;

#[test]
fn every_code_point_is_quoted_as_in_go() {
    let text = "{{range .}}{{printf \"%q\" .}} {{printf \"%+q\" .}} {{urlquery .}}\n{{end}}";
    let characters: Vec<char> = ('\0'..=char::MAX).collect();
    let mut oracle = Oracle::start().expect("the oracle starts");
    for chunk in characters.chunks(CHUNK) {
        let data = serde_json::to_vec(chunk).expect("characters are JSON strings");
        let expected = query(&mut oracle, text, data);
        for (character, expected) in chunk.iter().zip(expected.split('\n')) {
            let raw = character.to_string();
            let found = format!("{} {} {}", quote(&raw), quote_to_ascii(&raw), query_escape(&raw));
            assert_eq!(found, expected, "U+{:04X}", u32::from(*character));
            let printed = expected.starts_with(&format!("\"{raw}\""));
            let escaped = matches!(character, '"' | '\\');
            assert_eq!(
                is_print(*character),
                printed || escaped,
                "U+{:04X}",
                u32::from(*character)
            );
        }
    }
}

#[test]
fn every_code_point_is_a_rune_literal_as_in_go() {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let codes: Vec<u32> = (0..=0x0011_0000).collect();
    for chunk in codes.chunks(CHUNK) {
        let data = serde_json::to_vec(chunk).expect("numbers are JSON");
        let expected = query(&mut oracle, "{{range .}}{{printf \"%q\" (int .)}}\n{{end}}", data);
        for (code, expected) in chunk.iter().zip(expected.split('\n')) {
            assert_eq!(quote_rune(*code), expected, "U+{code:04X}");
        }
    }
}

#[test]
fn random_floats_are_formatted_as_in_go() {
    let formats: &[(char, Option<usize>)] = &[
        ('g', None),
        ('e', Some(17)),
        ('e', Some(4)),
        ('f', Some(3)),
        ('g', Some(5)),
        ('x', None),
        ('X', Some(3)),
        ('b', None),
    ];
    let text = "{{range .}}{{printf \"%g %.17e %.4e %.3f %.5g %x %.3X %b\" . . . . . . . .}}\n{{end}}";
    let mut random = Random::new(20_261);
    let extremes = [
        0.0,
        -0.0,
        1.0,
        1e6,
        1e21,
        1e-5,
        123_456.0,
        f64::MIN_POSITIVE,
        f64::MAX,
    ];
    let drawn = std::iter::repeat_with(|| f64::from_bits(random.next_u64()));
    let numbers: Vec<f64> = extremes
        .into_iter()
        .chain(drawn.filter(|number| number.is_finite()).take(20_000))
        .collect();
    let data = serde_json::to_vec(&numbers).expect("finite floats are JSON");
    let mut oracle = Oracle::start().expect("the oracle starts");
    let expected = query(&mut oracle, text, data);
    for (number, expected) in numbers.iter().zip(expected.split('\n')) {
        let mut found = String::new();
        for (at, (format, precision)) in formats.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(found, "{space}{}", format_float(*number, *format, *precision));
        }
        assert_eq!(found, expected, "{number:?}");
    }
}

/// Runs `text` in Go's template engine with Sprig's functions.
fn query(oracle: &mut Oracle, text: &str, json: Vec<u8>) -> String {
    let request = OracleRequest {
        op: "template",
        text: text.into(),
        json,
        funcs: "sprig",
        ..OracleRequest::default()
    };
    let response = oracle.query(&request).expect("the oracle responds");
    assert_eq!(response.err, "");
    String::from_utf8(response.out).expect("quoted text is UTF-8")
}
