//! Runs every scenario on the simulator, each as one test.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails"
)]

mod backoff;
mod faults;
mod input;
mod quiet;
mod scale;
#[path = "../scenarios/mod.rs"]
mod scenarios;
#[path = "../support/mod.rs"]
mod support;
mod takeover;
mod test_plan;

use std::future::Future;

use mainstay_harness::ClusterOptions;
use support::World;
use support::virtual_time::run;
use support::world::{injecting_options, plain_options};

/// Runs a scenario in virtual time.
fn simulate<F: Future<Output = World>>(options: &ClusterOptions, scenario: impl FnOnce(World) -> F) {
    run(async {
        let world = World::simulated(options).await;
        let world = scenario(world).await;
        world.end().await;
    });
}

/// Defines a test for each scenario.
macro_rules! tests {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                super::simulate(&super::plain_options(), super::scenarios::$module::$name);
            })+
        })+
    };
}

scenarios::each!(tests);

/// Defines a test for each migration scenario.
macro_rules! migrations {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        mod migration {
            use super::*;

            $(mod $module {
                use super::*;

                $(#[test]
                fn $name() {
                    simulate(&injecting_options(), scenarios::migration::$module::$name);
                })+
            })+
        }
    };
}

scenarios::migration::each_migration!(migrations);

/// The name of a scenario, and a function that runs it.
type NamedScenario = (&'static str, fn());

/// Limits the operator to one plan at a time.
fn sequential(mut options: ClusterOptions) -> ClusterOptions {
    options.max_concurrent = 1;
    options
}

/// Lists the scenarios, which run with one plan at a time.
macro_rules! sequential_scenarios {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        &[$($((
            concat!(stringify!($module), "::", stringify!($name)),
            || simulate(&sequential(plain_options()), scenarios::$module::$name),
        )),+),+]
    };
}

/// Lists the migration scenarios, which run with one plan at a time.
macro_rules! sequential_migrations {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        &[$($((
            concat!("migration::", stringify!($module), "::", stringify!($name)),
            || simulate(&sequential(injecting_options()), scenarios::migration::$module::$name),
        )),+),+]
    };
}

const SCENARIOS: &[NamedScenario] = scenarios::each!(sequential_scenarios);
const MIGRATIONS: &[NamedScenario] = scenarios::migration::each_migration!(sequential_migrations);

/// Runs every eighth scenario, or all of them with `MAINSTAY_MATRIX=whole`. The tests above use the default
/// concurrency.
#[test]
fn scenarios_with_one_plan_at_a_time() {
    let whole = std::env::var("MAINSTAY_MATRIX").is_ok_and(|share| share == "whole");
    let step = if whole { 1 } else { 8 };
    for (name, run) in SCENARIOS.iter().chain(MIGRATIONS).step_by(step) {
        println!("one plan at a time: {name}");
        run();
    }
}
