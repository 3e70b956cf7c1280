//! Live traffic through an upgrade: real istiods, real proxies with mTLS, and the operator as the only actor, one named trial per scenario.
//!
//! The program is three things: the test, the operator (a process that can be killed) and the application in pods.

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

mod actor;
mod controls;
mod made;
mod picture;
mod rehearsal;
mod town;
mod upgrade;
mod weather;
mod witness;

use std::process::ExitCode;

use mainstay_testkit::cluster;
use mainstay_testkit::mesh::{self, become_app};
use mainstay_testkit::suite::{self, TestCase};

/// A trial of this name.
macro_rules! trial {
    ($name:literal => $run:expr) => {
        TestCase {
            name: $name,
            start: || Box::pin($run),
        }
    };
}

const TEST_CASES: &[TestCase] = &[
    trial!("upgrade" => upgrade::every_request_is_answered()),
    trial!("controls" => controls::what_is_broken_shows()),
    trial!("failure" => upgrade::one_workload_is_held()),
    trial!("pruning" => upgrade::a_pod_is_injected_at_any_moment()),
    trial!("rehearsal" => rehearsal::what_a_rehearsal_must_foretell()),
    trial!("weather" => weather::it_arrives_all_the_same()),
];

fn main() -> ExitCode {
    if let Some(code) = become_app().or_else(actor::become_operator) {
        return code;
    }
    let peers = [cluster::PARTS.as_slice(), mesh::PARTS.as_slice()].concat();
    suite::main_as_root(&peers, TEST_CASES)
}
