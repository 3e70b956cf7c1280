//! Random templates through Go's engine and ours: same output, or the same error text.

// A test may fail by panicking, and reads its fixtures.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::panic
)]

mod common;
#[path = "common/random.rs"]
mod random;

use mainstay_testkit::{CaseCounts, Oracle, OracleRequest, Random, case_count};

const BATCH: usize = 500;

#[test]
fn random_templates_run_as_in_go() {
    let seed = std::env::var("MAINSTAY_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_260);
    let mut random = Random::new(seed);
    let mut oracle = Oracle::start().expect("the oracle");
    let mut tally = CaseCounts::default();
    let mut left = case_count(2_000);
    while left > 0 {
        let batch: Vec<_> = (0..left.min(BATCH)).map(|_| random::case(&mut random)).collect();
        left -= batch.len();
        let questions: Vec<_> = batch.iter().map(question).collect();
        let answers = oracle.query_all(&questions).expect("answers");
        for ((text, json), answer) in batch.iter().zip(answers) {
            let found = common::run(text, common::json(json));
            let expected = if answer.err.is_empty() {
                Ok(answer.out)
            } else {
                Err(answer.err)
            };
            if is_beyond_length(&expected, &found) {
                continue;
            }
            tally.count(found == expected, || difference(text, json, &expected, &found));
        }
    }
    tally.assert_all_equal("templates");
}

/// Go lets `slice` reach past the length into the spare capacity that decoding JSON happened to leave; we
/// have none.
fn is_beyond_length(expected: &Result<Vec<u8>, String>, found: &Result<Vec<u8>, String>) -> bool {
    let refused = |error: &String| error.contains("error calling slice: index out of range");
    found.as_ref().is_err_and(refused) && expected != found
}

fn question((text, json): &(Vec<u8>, String)) -> OracleRequest {
    OracleRequest {
        op: "template",
        text: text.clone(),
        json: json.clone().into_bytes(),
        funcs: "none",
        ..OracleRequest::default()
    }
}

fn difference(
    text: &[u8],
    json: &str,
    expected: &Result<Vec<u8>, String>,
    found: &Result<Vec<u8>, String>,
) -> String {
    let shown = |result: &Result<Vec<u8>, String>| match result {
        Ok(out) => format!("output {:?}", String::from_utf8_lossy(out)),
        Err(error) => format!("error {error:?}"),
    };
    let text = String::from_utf8_lossy(text);
    format!(
        "{text}\n  data  {json}\n  Go    {}\n  found {}",
        shown(expected),
        shown(found)
    )
}
