//! Invalid values in every field of every kind, on the simulator.

use mainstay_testkit::Random;

use crate::faults::run;
use crate::support::World;
use crate::support::invalid_input::try_all;
use crate::support::invalid_object;
use crate::support::world::plain_options;

/// Sample sizes: objects sent to the server, and accepted objects that the operator reconciles.
const SENT: usize = 800;
const RECONCILED: usize = 24;

/// With `MAINSTAY_INPUT=whole` every object is tested, otherwise a sample.
#[test]
fn every_field() {
    let mut all = invalid_object::all();
    println!("flaws: {} in all", all.len());
    let whole = std::env::var("MAINSTAY_INPUT").is_ok_and(|share| share == "whole");
    if !whole {
        let mut random = Random::new(6);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all.truncate(SENT);
    }
    let most = if whole { usize::MAX } else { RECONCILED };
    run(async {
        let world = World::simulated(&plain_options()).await;
        let results = try_all(&world, &all, most).await;
        world.end().await;
        results.conclude();
    });
}
