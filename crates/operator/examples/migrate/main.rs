//! Benchmark of a large migration: upgrades a mesh on the simulator and prints the figures.
//!
//! ```text
//! migrate NAMESPACES WORKLOADS BATCH             duration and writes in virtual time
//! migrate --served NAMESPACES WORKLOADS BATCH    memory and CPU time as `figure NAME VALUE`
//! migrate --operate KUBECONFIG                   the operator process
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]

mod served;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use support::scale::{Size, upgrade};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--operate", kubeconfig] => runtime(false).block_on(served::operate(kubeconfig)),
        ["--served", rest @ ..] => runtime(false).block_on(served::measure(&size(rest, 1, 1))),
        rest => {
            let size = size(rest, 10, 30);
            let figures = runtime(true).block_on(upgrade(&size));
            println!("migration scale {}: {}", size.workloads, figures.summary());
            figures.check();
        }
    }
}

fn size(words: &[&str], readiness: u64, delay: u64) -> Size {
    let numbers: Vec<usize> = words.iter().map(|text| text.parse().unwrap()).collect();
    let [namespaces, workloads, batch] = numbers.as_slice() else {
        panic!("migrate [--served] NAMESPACES WORKLOADS BATCH");
    };
    Size {
        namespaces: *namespaces,
        workloads: *workloads,
        batch: *batch,
        readiness: Duration::from_secs(readiness),
        delay: Duration::from_secs(delay),
    }
}

fn runtime(paused: bool) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(paused)
        .build()
        .unwrap()
}
