//! Prints the HTML page of a sample report, for work on its appearance: `… --features sample
//! --example page > page.html`. With a file name, of that report (`mainstay rehearse -o json`).
#![allow(clippy::print_stdout, reason = "it prints")]

use mainstay_rehearsal::{Report, html};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = match std::env::args().nth(1) {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)?,
        None => Report::sample(),
    };
    print!("{}", html::page(&report, None));
    Ok(())
}
