//! All tests that require a real cluster, in one program that runs itself inside an isolated namespace.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

mod conformance;
mod determinism;
mod harness;
mod istiod;
mod kubectl;
mod kubelet;
mod runtime;

use std::process::ExitCode;

use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::suite::{self, TestCase};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, address] = arguments.as_slice()
        && flag == kubelet::SERVER_FLAG
    {
        kubelet::serve(address);
    }
    if std::env::args().any(|argument| argument == harness::KILLED_CHILD_FLAG) {
        return suite::main(&PARTS, &[harness::KILLED_CHILD]);
    }
    let trials: Vec<TestCase> = [
        harness::TEST_CASES,
        kubelet::TEST_CASES,
        kubectl::TEST_CASES,
        istiod::TEST_CASES,
        runtime::TEST_CASES,
        conformance::TEST_CASES,
        determinism::TEST_CASES,
    ]
    .concat();
    suite::main(&PARTS, &trials)
}
