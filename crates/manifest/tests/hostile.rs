//! Tests that hostile input results in an error or in bounded output. The bounds are those of `limits`, and
//! are verified by counters and messages. `cargo xtask hostile` limits time and memory.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

#[path = "hostile/cases.rs"]
mod cases;
#[path = "support/mod.rs"]
mod support;

use cases::Hostile;
use mainstay_manifest::limits::{MAX_DIAGNOSTICS, MAX_STEPS};
use mainstay_manifest::{Diagnostics, InputFile, Rendered, Request, generate};
use support::with_package;

fn run(case: &Hostile) -> Result<Rendered, Diagnostics> {
    with_package(|package| {
        let mut request = Request::new(package);
        request.files = vec![InputFile {
            name: "hostile.yaml".into(),
            text: case.text.clone(),
        }];
        request.sets.clone_from(&case.sets);
        if case.text.is_empty() {
            request.sets.push("profile=empty".into());
        }
        generate(&request)
    })
}

/// Returns a description of the problem if the outcome of a case is not as expected.
fn problem(case: &Hostile) -> Option<String> {
    match (run(case), case.message) {
        (Ok(rendered), None) => (rendered.steps > MAX_STEPS).then(|| format!("{} steps", rendered.steps)),
        (Ok(_), Some(message)) => Some(format!("succeeds instead of {message:?}")),
        (Err(found), None) => Some(format!("fails: {found}")),
        (Err(found), Some(message)) => {
            let text = found.to_string();
            let is_bounded = found.list().len() <= MAX_DIAGNOSTICS && text.len() < 1 << 20;
            (!text.contains(message) || !is_bounded).then(|| text.chars().take(600).collect())
        }
    }
}

#[test]
fn hostile_input_is_bounded() {
    let cases = cases::all();
    let found: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.name, problem(case)?)))
        .collect();
    println!(
        "hostile manifests: {} run, {} bounded",
        cases.len(),
        cases.len() - found.len()
    );
    assert!(cases.len() >= 40, "{} cases", cases.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
