//! Compares the engine with Go's on a template with the constructs of Istio's charts. Prints both times and
//! their ratio.
//!
//! Go runs in the oracle, which decodes, parses and executes. The loop inside the template ensures that
//! execution takes most of the time.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    missing_docs
)]

use std::time::{Duration, Instant};

use mainstay_template::{Limits, Meter, NoHost, Str, TemplateSet, Value, execute};
use mainstay_testkit::{Oracle, OracleRequest};

const TEMPLATE: &str = include_str!("render.tpl");
const DATA: &str = include_str!("render.json");

fn main() {
    let ours = best(ours);
    let mut oracle = Oracle::start().expect("the oracle");
    let request = OracleRequest {
        op: "template",
        text: TEMPLATE.into(),
        json: DATA.into(),
        funcs: "none",
        ..OracleRequest::default()
    };
    let mut expected = Vec::new();
    let go = best(|| expected = oracle.query(&request).expect("the oracle responds").out);
    assert_eq!(render(&parse()), expected, "both engines write the same");
    let ratio = go.as_secs_f64() / ours.as_secs_f64();
    println!(
        "template: ours {ours:?}, Go {go:?}, {ratio:.1}× faster, {} bytes",
        expected.len()
    );
}

/// Returns the shortest time of several runs, which is affected least by other processes.
fn best(mut run: impl FnMut()) -> Duration {
    let mut once = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..15).map(|_| once()).min().unwrap_or_default()
}

fn ours() {
    std::hint::black_box(render(&parse()));
}

fn parse() -> TemplateSet {
    let mut set = TemplateSet::new();
    set.parse("t", TEMPLATE).expect("parses");
    set
}

fn render(set: &TemplateSet) -> Vec<u8> {
    let mut meter = Meter::new(Limits::default());
    let data = value(serde_json::from_str(DATA).expect("data is JSON"));
    execute(set, "t", data, &mut meter, &mut NoHost).expect("runs")
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(value).collect()),
        serde_json::Value::Object(map) => {
            let entries = map.into_iter().map(|(key, item)| (Str::from(key), value(item)));
            Value::map(entries.collect())
        }
    }
}
