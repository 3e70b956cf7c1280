//! Tests live traffic during an upgrade and during a rollout, with real istiods and proxies and mutual TLS.
//! Only the operator changes the mesh and the routes.
//!
//! The same binary runs as the test, as the operator process, and as the application in pods.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a panic is how a test fails"
)]

mod api_outage;
mod chart;
mod controls;
mod fixtures;
#[path = "../support/gateway_api.rs"]
mod gateway_api;
mod observer;
mod operator_process;
mod rehearsal;
mod rollout;
mod test_mesh;
mod upgrade;

use std::process::ExitCode;

use mainstay_testkit::GATEWAY_API;
use mainstay_testkit::cluster;
use mainstay_testkit::mesh::{self, become_app};
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::test_cases;

const TEST_CASES: &[TestCase] = &test_cases![
    "upgrade" => upgrade::no_request_fails(),
    "controls" => controls::broken_traffic_is_detected(),
    "failure" => upgrade::one_workload_is_held(),
    "pruning" => upgrade::pods_are_injected_at_any_time(),
    "rehearsal" => rehearsal::record_for_the_rehearsal(),
    "rollout" => rollout::a_canary_fails_no_request(),
    "rollout_gateway_api" => rollout::a_canary_with_http_routes_fails_no_request(),
    "api_outage" => api_outage::the_upgrade_completes(),
];

fn main() -> ExitCode {
    if let Some(code) = become_app().or_else(operator_process::run_as_operator) {
        return code;
    }
    let peers = [
        cluster::PARTS.as_slice(),
        mesh::PARTS.as_slice(),
        GATEWAY_API.as_slice(),
    ]
    .concat();
    suite::main_as_root(&peers, TEST_CASES)
}
