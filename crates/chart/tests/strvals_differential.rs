//! Compares Helm with this crate on random `--set` arguments: trees and messages must be equal.
// Tests may panic, run the real Helm and access files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons
)]

use mainstay_chart::{Dialect, Mode, set_values};
use mainstay_testkit::{CaseCounts, Oracle, OracleRequest, Random, case_count};
use mainstay_yaml::{Map, Value};

/// Fragments of valid and invalid arguments.
const PIECES: [&str; 54] = [
    "a",
    "b",
    "c",
    "key",
    "=",
    "=",
    "=",
    "=",
    ".",
    ".",
    "[",
    "]",
    "[0]",
    "[1]",
    "[2].",
    "[0][1]",
    ",",
    ",",
    "{",
    "}",
    "{a,b}",
    "{1,true}",
    "\\",
    "\\,",
    "\\.",
    "\\=",
    "1",
    "0",
    "-1",
    "+7",
    "007",
    "true",
    "FALSE",
    "null",
    "Null",
    " ",
    "é",
    "日",
    "'",
    "\"",
    "[-1]",
    "[x]",
    "[65537]",
    "[99999999999999999999]",
    "a.b",
    "a[0].c",
    "1e3",
    "\n",
    "{}",
    "\"x\"",
    "[1,2]",
    "{\"a\":1}",
    "1.5",
    "falſe",
];

fn argument(random: &mut Random) -> String {
    let count = 1 + random.below(9);
    (0..count).map(|_| *random.pick(&PIECES)).collect()
}

/// Generates an argument that is usually valid: assignments joined with commas.
fn assignments(random: &mut Random) -> String {
    let count = 1 + random.below(3);
    let one = |random: &mut Random| {
        let mut path = String::from(*random.pick(&["a", "b", "a.b", "b.c"]));
        for _ in 0..random.below(3) {
            let step = *random.pick(&["[0]", "[1]", "[3]", ".x", ".y"]);
            path.push_str(step);
        }
        let value = *random.pick(&[
            "1",
            "x",
            "true",
            "null",
            "",
            "{a,b}",
            "{}",
            "{1,null}",
            "\"s\"",
            "[1]",
            "{\"k\":2}",
        ]);
        format!("{path}={value}")
    };
    (0..count).map(|_| one(random)).collect::<Vec<_>>().join(",")
}

fn ours(argument: &str, mode: &str) -> Result<Value, String> {
    let mut values = Map::new();
    let mut read = |name: &str| Ok(format!("<{name}>"));
    let mode = match mode {
        "set" => Mode::Typed,
        "string" => Mode::Text,
        "json" => Mode::Json,
        "literal" => Mode::Literal,
        _ => Mode::File(&mut read),
    };
    let result = set_values(argument, &mut values, mode, Dialect::Helm4);
    result.map(|()| Value::Map(values)).map_err(|error| error.text)
}

/// Converts the oracle's JSON, in which all numbers have one type.
fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().expect("a number")),
        serde_json::Value::String(text) => Value::String(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_json).collect()),
        serde_json::Value::Object(map) => Value::Map(
            map.iter()
                .map(|(key, value)| (key.clone(), from_json(value)))
                .collect(),
        ),
    }
}

fn floats(value: Value) -> Value {
    match value {
        Value::Int(number) => Value::Float(number as f64),
        Value::List(items) => Value::List(items.into_iter().map(floats).collect()),
        Value::Map(map) => Value::Map(map.into_iter().map(|(key, value)| (key, floats(value))).collect()),
        other => other,
    }
}

/// Removes the message of an error of `--set-json`. Helm does not print it, so only its presence is
/// compared.
fn comparable(result: Result<Value, String>, mode: &str) -> Result<Value, String> {
    result
        .map(floats)
        .map_err(|text| if mode == "json" { "rejected".into() } else { text })
}

#[test]
fn arguments_are_parsed_as_in_helm() {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut random = Random::new(0x5e7);
    let modes = ["set", "string", "json", "literal", "file"];
    let cases: Vec<(String, &str)> = (0..case_count(2000))
        .map(|case| {
            let text = if case % 2 == 0 {
                argument(&mut random)
            } else {
                assignments(&mut random)
            };
            (text, *random.pick(&modes))
        })
        .collect();
    let request = |(text, mode): &(String, &'static str)| OracleRequest {
        op: "strvals",
        text: text.clone().into_bytes(),
        mode,
        ..OracleRequest::default()
    };
    let responses = oracle
        .query_all(&cases.iter().map(request).collect::<Vec<_>>())
        .expect("responses");
    let mut counts = CaseCounts::default();
    for ((text, mode), response) in cases.iter().zip(responses) {
        let theirs = if response.err.is_empty() {
            Ok(from_json(&serde_json::from_slice(&response.out).expect("JSON")))
        } else {
            Err(response.err)
        };
        let (ours, theirs) = (comparable(ours(text, mode), mode), comparable(theirs, mode));
        counts.count(ours == theirs, || {
            format!("{mode} {text:?}\n  ours   {ours:?}\n  theirs {theirs:?}")
        });
    }
    counts.assert_all_equal("strvals");
}
