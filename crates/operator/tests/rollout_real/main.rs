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
mod gateway;
#[path = "../support/gateway_api.rs"]
#[allow(unreachable_pub, reason = "a module of each test program, not a crate")]
mod gateway_api;
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

use mainstay_testkit::GATEWAY_API;
use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::test_cases;
use support::final_state;

const TEST_CASES: &[TestCase] = &test_cases![
    "servers::the_proposal_end_to_end" => scenarios::the_proposal_end_to_end(),
    "servers::an_api_server_killed_halfway" => scenarios::an_api_server_killed_halfway(),
    "servers::a_rotated_kubeconfig" => scenarios::a_rotated_kubeconfig(),
    "servers::a_deleted_cluster" => scenarios::a_deleted_cluster(),
    "servers::ingresses_as_on_the_simulator" => scenarios::ingresses_as_on_the_simulator(),
    "gateway::istiod_accepts_http_routes" => gateway::istiod_accepts_http_routes(),
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
    let peers = [
        PARTS.as_slice(),
        GATEWAY_API.as_slice(),
        &["pilot-discovery-1.29.1"],
    ]
    .concat();
    suite::main(&peers, TEST_CASES)
}
