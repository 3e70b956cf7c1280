//! How a large migration goes: takes the number of namespaces and workloads and the size of a batch, upgrades such a mesh on the simulator in virtual
//! time, and prints lines `figure NAME VALUE`.
//!
//! ```text
//! migrate NAMESPACES WORKLOADS BATCH
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for whoever measures"
)]

#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use support::scale::{Size, upgrade};

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().unwrap())
        .collect();
    let [namespaces, workloads, batch] = numbers.as_slice() else {
        panic!("migrate NAMESPACES WORKLOADS BATCH");
    };
    let size = Size {
        namespaces: *namespaces,
        workloads: *workloads,
        batch: *batch,
        readiness: Duration::from_secs(10),
        delay: Duration::from_secs(30),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let figures = runtime.block_on(upgrade(&size));
    println!("migration scale {workloads}: {}", figures.line());
    figures.check();
}
