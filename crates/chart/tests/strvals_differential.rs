//! Random `--set` arguments, through Helm's parser and ours: the trees and the messages must be equal.
// A test may fail by any means, and runs the real Helm on real files.
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

/// Pieces that meet often in arguments, valid and not.
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

/// An argument that mostly parses: assignments joined with commas.
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

/// The oracle's answers are JSON, which has one kind of number.
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

/// What `--set-json` complains about never reaches the user: only that it does is compared.
fn comparable(result: Result<Value, String>, mode: &str) -> Result<Value, String> {
    result
        .map(floats)
        .map_err(|text| if mode == "json" { "refused".into() } else { text })
}

#[test]
fn arguments_mean_what_they_mean_to_helm() {
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
    let question = |(text, mode): &(String, &'static str)| OracleRequest {
        op: "strvals",
        text: text.clone().into_bytes(),
        mode,
        ..OracleRequest::default()
    };
    let answers = oracle
        .query_all(&cases.iter().map(question).collect::<Vec<_>>())
        .expect("answers");
    let mut tally = CaseCounts::default();
    for ((text, mode), answer) in cases.iter().zip(answers) {
        let theirs = if answer.err.is_empty() {
            Ok(from_json(&serde_json::from_slice(&answer.out).expect("JSON")))
        } else {
            Err(answer.err)
        };
        let (ours, theirs) = (comparable(ours(text, mode), mode), comparable(theirs, mode));
        tally.count(ours == theirs, || {
            format!("{mode} {text:?}\n  ours   {ours:?}\n  theirs {theirs:?}")
        });
    }
    tally.assert_all_equal("strvals");
}
