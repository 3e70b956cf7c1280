//! Tests invalid values in every field of every kind on the simulator.

use mainstay_testkit::Random;

use crate::support::World;
use crate::support::invalid_input::test_invalid_objects;
use crate::support::invalid_object;
use crate::support::virtual_time::run;
use crate::support::world::plain_options;

/// Sample sizes: number of objects sent to the server, and number of accepted objects that the operator
/// reconciles.
const SENT_OBJECTS: usize = 800;
const RECONCILED_OBJECTS: usize = 24;

/// Tests a sample of the objects, or all of them with `MAINSTAY_INPUT=whole`.
#[test]
fn invalid_values_in_every_field() {
    let mut all = invalid_object::all_invalid_objects();
    println!("flaws: {} in all", all.len());
    let whole = std::env::var("MAINSTAY_INPUT").is_ok_and(|share| share == "whole");
    if !whole {
        let mut random = Random::new(6);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all.truncate(SENT_OBJECTS);
    }
    let most = if whole { usize::MAX } else { RECONCILED_OBJECTS };
    run(async {
        let world = World::simulated(&plain_options()).await;
        let results = test_invalid_objects(&world, &all, most).await;
        world.end().await;
        results.print_and_check();
    });
}
