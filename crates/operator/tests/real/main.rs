//! Runs every scenario on a real API server, each as one test. The tests of a thread share a server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails"
)]

mod faults;
mod input;
mod kill;
#[allow(dead_code, reason = "each test program uses a part")]
mod process;
#[path = "../scenarios/mod.rs"]
mod scenarios;
#[path = "../support/mod.rs"]
mod support;
mod takeover;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::suite::{self, TestCase};
use support::World;
use support::availability_log::FIGURES;
use support::real_cluster::ISTIODS;

/// Defines a test for each scenario.
macro_rules! test_cases {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        &[$($(TestCase {
            name: concat!(stringify!($module), "::", stringify!($name)),
            start: || Box::pin(async {
                let world = World::real().await;
                scenarios::$module::$name(world).await.end().await;
            }),
        }),+),+]
    };
}

/// Defines a test for each migration scenario, in which real istiods inject the pods.
macro_rules! migrations {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        &[$($(TestCase {
            name: concat!("migration::", stringify!($module), "::", stringify!($name)),
            start: || Box::pin(async {
                let world = World::real_injecting().await;
                scenarios::migration::$module::$name(world).await.end().await;
                PASSED_MIGRATION_SCENARIOS.fetch_add(1, Ordering::Relaxed);
            }),
        }),+),+]
    };
}

const MIGRATIONS: &[TestCase] = scenarios::migration::each_migration!(migrations);

static PASSED_MIGRATION_SCENARIOS: AtomicUsize = AtomicUsize::new(0);

const SCENARIOS: &[TestCase] = scenarios::each!(test_cases);

/// Returns the number of concurrent tests: one more than the number of cores, because tests mostly wait.
fn concurrent_tests() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get) + 1
}

fn main() -> ExitCode {
    if takeover::post_render() || process::operate() {
        return ExitCode::SUCCESS;
    }
    let peers = [PARTS.as_slice(), &takeover::PEERS, &ISTIODS].concat();
    let trials = suite::sample(&[
        SCENARIOS,
        input::TEST_CASES,
        takeover::TEST_CASES,
        faults::TEST_CASES,
        // Tests with injection. The two tests that need the most CPU time are not adjacent, so that they do
        // not delay the others.
        kill::KILLS,
        MIGRATIONS,
        kill::SCALE,
        faults::MIGRATION_TEST_CASES,
        faults::NEGATIVE_CONTROL,
    ]);
    let outcome = suite::main_parallel(concurrent_tests(), &peers, &trials);
    let migrated = PASSED_MIGRATION_SCENARIOS.load(Ordering::Relaxed);
    if migrated > 0 {
        println!("migration real istiods: {migrated} scenarios, {FIGURES}");
    }
    outcome
}
