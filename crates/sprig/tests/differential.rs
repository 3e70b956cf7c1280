//! Compares Sprig functions with Go's: fixed cases from a file, random calls and random programs.

// These are test helpers, which are not covered by clippy's exemption for test functions.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

#[path = "differential/engine.rs"]
mod engine;
#[path = "differential/fixed.rs"]
mod fixed;
#[path = "differential/generate.rs"]
mod generate;
#[path = "differential/program.rs"]
mod program;

use engine::{Outcome, render};
use mainstay_testkit::{CaseCounts, Oracle, OracleRequest, Random, case_count};

#[test]
fn random_calls_return_what_go_returns() {
    compare("sprig calls", 2_000, 7, generate::call);
}

#[test]
fn random_programs_share_maps_as_go_does() {
    compare("sprig programs", 500, 11, program::program);
}

/// Runs random templates in both engines. The number of templates is `MAINSTAY_CASES`, by default `usual`.
fn compare(name: &str, usual: usize, seed: u64, make: fn(&mut Random) -> String) {
    let mut random = Random::new(seed);
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut counts = CaseCounts::default();
    let mut left = case_count(usual);
    while left > 0 {
        let count = left.min(1_000);
        left -= count;
        let templates: Vec<String> = (0..count).map(|_| make(&mut random)).collect();
        compare_all(&mut oracle, &templates, &mut counts);
    }
    counts.assert_all_equal(name);
}

fn compare_all(oracle: &mut Oracle, templates: &[String], counts: &mut CaseCounts) {
    let request = |text: &String| OracleRequest {
        op: "template",
        text: text.clone().into_bytes(),
        json: generate::DOT.into(),
        funcs: "sprig",
        mode: "",
    };
    let requests: Vec<OracleRequest> = templates.iter().map(request).collect();
    let responses = oracle.query_all(&requests).expect("the oracle responds");
    for (template, response) in templates.iter().zip(responses) {
        let theirs = Outcome::from_go(response);
        let ours = render(template, generate::DOT);
        counts.count(ours == theirs, || {
            format!("{template}\n  go: {theirs}\n  us: {ours}")
        });
    }
}
