//! Compares the engine with Go's on random templates: output or error text must be equal.

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
    let mut counts = CaseCounts::default();
    let mut left = case_count(2_000);
    while left > 0 {
        let batch: Vec<_> = (0..left.min(BATCH)).map(|_| random::case(&mut random)).collect();
        left -= batch.len();
        let requests: Vec<_> = batch.iter().map(request).collect();
        let responses = oracle.query_all(&requests).expect("the oracle responds");
        for ((text, json), response) in batch.iter().zip(responses) {
            let found = common::run(text, common::json(json));
            let expected = if response.err.is_empty() {
                Ok(response.out)
            } else {
                Err(response.err)
            };
            if is_beyond_length(&expected, &found) {
                continue;
            }
            counts.count(found == expected, || difference(text, json, &expected, &found));
        }
    }
    counts.assert_all_equal("templates");
}

/// Whether the difference is caused by Go's `slice`, which can access the spare capacity of a decoded JSON
/// list beyond its length. This engine has no spare capacity.
fn is_beyond_length(expected: &Result<Vec<u8>, String>, found: &Result<Vec<u8>, String>) -> bool {
    let out_of_range = |error: &String| error.contains("error calling slice: index out of range");
    found.as_ref().is_err_and(out_of_range) && expected != found
}

fn request((text, json): &(Vec<u8>, String)) -> OracleRequest {
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
