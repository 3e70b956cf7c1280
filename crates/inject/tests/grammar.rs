//! The proxy's configuration language: parses every line of `grammar/vectors.txt` and compares the result
//! with the expected one.
//!
//! A line is `KIND DIALECT "TEXT" => RESULT`: the text as a JSON string, the result as the parsed value and,
//! after ` ! `, each error as `START..END CODE: MESSAGE`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test reads its fixtures and fails by panicking"
)]

use std::fmt::Write as _;

use mainstay_inject::grammar::{Dialect, Flaw, Ingress, parse_admin, parse_egress, parse_ingress};

const VECTORS: &str = include_str!("grammar/vectors.txt");

fn parse(kind: &str, dialect: Dialect, text: &str) -> String {
    match kind {
        "ingress" => {
            let parsed = parse_ingress(text, dialect);
            let value = match parsed.value {
                Ingress::Disabled => "disabled".to_owned(),
                Ingress::Ports(ports) => joined(ports.iter().map(|it| {
                    let how = if it.bypass { "plain" } else { "tls" };
                    format!("{}={} {how}", it.name, it.port)
                })),
            };
            format_result(value, &parsed.flaws)
        }
        "egress" => {
            let parsed = parse_egress(text, dialect);
            let entries = parsed.value.iter();
            let value =
                joined(entries.map(|it| format!("{}={} -> {} {}", it.name, it.listen, it.host, it.port)));
            format_result(value, &parsed.flaws)
        }
        "admin" => {
            let parsed = parse_admin(text);
            format_result(
                parsed
                    .value
                    .map_or_else(|| "none".to_owned(), |port| port.to_string()),
                &parsed.flaws,
            )
        }
        other => panic!("no kind {other:?}"),
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}

fn format_result(mut value: String, flaws: &[Flaw]) -> String {
    for flaw in flaws {
        let weight = if flaw.is_error() { "" } else { " (warning)" };
        write!(
            value,
            " ! {}..{} {}{weight}: {}",
            flaw.range.start, flaw.range.end, flaw.code, flaw.message
        )
        .unwrap();
    }
    value
}

/// Splits a line into kind, dialect, text and expected result.
fn parse_vector(line: &str) -> (&str, Dialect, String, &str) {
    let (left, expected) = line
        .split_once(" => ")
        .unwrap_or((line.trim_end_matches(" =>"), ""));
    let mut words = left.splitn(3, ' ');
    let (kind, dialect, text) = (
        words.next().unwrap(),
        words.next().unwrap(),
        words.next().unwrap(),
    );
    let dialect = match dialect {
        "rfc" => Dialect::Rfc,
        "later" => Dialect::Later,
        other => panic!("no dialect {other:?}"),
    };
    let value = mainstay_yaml::parse_json(
        text.trim(),
        mainstay_yaml::Numbers::default(),
        &mainstay_yaml::Budget::default(),
    )
    .unwrap();
    let mainstay_yaml::Value::String(text) = value else {
        panic!("{text} is no string")
    };
    (kind, dialect, text, expected)
}

#[test]
fn every_vector_parses_as_expected() {
    let mut wrong = String::new();
    let lines = || {
        VECTORS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    for line in lines() {
        let (kind, dialect, text, expected) = parse_vector(line);
        let found = parse(kind, dialect, &text).replace('\n', "\\n");
        if found != expected {
            writeln!(wrong, "{line}\n  found {found}").unwrap();
        }
    }
    println!("table grammar: {} rows", lines().count());
    assert_eq!(wrong, "");
}

#[test]
fn error_positions_are_within_the_text() {
    for line in VECTORS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (_, dialect, text, _) = parse_vector(line);
        let flaws = [
            parse_ingress(&text, dialect).flaws,
            parse_egress(&text, dialect).flaws,
            parse_admin(&text).flaws,
        ];
        for flaw in flaws.concat() {
            assert!(text.get(flaw.range.clone()).is_some(), "{text:?} {flaw:?}");
        }
    }
}
