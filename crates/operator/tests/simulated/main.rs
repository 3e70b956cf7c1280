//! Every scenario on the simulator, one named test each.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails"
)]

mod faults;
mod input;
mod list;
mod quiet;
mod scale;
#[path = "../scenarios/mod.rs"]
mod scenarios;
#[path = "../support/mod.rs"]
mod support;

use std::future::Future;

use mainstay_harness::ClusterOptions;
use support::World;
use support::world::{injecting_options, plain_options};

/// Runs a scenario in paused time.
fn simulate<F: Future<Output = World>>(options: &ClusterOptions, scenario: impl FnOnce(World) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::simulated(options).await;
        let world = scenario(world).await;
        world.end().await;
    });
}

/// A test per scenario.
macro_rules! tests {
    ($($room:ident { $($name:ident),+ $(,)? })+) => {
        $(mod $room {
            $(#[test]
            fn $name() {
                super::simulate(&super::plain_options(), super::scenarios::$room::$name);
            })+
        })+
    };
}

scenarios::each!(tests);

/// A test per scenario of a migration.
macro_rules! migrations {
    ($($room:ident { $($name:ident),+ $(,)? })+) => {
        mod migration {
            use super::*;

            $(mod $room {
                use super::*;

                $(#[test]
                fn $name() {
                    simulate(&injecting_options(), scenarios::migration::$room::$name);
                })+
            })+
        }
    };
}

scenarios::migration::each_migration!(migrations);
