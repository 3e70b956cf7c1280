//! Every field of every kind with something wrong in it, on the simulator.

use mainstay_testkit::Random;

use crate::faults::run;
use crate::support::World;
use crate::support::bad;
use crate::support::input::try_all;
use crate::support::world::plain_options;

/// How many the server is asked about in the short share, and how many of those it accepts the operator sees.
const ASKED: usize = 800;
const SEEN: usize = 24;

/// `MAINSTAY_INPUT=whole`: all of them are shown to the server, and the operator sees all that it accepts. Else a sample.
#[test]
fn every_field() {
    let mut all = bad::all();
    println!("flaws: {} in all", all.len());
    let whole = std::env::var("MAINSTAY_INPUT").is_ok_and(|share| share == "whole");
    if !whole {
        let mut random = Random::new(6);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        all.truncate(ASKED);
    }
    let most = if whole { usize::MAX } else { SEEN };
    run(async {
        let world = World::simulated(&plain_options()).await;
        let fate = try_all(&world, &all, most).await;
        world.end().await;
        fate.conclude();
    });
}
