//! Prints the HTML page of a sample report, or of the report in a file (`mainstay rehearse -o json`), for
//! work on its appearance.
//!
//! ```text
//! cargo run -p mainstay-rehearsal --features sample --example page > page.html
//! ```
#![allow(clippy::print_stdout, reason = "the example prints its result")]

use mainstay_rehearsal::{Report, html};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = match std::env::args().nth(1) {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)?,
        None => Report::sample(),
    };
    print!("{}", html::page(&report, None));
    Ok(())
}
