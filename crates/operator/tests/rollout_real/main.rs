//! Tests application delivery on three real API servers, with the operator as a process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a panic is how a test fails, and files to compare with"
)]

#[path = "../rollout/end_state.rs"]
mod end_state;
#[path = "../rollout/golden.rs"]
mod golden;
mod kills;
#[path = "../rollout/objects.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod objects;
#[path = "../real/process.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod process;
mod scenarios;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod test_namespace;

use std::process::ExitCode;

use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::test_cases;
use support::final_state;

const TEST_CASES: &[TestCase] = &test_cases![
    "servers::the_proposal_end_to_end" => scenarios::the_proposal_end_to_end(),
    "servers::an_api_server_killed_halfway" => scenarios::an_api_server_killed_halfway(),
    "servers::a_rotated_kubeconfig" => scenarios::a_rotated_kubeconfig(),
    "servers::a_deleted_cluster" => scenarios::a_deleted_cluster(),
    "kills::every_kill_converges" => kills::every_kill_converges(),
];

/// Whether the complete proof runs: `MAINSTAY_MATRIX=whole`, as for the fault matrix.
fn is_whole() -> bool {
    std::env::var("MAINSTAY_MATRIX").is_ok_and(|share| share == "whole")
}

fn main() -> ExitCode {
    if process::operate() {
        return ExitCode::SUCCESS;
    }
    suite::main(&PARTS, TEST_CASES)
}
